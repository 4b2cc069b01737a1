package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// call runs one operation through the whole chain and prints its response. The
// exit code is 1 where the call failed.
func call(args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	if len(args) != 3 || args[1] != "--json" {
		fmt.Fprintln(stderr, "usage: conduit-mcp call TOOL[.OPERATION] --json ARGUMENTS")
		return 2
	}
	a, err := compose(lookup, nil, false)
	defer a.close()
	if err != nil {
		return complain(stderr, err)
	}
	name, op, dotted := strings.Cut(args[0], ".")
	arguments := json.RawMessage(args[2])
	if dotted {
		if arguments, err = a.discriminated(name, op, arguments); err != nil {
			return complain(stderr, err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	res, err := a.mux.Call(ctx, name, arguments)
	if err != nil {
		return complain(stderr, err)
	}
	if !a.explicit {
		fmt.Fprintln(stderr, a.notice().Message)
	}
	for i, c := range res.Content {
		t, ok := c.(*mcp.TextContent)
		switch {
		case !ok:
			fmt.Fprintln(stderr, "(a media block is not shown)")
		case i == 0:
			fmt.Fprintln(stdout, t.Text)
		default:
			fmt.Fprintln(stderr, t.Text)
		}
	}
	if res.IsError {
		return 1
	}
	return 0
}

// discriminated adds the operation named on the command line to the arguments.
func (a *app) discriminated(tool, op string, arguments json.RawMessage) (json.RawMessage, error) {
	t, ok := a.set.Tool(tool)
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

// complain prints an error for a person and returns the exit code.
func complain(stderr io.Writer, err error) int {
	code, message := fault.Of(err)
	if code == fault.Internal {
		message = err.Error()
	}
	fmt.Fprintf(stderr, "conduit-mcp: %s: %s\n", code, message)
	return 1
}
