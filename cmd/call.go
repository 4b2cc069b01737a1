package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	output := ""
	cmd := &cobra.Command{
		Use:   "call TOOL[.OPERATION] ARGUMENTS",
		Short: "Run one operation through the whole chain",
		Long: "Run one operation as a client would have it run, and print its response.\n" +
			"ARGUMENTS is a JSON object, @FILE for one in a file, or - for standard input.\n" +
			"How far a long call has come is shown at a terminal.",
		Example: `  conduit-mcp call read.content '{"sources": ["README.md"], "view": "lean"}'` + "\n" +
			`  conduit-mcp call read.content --output small.jpg '{"sources": ["photo.jpg"], "format": "media"}'`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: c.completeOperation,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.app(app.Options{})
			if err != nil {
				return err
			}
			name, op, dotted := strings.Cut(args[0], ".")
			arguments, err := argument(cmd.InOrStdin(), args[1], a.MaxPayload)
			if err != nil {
				return err
			}
			if dotted {
				if arguments, err = discriminated(a.Set, name, op, arguments); err != nil {
					return err
				}
			}
			stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			ctx := cmd.Context()
			if v, ok := stderr.(*visible); ok && !c.Quiet {
				ctx = registry.WithProgress(ctx, v.progress)
			}
			res, err := a.Call(ctx, name, arguments)
			if v, ok := stderr.(*visible); ok {
				v.clear()
			}
			if err != nil {
				return err
			}
			if !a.Explicit && !c.Quiet {
				fmt.Fprintln(stderr, a.Notice().Message)
			}
			saved := 0
			for i, content := range res.Content {
				text, ok := content.(*mcp.TextContent)
				kind, data := media(content)
				switch {
				case i == 0 && ok:
					fmt.Fprintln(stdout, strings.TrimSuffix(text.Text, "\n"))
				case data != nil && output != "":
					saved++
					name := numbered(output, saved)
					if err := os.WriteFile(name, data, 0o666); err != nil {
						return err
					}
					if !c.Quiet {
						fmt.Fprintf(stderr, "%s: %s, %d bytes\n", name, kind, len(data))
					}
				case c.Quiet:
				case ok:
					fmt.Fprintln(stderr, text.Text)
				default:
					fmt.Fprintf(stderr, "(%s, %d bytes; --output FILE saves it)\n", kind, len(data))
				}
			}
			switch {
			case res.IsError:
				return &registry.ExitError{Code: 1}
			case output != "" && saved == 0:
				return fault.New(fault.InvalidParameter, `the answer has no image or sound to save; read.content has with "format": "media"`)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "save the image or sound of the answer as `FILE`, further ones as FILE-2 and so on")
	return cmd
}

// argument reads the argument ARGUMENTS, at most a byte more than max of a file.
func argument(stdin io.Reader, text string, max int64) (json.RawMessage, error) {
	name, file := strings.CutPrefix(text, "@")
	switch {
	case file:
		f, err := os.Open(name)
		if err != nil {
			return nil, fault.Hide(fault.FSNotFound, err, "the arguments cannot be read: %v", err)
		}
		defer f.Close()
		stdin = f
	case text != "-":
		return json.RawMessage(text), nil
	}
	b, err := io.ReadAll(io.LimitReader(stdin, max+1))
	return bytes.TrimSpace(b), err
}

// media returns what a block has beside text.
func media(content mcp.Content) (kind string, data []byte) {
	switch m := content.(type) {
	case *mcp.ImageContent:
		return m.MIMEType, m.Data
	case *mcp.AudioContent:
		return m.MIMEType, m.Data
	}
	return "a block", nil
}

// numbered is the name of the nth file that is saved as name.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
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
	err := json.Unmarshal(arguments, &members)
	if at := (*json.SyntaxError)(nil); errors.As(err, &at) {
		return nil, fault.New(fault.InvalidParameter, "the arguments are no JSON: %v, at byte %d of %d", err, at.Offset, len(arguments))
	}
	if err != nil || members == nil {
		return nil, fault.New(fault.InvalidParameter, "the arguments must be one JSON object")
	}
	name, err := json.Marshal(op)
	if err != nil {
		return nil, err
	}
	members[t.Discriminator] = name
	return json.Marshal(members)
}
