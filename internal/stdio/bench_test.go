package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
)

// pipes runs a server on pipes of the operating system.
func pipes(b *testing.B, o stdio.Options, server *mcp.Server) (feed *os.File, out *bufio.Reader) {
	in, feed, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	outFile, sink, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	o.MaxRequest, o.Log = 10<<20, slog.New(slog.DiscardHandler)
	done := make(chan error, 1)
	go func() {
		done <- server.Run(context.Background(), stdio.New(in, sink, o))
		sink.Close()
	}()
	b.Cleanup(func() {
		feed.Close()
		if err := <-done; err != nil {
			b.Error(err)
		}
		outFile.Close()
	})
	return feed, bufio.NewReaderSize(outFile, 1<<20)
}

func BenchmarkPing(b *testing.B) {
	feed, out := pipes(b, stdio.Options{}, newServer(nil))
	ping := []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	b.ReportAllocs()
	for b.Loop() {
		feed.Write(ping)
		if _, err := out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkShortCall is a call that takes no time, run by the goroutine that has
// read it and, for what that is worth, by another.
func BenchmarkShortCall(b *testing.B) {
	call := func(context.Context, string, json.RawMessage, func(done, total int64, message string)) (*mcp.CallToolResult, error) {
		return texts("text"), nil
	}
	for name, patience := range map[string]time.Duration{"by the reader": time.Millisecond, "by another": 0} {
		b.Run(name, func(b *testing.B) {
			b.Cleanup(stdio.SetPatience(patience)) // after the session has ended
			feed, out := pipes(b, stdio.Options{Call: call, Has: func(string) bool { return true }, Server: toy}, callServer(call, "t"))
			ask := func(line string) {
				io.WriteString(feed, line+"\n")
				if _, err := out.ReadSlice('\n'); err != nil {
					b.Fatal(err)
				}
			}
			ask(opening("2025-11-25"))
			b.ReportAllocs()
			for b.Loop() {
				ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
			}
		})
	}
}

// BenchmarkPipelined1000 sends a thousand pings at once; one operation is all of them.
func BenchmarkPipelined1000(b *testing.B) {
	feed, out := pipes(b, stdio.Options{}, newServer(nil))
	var pings bytes.Buffer
	for id := range 1000 {
		fmt.Fprintf(&pings, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id)
	}
	b.ReportAllocs()
	for b.Loop() {
		go feed.Write(pings.Bytes())
		for range 1000 {
			if _, err := out.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkLargeRequest sends a ping of 8 MB.
func BenchmarkLargeRequest(b *testing.B) {
	feed, out := pipes(b, stdio.Options{}, newServer(nil))
	ping := fmt.Appendf(nil, `{"jsonrpc":"2.0","params":{"x":"%s"},"id":1,"method":"ping"}`+"\n", bytes.Repeat([]byte("x"), 8<<20))
	b.SetBytes(int64(len(ping)))
	b.ReportAllocs()
	for b.Loop() {
		feed.Write(ping)
		if _, err := out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

// A blob is a text in memory.
type blob []byte

func (t blob) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(t)
	return int64(n), err
}

func (blob) Close() error { return nil }

// BenchmarkLargeReply reads a reply with a text of 50 MB.
func BenchmarkLargeReply(b *testing.B) {
	store := body.NewStore()
	line := "2026-03-01T12:00:00Z INFO request served method=GET path=/api/v1/items/42 status=200 duration=12ms\n"
	log := blob(bytes.Repeat([]byte(line), 50<<20/len(line)))
	feed, out := pipes(b, stdio.Options{Bodies: store}, newServer(map[string]tool{"text": func(context.Context, *mcp.CallToolRequest) (string, error) {
		return store.Put(log).Nested(), nil
	}}))
	io.WriteString(feed, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n")
	if _, err := out.ReadSlice('\n'); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		io.WriteString(feed, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"text"}}`+"\n")
		for {
			if _, err := out.ReadSlice('\n'); err == nil {
				break
			} else if err != bufio.ErrBufferFull {
				b.Fatal(err)
			}
		}
	}
}
