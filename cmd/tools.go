package cmd

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tools prints the tools that the settings select.
func tools(args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	mode := ""
	if len(args) == 1 {
		mode = args[0]
	}
	if len(args) > 1 || (mode != "" && mode != "--json" && mode != "--tokens") {
		fmt.Fprintln(stderr, "usage: conduit-mcp tools [--json|--tokens]")
		return 2
	}
	a, err := compose(lookup, nil, false)
	defer a.close()
	if err != nil {
		return complain(stderr, err)
	}
	list := a.mux.Tools()
	switch mode {
	case "--json":
		b, err := json.MarshalIndent(mcp.ListToolsResult{Tools: list}, "", "  ")
		if err != nil {
			return complain(stderr, err)
		}
		fmt.Fprintln(stdout, string(b))
	case "--tokens":
		total := 0
		for _, t := range list {
			b, err := json.Marshal(t)
			if err != nil {
				return complain(stderr, err)
			}
			total += len(b)
			fmt.Fprintf(stdout, "%-12s %6d bytes, about %5d tokens\n", t.Name, len(b), len(b)/4)
		}
		fmt.Fprintf(stdout, "%-12s %6d bytes, about %5d tokens\n", "all", total, total/4)
	default:
		for _, t := range a.set.Tools() {
			fmt.Fprintf(stdout, "%s\n  %s\n", t.Name, t.Summary)
			for _, op := range a.set.Ops(t.Name) {
				if op.Name != "" {
					fmt.Fprintf(stdout, "  %-14s %s (%s)\n", op.Name, op.Summary, op.Effect)
				}
			}
		}
	}
	return 0
}
