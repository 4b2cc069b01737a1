package cmd

import (
	"context"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/internal/logfile"
	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// memoryLimit is where garbage is collected sooner than usual: what work leaves
// behind would be kept until as much again is in use. So packing and unpacking
// trees stays below 64 MB of resident memory, at no cost in time; only work that
// needs more at once pays for it.
const memoryLimit = 48 << 20

// refusalPatience is how long a server that cannot start waits for a request to
// answer with the reason.
const refusalPatience = 10 * time.Second

// serve is the stdio server that o describes. It returns the exit code.
func serve(o app.Options) int {
	o.Serving = true
	person := isTerminal(os.Stdin) && isTerminal(os.Stderr)
	out, stderr, err := takeStdout()
	if err != nil {
		return 1
	}
	a, err := app.New(o)
	defer func() { a.Close() }() // it has its log where it could not be made
	if f := a.Log.File(); f != nil {
		_ = debug.SetCrashOutput(f, debug.CrashOptions{}) // stderr stays silent even then
	}
	if err != nil {
		code, message := fault.Of(err)
		a.Log.Log(context.Background(), logfile.LevelFatal, "the server cannot start", "error_code", code, "err", err.Error())
		if person {
			io.WriteString(stderr, "conduit-mcp: "+string(code)+": "+message+"\n")
			return 1
		}
		ctx, stop := context.WithTimeout(context.Background(), refusalPatience)
		defer stop()
		_ = stdio.Refuse(ctx, os.Stdin, out, fault.Object{Status: "error", Code: code, Message: message})
		return 1
	}
	a.LogStart()
	if limit, _ := o.Environ.Lookup("GOMEMLIMIT"); limit == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if person {
		io.WriteString(stderr, "conduit-mcp "+app.Version+" is an MCP server and waits for a client on stdin; `conduit-mcp doctor` checks the settings and shows what to paste into a client.\n")
	}
	return a.ServeStdio(os.Stdin, out)
}

func isTerminal(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0 && isTTY(f)
}
