// Command demo drives a conduit-mcp binary as a client would, on a scratch copy
// of this repository's sources, and prints each call with its answer. It fails
// unless every step ends as it should.
//
// Usage, from the repository's root: demo BINARY
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/cmd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo BINARY")
		os.Exit(2)
	}
	if err := demonstrate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demonstrate(binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := tour(binary, here, os.Stdout); err != nil {
		return err
	}
	fmt.Printf("Every step ended as it should. To use the server, give a client this:\n\n%s\n", cmd.Snippet(binary, []string{here}))
	return nil
}
