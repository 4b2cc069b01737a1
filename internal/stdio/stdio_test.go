package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
)

// A session is a server at work, seen from its client.
type session struct {
	t         testing.TB
	transport *stdio.Transport
	feed      *io.PipeWriter
	out       *io.PipeReader
	lines     *bufio.Reader
	ended     chan error
	log       *logged
}

// A tool answers a call with a text.
type tool func(ctx context.Context, req *mcp.CallToolRequest) (string, error)

// logged is a log that a test may read while it is written.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var toy = &mcp.Implementation{Name: "toy", Version: "1"}

func newServer(tools map[string]tool) *mcp.Server {
	server := mcp.NewServer(toy, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}})
	for name, f := range tools {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				text, err := f(ctx, req)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, err
			})
	}
	return server
}

// start runs a server, unless the test has one of its own, and ends it with the test.
func start(t testing.TB, o stdio.Options, tools map[string]tool) *session {
	return startOn(t, o, newServer(tools))
}

func startOn(t testing.TB, o stdio.Options, server *mcp.Server) *session {
	s := &session{t: t, ended: make(chan error, 1), log: &logged{}}
	var in *io.PipeReader
	var sink *io.PipeWriter
	in, s.feed = io.Pipe()
	s.out, sink = io.Pipe()
	s.lines = bufio.NewReader(s.out)
	if o.MaxRequest == 0 {
		o.MaxRequest = 1 << 20
	}
	o.Log, o.Server = slog.New(slog.NewTextHandler(s.log, nil)), toy
	s.transport = stdio.New(in, sink, o)
	go func() {
		err := server.Run(context.Background(), s.transport)
		sink.Close()
		s.ended <- err
	}()
	t.Cleanup(func() {
		s.feed.Close()
		s.out.Close()
		if err := <-s.ended; err != nil {
			t.Errorf("the session ended with %v", err)
		}
	})
	return s
}

func (s *session) send(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.feed, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
}

// receive returns the next line, empty at the end.
func (s *session) receive() string {
	s.t.Helper()
	line, err := s.lines.ReadString('\n')
	if err != nil && err != io.EOF {
		s.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (s *session) expect(want string) {
	s.t.Helper()
	if got := s.receive(); got != want {
		s.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// initialize goes through the opening of a session.
func (s *session) initialize() {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if got := s.receive(); !strings.Contains(got, `"serverInfo"`) {
		s.t.Fatalf("initialize: %s", got)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (s *session) call(id int, tool string) {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`, id, tool)
}

func (s *session) cancel(id int) {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
}

func (s *session) ping(id int) {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id)
	s.expect(pong(id))
}

func pong(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id) }

// answer is the reply to a call of a tool that returns text.
func answer(id int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
}

func refusal(message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":-32600,"message":%[1]q,"data":{"status":"error","error_code":"ERR_MCP_INVALID_REQUEST","error_message":%[1]q}}}`, message)
}

// after returns a tool that answers when the time is up, whatever ctx says.
func after(d time.Duration) tool {
	return func(context.Context, *mcp.CallToolRequest) (string, error) {
		time.Sleep(d)
		return "late", nil
	}
}

// gate is a tool that answers when the test lets it, whatever ctx says.
func gate() (tool, chan<- string) {
	open := make(chan string)
	return func(context.Context, *mcp.CallToolRequest) (string, error) { return <-open, nil }, open
}

func TestDuplicateID(t *testing.T) {
	wait, open := gate()
	s := start(t, stdio.Options{}, map[string]tool{"wait": wait})
	s.initialize()
	s.call(1, "wait")
	s.ping(2) // one call does not hold up another

	s.call(1, "wait")
	s.expect(refusal("a request with this id is in flight; give each request an id of its own"))
	if log := s.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "id=1 ") {
		t.Errorf("log: %s", log)
	}
	// No refusal may seem to answer the call in flight.
	s.send(`{"jsonrpc":"2.0","id":1,"method":5}`)
	s.expect(refusal("method must be a string of at most 4096 bytes"))
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"pad":%q}}`, strings.Repeat("x", 1<<20))
	if got := s.receive(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","error":{"code":-32600,`) {
		t.Errorf("got %s", got)
	}

	open <- "first"
	s.expect(answer(1, "first"))
	s.call(1, "wait")
	open <- "second"
	s.expect(answer(1, "second"))
}

func TestCancelledCallsGetNoReply(t *testing.T) {
	store := body.NewStore()
	text := &text{}
	wait, open := gate()
	s := start(t, stdio.Options{Bodies: store}, map[string]tool{"wait": wait})
	s.initialize()
	s.call(1, "wait")
	s.ping(2)
	s.cancel(1)
	s.cancel(1)
	s.ping(3)
	s.call(1, "wait") // the first is still at work
	s.expect(refusal("a request with this id is in flight; give each request an id of its own"))
	open <- store.Put(text).Plain()
	<-text.closed() // the reply came, and was dropped
	s.ping(4)
	s.call(1, "wait")
	open <- "again"
	s.expect(answer(1, "again"))
}

func TestCancelStopsTheWork(t *testing.T) {
	synctest.Test(t, testCancelStopsTheWork)
}

func testCancelStopsTheWork(t *testing.T) {
	stopped := make(chan struct{})
	s := start(t, stdio.Options{}, map[string]tool{"wait": func(ctx context.Context, _ *mcp.CallToolRequest) (string, error) {
		<-ctx.Done()
		close(stopped)
		return "", ctx.Err()
	}})
	s.initialize()
	s.call(1, "wait")
	s.ping(2)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.5}}`)
	select {
	case <-stopped:
		t.Error("the id 1.5 is none, yet call 1 was stopped")
	case <-time.After(10 * time.Second):
	}
	s.cancel(1)
	<-stopped
	s.ping(3)
}

// A text is a large text that can fail and tells when it is closed.
type text struct {
	s    string
	err  error
	once sync.Once
	done chan struct{}
}

func (x *text) closed() chan struct{} {
	x.once.Do(func() { x.done = make(chan struct{}) })
	return x.done
}

func (x *text) Close() error { close(x.closed()); return nil }

func (x *text) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, x.s)
	return int64(n), errors.Join(err, x.err)
}

// TestDrain ends sessions with calls in flight, by the end of the input or by
// Shutdown or both, and looks at what is answered and how long it takes.
func TestDrain(t *testing.T) {
	const eof, signal, listen = "eof", "signal", "listen"
	for name, c := range map[string]struct {
		call    time.Duration // how long the call in flight takes; 0: there is none
		end     []string
		replies int
		took    time.Duration
	}{
		"idle, EOF":               {0, []string{eof}, 0, 0},
		"idle, signal":            {0, []string{signal}, 0, 0},
		"subscription, EOF":       {0, []string{listen, eof}, 0, 0},
		"subscription, signal":    {0, []string{listen, signal}, 0, 0},
		"short call, EOF":         {4 * time.Second, []string{eof}, 1, 4 * time.Second},
		"long call, EOF":          {time.Minute, []string{eof}, 0, 5 * time.Second},
		"short call, signal":      {900 * time.Millisecond, []string{signal}, 1, 900 * time.Millisecond},
		"long call, signal":       {4 * time.Second, []string{signal}, 0, time.Second},
		"EOF, then signal":        {4 * time.Second, []string{eof, signal}, 0, time.Second},
		"cancelled call, EOF":     {4 * time.Second, []string{"cancel", eof}, 0, 0},
		"signal, then EOF":        {4 * time.Second, []string{signal, eof}, 0, time.Second},
		"two signals, short call": {500 * time.Millisecond, []string{signal, signal}, 1, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, stdio.Options{}, map[string]tool{"work": func(ctx context.Context, _ *mcp.CallToolRequest) (string, error) {
					select {
					case <-time.After(c.call):
					case <-ctx.Done():
					}
					return "done", nil
				}})
				s.initialize()
				if c.call > 0 {
					s.call(1, "work")
				}
				begun := time.Now()
				for _, end := range c.end {
					synctest.Wait()
					switch end {
					case eof:
						s.feed.Close()
					case signal:
						s.transport.Shutdown()
					case "cancel":
						s.cancel(1)
					case listen:
						s.send(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
						if got := s.receive(); !strings.Contains(got, "acknowledged") {
							t.Fatalf("not subscribed: %s", got)
						}
					}
				}
				for range c.replies {
					s.expect(answer(1, "done"))
				}
				s.expect("")
				if took := time.Since(begun); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// In a bubble, since what is not answered within seconds of the end is dropped.
func TestEverythingReadIsAnswered(t *testing.T) {
	synctest.Test(t, testEverythingReadIsAnswered)
}

func testEverythingReadIsAnswered(t *testing.T) {
	s := start(t, stdio.Options{}, map[string]tool{"work": after(time.Millisecond)})
	s.initialize()
	go func() {
		defer s.feed.Close()
		for id := range 500 {
			fmt.Fprintf(s.feed, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work"}}`+"\n{bad\n", id)
		}
	}()
	got := map[string]int{}
	for line := s.receive(); line != ""; line = s.receive() {
		got[line]++
	}
	for id := range 500 {
		if got[answer(id, "late")] != 1 {
			t.Errorf("call %d got %d replies", id, got[answer(id, "late")])
		}
		delete(got, answer(id, "late"))
	}
	if len(got) != 1 {
		t.Errorf("left: %v", got)
	}
	for line, n := range got {
		if n != 500 || !strings.Contains(line, "-32700") {
			t.Errorf("%d × %s", n, line)
		}
	}
}

// A client that reads nothing holds up neither Shutdown nor, for ever, the server.
func TestClientThatDoesNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*session)
		took time.Duration
	}{
		"signal": {func(s *session) { s.transport.Shutdown() }, time.Second},
		"EOF":    {func(s *session) { s.feed.Close() }, 5 * time.Second},
		"stall":  {func(*session) {}, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := body.NewStore()
				texts := []*text{{s: "a"}, {s: "b"}, {s: "c"}}
				i := 0
				s := start(t, stdio.Options{Bodies: store}, map[string]tool{"text": func(context.Context, *mcp.CallToolRequest) (string, error) {
					i++
					return store.Put(texts[i-1]).Plain(), nil
				}})
				s.initialize()
				begun := time.Now()
				for i := range texts {
					s.call(i, "text")
					synctest.Wait()
				}
				c.end(s)
				err := <-s.ended
				if took := time.Since(begun); err != nil || took != c.took {
					t.Errorf("took %v, want %v; err = %v", took, c.took, err)
				}
				s.out.Close() // ends the write that is stuck
				for _, x := range texts {
					<-x.closed()
				}
				s.ended <- nil // for the cleanup
			})
		})
	}
}

func TestSlowClientIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := body.NewStore()
		long := strings.Repeat("x", 1<<20)
		s := start(t, stdio.Options{Bodies: store}, map[string]tool{"text": func(context.Context, *mcp.CallToolRequest) (string, error) {
			return store.Put(&text{s: long}).Plain(), nil
		}})
		s.initialize()
		s.call(1, "text")
		want := answer(1, long) + "\n"
		got := make([]byte, len(want))
		for n := 0; n < len(got); n += 32 << 10 {
			time.Sleep(2 * time.Minute)
			if _, err := io.ReadFull(s.lines, got[n:min(n+32<<10, len(got))]); err != nil {
				t.Fatal(err)
			}
		}
		if string(got) != want {
			t.Error("the reply differs")
		}
		time.Sleep(time.Hour)
		s.ping(2)
	})
}

func TestClientThatLeaves(t *testing.T) {
	s := start(t, stdio.Options{}, nil)
	s.initialize()
	s.out.Close()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if err := <-s.ended; err != nil {
		t.Errorf("the session ended with %v", err)
	}
	s.ended <- nil // for the cleanup
}

// A counter is a client's end that takes nothing until it is opened and counts
// the writes.
type counter struct {
	open   chan struct{}
	writes chan string
}

func (c *counter) Write(p []byte) (int, error) {
	<-c.open
	c.writes <- string(p)
	return len(p), nil
}

func TestRepliesLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &counter{open: make(chan struct{}), writes: make(chan string, 100)}
		in, feed := io.Pipe()
		done := make(chan error)
		go func() {
			done <- newServer(nil).Run(t.Context(), stdio.New(in, out, stdio.Options{MaxRequest: 1000, Log: slog.New(slog.DiscardHandler)}))
		}()
		for id := range 50 {
			fmt.Fprintf(feed, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id)
			synctest.Wait() // the first is being written, the others are queued
		}
		close(out.open)
		feed.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		close(out.writes)
		var writes []string
		for w := range out.writes {
			writes = append(writes, w)
		}
		if len(writes) != 2 || writes[0] != pong(0)+"\n" || strings.Count(writes[1], "\n") != 49 {
			t.Errorf("%d writes: %q", len(writes), writes)
		}
	})
}

func TestLargeTexts(t *testing.T) {
	store := body.NewStore()
	var texts []*text
	const room = 800
	limit := len(answer(1, "")) + room*len(`\n`)
	s := start(t, stdio.Options{Bodies: store, MaxResponse: int64(limit)}, map[string]tool{
		"text": func(_ context.Context, req *mcp.CallToolRequest) (string, error) {
			var args struct{ Size, Fail int }
			if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
				return "", err
			}
			x := &text{s: strings.Repeat("\n", args.Size)}
			if args.Fail > 0 {
				x.err = io.ErrUnexpectedEOF
			}
			texts = append(texts, x)
			return store.Put(x).Plain(), nil
		}})
	s.initialize()
	ask := func(id int, args string) {
		s.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"text","arguments":%s}}`, id, args)
	}
	ask(1, fmt.Sprintf(`{"size":%d}`, room))
	s.expect(answer(1, strings.Repeat("\n", room)))

	ask(2, fmt.Sprintf(`{"size":%d}`, room+1))
	tooLong := fmt.Sprintf(`{"status":"error","error_code":"ERR_RESOURCE_LIMIT_EXCEEDED","error_message":"the response of %d bytes exceeds CONDUIT_MAX_RESPONSE_BYTES (%d); ask for less in one call"}`, limit+2, limit)
	s.expect(strings.Replace(answer(2, tooLong), "]}}", `],"isError":true}}`, 1))

	ask(3, `{"size":1,"fail":1}`)
	s.expect(answer(3, "\n\nERR_FS_READ_FAILED: reading the source failed while it was being sent; the content above is incomplete"))
	if !strings.Contains(s.log.String(), "unexpected EOF") {
		t.Errorf("log: %s", s.log)
	}
	for _, x := range texts {
		<-x.closed()
	}
}

func TestLongReplyOfAnotherMethod(t *testing.T) {
	s := start(t, stdio.Options{MaxResponse: 300}, map[string]tool{strings.Repeat("x", 100): after(0), strings.Repeat("y", 100): after(0)})
	s.initialize()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got := s.receive(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,`) || !strings.Contains(got, `"error_code":"ERR_RESOURCE_LIMIT_EXCEEDED"`) {
		t.Errorf("got %s", got)
	}
}

func TestFramedText(t *testing.T) {
	store := body.NewStore()
	s := start(t, stdio.Options{Bodies: store}, map[string]tool{"text": func(context.Context, *mcp.CallToolRequest) (string, error) {
		return store.Put(&text{s: "“half", err: io.ErrUnexpectedEOF}).Plain(), nil
	}})
	send := func(m string) { fmt.Fprintf(s.feed, "Content-Length: %d\r\n\r\n%s", len(m), m) }
	receive := func() string {
		var n int
		if _, err := fmt.Fscanf(s.lines, "Content-Length: %d\r\n\r\n", &n); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, n)
		io.ReadFull(s.lines, b)
		return string(b)
	}
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	receive()
	send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"text"}}`)
	want := answer(1, "“half\nERR_FS_READ_FAILED: reading the source failed while it was being sent; the content above is incomplete")
	if got := receive(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMessagesOfTheServerPassThrough(t *testing.T) {
	s := start(t, stdio.Options{}, map[string]tool{"ask": func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1}); err != nil {
			return "", err
		}
		return "pinged", req.Session.Ping(ctx, nil)
	}})
	s.initialize()
	s.call(1, "ask")
	s.expect(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`)
	var ping struct {
		ID     int64
		Method string
	}
	if err := json.Unmarshal([]byte(s.receive()), &ping); err != nil || ping.Method != "ping" {
		t.Fatalf("got %+v, %v", ping, err)
	}
	s.send(`{"jsonrpc":"2.0","id":%d.5,"error":{"code":1,"message":"of no request"}}`, ping.ID)
	s.send(`{"jsonrpc":"2.0","id":%d,"result":{}}`, ping.ID)
	s.expect(answer(1, "pinged"))
}

func TestRepliesThatAreMended(t *testing.T) {
	in, _ := io.Pipe()
	var out bytes.Buffer
	c, err := stdio.New(in, &out, stdio.Options{MaxRequest: 1, Log: slog.New(slog.DiscardHandler)}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	id, _ := jsonrpc.MakeID("x")
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: json.RawMessage("{bad")}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,`) {
		t.Errorf("got %s", got)
	}
	out.Reset()
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Message: "no code"}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"no code",`) {
		t.Errorf("got %s", got)
	}
	if c.SessionID() != "" {
		t.Error("a session id")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Write(ctx, &jsonrpc.Request{Method: "notifications/progress"}); err != context.Canceled {
		t.Errorf("err = %v", err)
	}
	if _, err := c.Read(ctx); err != context.Canceled {
		t.Errorf("err = %v", err)
	}
}

// A huge is an input of one long line.
type huge struct {
	head, tail string
	left       int
}

func (h *huge) Read(p []byte) (n int, err error) {
	if n = copy(p, h.head); n > 0 {
		h.head = h.head[n:]
		return n, nil
	}
	if n = min(h.left, len(p)); n > 0 {
		h.left -= n
		for i := range n {
			p[i] = 'x'
		}
		return n, nil
	}
	if n = copy(p, h.tail); n > 0 {
		h.tail = h.tail[n:]
		return n, nil
	}
	return 0, io.EOF
}

func (*huge) Close() error { return nil }

func TestLongLineTakesNoMemory(t *testing.T) {
	const limit = 4 << 20
	in := &huge{`{"method":"tools/call","params":{"x":"`, `"},"id":7}` + "\n" + `{"jsonrpc":"2.0","id":8,"method":"ping"}`, 200 << 20}
	var out bytes.Buffer
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := newServer(nil).Run(t.Context(), stdio.New(in, &out, stdio.Options{MaxRequest: limit, Log: slog.New(slog.DiscardHandler)})); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&now)
	if n := now.TotalAlloc - before.TotalAlloc; n > limit+2<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
	got := out.String()
	if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":7,"result":{"content":[`) || !strings.HasSuffix(got, pong(8)+"\n") {
		t.Errorf("got %s", got)
	}
	for _, part := range []string{"Incoming MCP request payload exceeds CONDUIT_MAX_PAYLOAD_SIZE_BYTES (4194304 bytes)", `\"error_code\":\"ERR_RESOURCE_LIMIT_EXCEEDED\"`, `"isError":true`} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in %s", part, got)
		}
	}
}

// A client that sends errors and reads nothing is made to wait, and the session can still end.
func TestFloodOfGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, stdio.Options{}, nil)
		var sent atomic.Int64
		go func() {
			for range 10000 {
				if _, err := io.WriteString(s.feed, "{bad\n"); err != nil {
					return
				}
				sent.Add(1)
			}
		}()
		synctest.Wait()
		if n := sent.Load(); n < 1000 || n > 1100 {
			t.Errorf("%d messages were read", n)
		}
		s.transport.Shutdown()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		s.ended <- nil // for the cleanup
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("wires cut") }
func (failing) Close() error             { return nil }

func TestReadErrorEndsTheSession(t *testing.T) {
	log := &logged{}
	err := newServer(nil).Run(t.Context(), stdio.New(failing{}, io.Discard, stdio.Options{MaxRequest: 1, Log: slog.New(slog.NewTextHandler(log, nil))}))
	if err != nil || !strings.Contains(log.String(), "wires cut") {
		t.Errorf("err = %v, log: %s", err, log)
	}
}

type exploding struct{}

func (exploding) Read([]byte) (int, error) { panic("boom") }
func (exploding) Close() error             { return nil }

func TestPanicEndsTheSession(t *testing.T) {
	log := &logged{}
	err := newServer(nil).Run(t.Context(), stdio.New(exploding{}, io.Discard, stdio.Options{MaxRequest: 1, Log: slog.New(slog.NewTextHandler(log, nil))}))
	if err != nil || !strings.Contains(log.String(), "boom") {
		t.Errorf("err = %v, log: %s", err, log)
	}
}
