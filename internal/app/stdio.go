package app

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
)

// ServeStdio serves one client until its input ends or a signal comes, and
// returns the exit code.
func (a *App) ServeStdio(in io.ReadCloser, out io.Writer) int {
	self := &mcp.Implementation{Name: "conduit-mcp", Title: "Conduit", Version: Version}
	s := mcp.NewServer(self, &mcp.ServerOptions{
		Instructions: a.Set.Instructions(a.Toolsets),
		Logger:       a.Log.Logger,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	a.Mux.Mount(s)
	input := &watched{ReadCloser: in, end: make(chan struct{})}
	t := stdio.New(input, out, stdio.Options{MaxRequest: a.MaxPayload, MaxResponse: a.MaxResponse, Bodies: a.bodies, Call: a.Mux.CallWithProgress, Has: a.Mux.Has, Server: self, Log: a.Log.Logger})

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
				a.Log.Error("the session ended with an error", "err", err)
			}
			a.Log.Info("server stopped")
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
			a.Log.Info("signal; finishing what is in flight", "signal", sig.String())
			t.Shutdown()
			late = time.After(afterSignal)
		case <-late:
			a.Log.Warn("server stopped with calls that do not end")
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
