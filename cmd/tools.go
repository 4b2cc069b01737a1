package cmd

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
)

// tools prints the tools that the settings select.
func (c *commandLine) tools() *cobra.Command {
	tokens := false
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools; with --json as tools/list tells them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.app(app.Options{})
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch {
			case tokens:
				return c.printTokens(out, a.Mux.Tools())
			case c.JSON:
				return c.Print(out, mcp.ListToolsResult{Tools: a.Mux.Tools()})
			}
			for _, t := range a.Set.Tools() {
				if c.Quiet {
					fmt.Fprintln(out, t.Name)
					continue
				}
				fmt.Fprintf(out, "%s\n  %s\n", t.Name, t.Summary)
				for _, op := range a.Set.Ops(t.Name) {
					if op.Name != "" {
						fmt.Fprintf(out, "  %-14s %s (%s)\n", op.Name, op.Summary, op.Effect)
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&tokens, "tokens", false, "tell what the tools cost a model")
	return cmd
}

// A toolCost is what a tool costs a model that is given it.
type toolCost struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens"` // about: a quarter of the bytes
}

func (c *commandLine) printTokens(out io.Writer, tools []*mcp.Tool) error {
	all := toolCost{Name: "all"}
	var list []toolCost
	for _, t := range tools {
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		list = append(list, toolCost{t.Name, len(b), len(b) / 4})
		all.Bytes += len(b)
	}
	all.Tokens = all.Bytes / 4
	list = append(list, all)
	if c.JSON {
		return c.Print(out, list)
	}
	for _, t := range list {
		fmt.Fprintf(out, "%-12s %6d bytes, about %5d tokens\n", t.Name, t.Bytes, t.Tokens)
	}
	return nil
}
