package cmd

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/logfile"
	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// instructions reach the model once, with the first exchange.
const instructions = "Paths are absolute, ~/… or relative to the project root, inside the allowed directories (list, operation system_info, tells them). " +
	"Batches take several items in one call; each item has its own status. view:\"lean\" answers in plain text with fewest tokens."

func iso(t time.Time) string { return fileinfo.ISO(t) }

func upper(s string) string { return strings.ToUpper(strings.TrimSpace(s)) }

// memoryLimit is where garbage is collected sooner than usual: what work leaves
// behind would be kept until as much again is in use. So packing and unpacking
// trees stays below 64 MB of resident memory, at no cost in time; only work that
// needs more at once pays for it.
const memoryLimit = 48 << 20

// serve is the stdio server. It returns the exit code.
func serve(lookup func(string) (string, bool), dirs []string) int {
	person := isTerminal(os.Stdin) && isTerminal(os.Stderr)
	out, stderr, err := takeStdout()
	if err != nil {
		return 1
	}
	a, err := compose(lookup, dirs, true)
	defer a.close()
	if f := a.log.File(); f != nil {
		_ = debug.SetCrashOutput(f, debug.CrashOptions{}) // stderr stays silent even then
	}
	if err != nil {
		code, message := fault.Of(err)
		a.log.Log(context.Background(), logfile.LevelFatal, "the server cannot start", "error_code", code, "err", err.Error())
		if person {
			io.WriteString(stderr, "conduit-mcp: "+string(code)+": "+message+"\n")
		}
		return 1
	}
	a.logStart()
	if limit, _ := lookup("GOMEMLIMIT"); limit == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if person {
		io.WriteString(stderr, "conduit-mcp "+version+" is an MCP server and waits for a client on stdin; `conduit-mcp doctor` checks the settings and shows what to paste into a client.\n")
	}
	return a.run(os.Stdin, out)
}

// run serves one client until its input ends or a signal comes.
func (a *app) run(in io.ReadCloser, out io.Writer) int {
	s := mcp.NewServer(&mcp.Implementation{Name: "conduit-mcp", Title: "Conduit", Version: version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       a.log.Logger,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	a.mux.Mount(s)
	input := &watched{ReadCloser: in, end: make(chan struct{})}
	t := stdio.New(input, out, stdio.Options{MaxRequest: a.MaxPayload, MaxResponse: a.MaxResponse, Bodies: a.bodies, Call: a.mux.CallWithProgress, Log: a.log.Logger})

	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background(), t) }()
	var late <-chan time.Time
	end, signalled := input.end, false
	for {
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, io.EOF) {
				a.log.Error("the session ended with an error", "err", err)
			}
			a.log.Info("server stopped")
			return 0
		case <-end: // the transport drains and then ends the session
			end = nil
			if !signalled {
				late = time.After(afterEOF)
			}
		case sig := <-signals:
			if signalled {
				return 1
			}
			signalled = true
			a.log.Info("signal; finishing what is in flight", "signal", sig.String())
			t.Shutdown()
			late = time.After(afterSignal)
		case <-late:
			a.log.Warn("server stopped with calls that do not end")
			return 0
		}
	}
}

// These bound the end of a session whose handlers do not heed that their calls
// are cancelled; they exceed what the transport gives calls in flight.
const (
	afterEOF    = 7 * time.Second
	afterSignal = 2 * time.Second
)

// watched tells when a reader has come to its end.
type watched struct {
	io.ReadCloser
	end  chan struct{}
	once sync.Once
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	if err != nil {
		w.once.Do(func() { close(w.end) })
	}
	return n, err
}

func isTerminal(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0 && isTTY(f)
}
