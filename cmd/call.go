package cmd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// call runs one operation through the whole chain and prints its response. The
// exit code is 1 where the call failed.
func (c *commandLine) call() *cobra.Command {
	return &cobra.Command{
		Use:   "call TOOL[.OPERATION] ARGUMENTS",
		Short: "Run one operation through the whole chain",
		Long: "Run one operation as a client would have it run, and print its response.\n" +
			"ARGUMENTS is a JSON object.",
		Example:           `  conduit-mcp call read.content '{"sources": ["README.md"], "view": "lean"}'`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: c.completeOperation,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.app(app.Options{})
			if err != nil {
				return err
			}
			name, op, dotted := strings.Cut(args[0], ".")
			arguments := json.RawMessage(args[1])
			if dotted {
				if arguments, err = discriminated(a.Set, name, op, arguments); err != nil {
					return err
				}
			}
			res, err := a.Call(cmd.Context(), name, arguments)
			if err != nil {
				return err
			}
			stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			if !a.Explicit && !c.Quiet {
				fmt.Fprintln(stderr, a.Notice().Message)
			}
			for i, content := range res.Content {
				text, ok := content.(*mcp.TextContent)
				switch {
				case i == 0 && ok:
					fmt.Fprintln(stdout, text.Text)
				case c.Quiet:
				case !ok:
					fmt.Fprintln(stderr, "(a media block is not shown)")
				default:
					fmt.Fprintln(stderr, text.Text)
				}
			}
			if res.IsError {
				return &registry.ExitError{Code: 1}
			}
			return nil
		},
	}
}

// completeOperation offers the operations that the settings select.
func (c *commandLine) completeOperation(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a, err := c.app(app.Options{Quiet: true})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []cobra.Completion
	for _, op := range a.Set.AllOps() {
		list = append(list, cobra.CompletionWithDesc(op.ID(), op.Summary))
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// discriminated adds the operation named on the command line to the arguments.
func discriminated(set *registry.Set, tool, op string, arguments json.RawMessage) (json.RawMessage, error) {
	t, ok := set.Tool(tool)
	if !ok || t.Discriminator == "" {
		return arguments, nil // the call itself says what is wrong
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &members); err != nil || members == nil {
		return nil, fault.New(fault.InvalidParameter, "the arguments must be one JSON object")
	}
	name, err := json.Marshal(op)
	if err != nil {
		return nil, err
	}
	members[t.Discriminator] = name
	return json.Marshal(members)
}
