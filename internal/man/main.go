// Command man writes the manual pages of the command line, one a command.
//
// Usage: man DIRECTORY
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/conduit-mcp/conduit-mcp/cmd"
	"github.com/conduit-mcp/conduit-mcp/internal/app"
	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write makes the pages in dir. Their date is the month, or that of the variable
// SOURCE_DATE_EPOCH.
func write(dir string) error {
	root, err := cmd.Root()
	if err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "conduit-mcp " + app.Version, Manual: "conduit-mcp"}, dir)
}
