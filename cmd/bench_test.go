package cmd

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
)

const initialize = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// client drives a server of this process over pipes.
type client struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// start runs the server over dir and returns a client that has initialized it.
func start(b testing.TB, dir string) *client {
	b.Helper()
	env := map[string]string{"CONDUIT_ALLOWED_PATHS": dir, "CONDUIT_LOG_FILE_PATH": filepath.Join(b.TempDir(), "log"), "CONDUIT_MAX_RESPONSE_BYTES": "0"}
	a, err := app.New(app.Options{Environ: env, Serving: true})
	if err != nil {
		b.Fatal(err)
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.ServeStdio(inR, outW)
		outW.Close()
	}()
	b.Cleanup(func() { inW.Close(); <-done; a.Close() })
	c := &client{inW, bufio.NewReaderSize(outR, 1<<20)}
	c.send(b, initialize)
	c.receive(b)
	c.send(b, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *client) send(b testing.TB, lines string) {
	if _, err := io.WriteString(c.in, lines+"\n"); err != nil {
		b.Fatal(err)
	}
}

func (c *client) receive(b testing.TB) string {
	line, err := c.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	if strings.Contains(line, `"isError":true`) || strings.Contains(line, `"error":`) {
		b.Fatal(line)
	}
	return line
}

func readCall(id int, path string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read","arguments":{"operation":"content","sources":[%q],"format":"text"}}}`, id, path)
}

func smallFile(b testing.TB) (dir, path string) {
	dir = b.TempDir()
	path = filepath.Join(dir, "a", "b", "small.txt")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("a line of text\n", 140)), 0o644); err != nil {
		b.Fatal(err)
	}
	return dir, path
}

// BenchmarkSmallRead is one read of a 2 kB file from request line to answer.
func BenchmarkSmallRead(b *testing.B) {
	dir, path := smallFile(b)
	c := start(b, dir)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		c.send(b, readCall(n, path))
		c.receive(b)
	}
}

// BenchmarkPipelinedReads is one of 1,000 such reads in flight at once.
func BenchmarkPipelinedReads(b *testing.B) {
	dir, path := smallFile(b)
	c := start(b, dir)
	b.ReportAllocs()
	const batch = 1000
	for n := 0; n < b.N; n += batch {
		go func() {
			for i := range batch {
				c.send(b, readCall(n+i, path))
			}
		}()
		for range batch {
			c.receive(b)
		}
	}
}
