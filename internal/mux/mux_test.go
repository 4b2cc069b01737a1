package mux_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/mux"
	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

type none struct{}

type params struct {
	Offset int `json:"offset,omitempty" jsonschema_description:"First."`
}

// served is an op t.run that answers with what f returns, mounted.
func served[Out any](t *testing.T, o mux.Options, f func(context.Context) (Out, error), mw ...registry.Middleware) *mux.Mux {
	t.Helper()
	run := registry.New(registry.Desc{Tool: "t", Name: "run", Summary: "Run.", Effect: registry.ReadOnly},
		func(none, *registry.Env) (registry.Func[params, Out], error) {
			return func(ctx context.Context, _ params) (Out, error) { return f(ctx) }, nil
		})
	set, err := registry.NewSet([]registry.Tool{{Name: "t", Discriminator: "operation", Notices: true}}, []*registry.Op{run})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	env := &registry.Env{Log: log, Now: time.Now, Lookup: func(string) (string, bool) { return "", false }}
	chain := registry.Chain(append([]registry.Middleware{middleware.Errors(log)}, append(mw, middleware.Decode())...)...)
	m, err := mux.New(set, env, chain, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(t *testing.T, m *mux.Mux, args string) *mcp.CallToolResult {
	t.Helper()
	res, err := m.Call(t.Context(), "t", json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func text(t *testing.T, res *mcp.CallToolResult, n int) string {
	t.Helper()
	if n >= len(res.Content) {
		t.Fatalf("no block %d", n)
	}
	c, ok := res.Content[n].(*mcp.TextContent)
	if !ok {
		t.Fatalf("block %d is %T", n, res.Content[n])
	}
	return c.Text
}

const run = `{"operation":"run"}`

type object struct {
	A string `json:"a"`
}

type item struct {
	Name string         `json:"name"`
	Text *registry.Text `json:"text,omitempty"`
	registry.Outcome
}

func (i *item) Trim(err error) {
	*i = item{Name: i.Name}
	i.Settle(err)
}

func good(name, s string) item {
	i := item{Name: name, Text: registry.TextOf(s)}
	i.Settle(nil)
	return i
}

func value[T any](v T) func(context.Context) (T, error) {
	return func(context.Context) (T, error) { return v, nil }
}

// The op, the view and the path that a failure tells are found in one scan of the
// arguments: they may be anything from then on.
func TestArgumentsAreScannedOnceBeforeTheyAreDecoded(t *testing.T) {
	spoil := func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Answer, error) {
			for i := range c.Args[:bytes.Index(c.Args, []byte(`,"operation"`))] {
				c.Args[i] = '"'
			}
			return registry.Answer{}, fault.New(fault.FSNotFound, "no file")
		}
	}
	m := served(t, mux.Options{}, value(object{}), spoil)
	res := ask(t, m, `{"content":"`+strings.Repeat("x", 1000)+`","operation":"run","path":"p"}`)
	if got, want := text(t, res, 0), `{"status":"error","error_code":"ERR_FS_NOT_FOUND","error_message":"no file","path":"p"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNoticeAndStructured(t *testing.T) {
	notice := map[string]string{"type": "info_notice"}
	remarked := func(ctx context.Context) ([]item, error) {
		registry.AddRemark(ctx, "MORE_RESULTS", "More.", registry.More{NextCursor: "c"})
		return []item{good("a", "<x>")}, nil
	}
	const note, remark = `{"type":"info_notice"}`, `{"type":"info_notice","notice_code":"MORE_RESULTS","message":"More.","details":{"next_cursor":"c"}}`
	const one = `{"name":"a","text":"<x>","status":"success"}`
	for _, c := range []struct {
		name       string
		mount      func(o mux.Options, mw ...registry.Middleware) *mux.Mux
		text       string // with the notice
		plain      string // without
		structured string // with the notice
		remarks    string
	}{
		{"array", func(o mux.Options, mw ...registry.Middleware) *mux.Mux { return served(t, o, remarked, mw...) },
			"[" + note + "," + one + "]", "[" + one + "]", `{"results":[` + one + `],"notice":` + note + `,"remarks":[` + remark + `]}`, "[" + remark + "]"},
		{"empty array", func(o mux.Options, mw ...registry.Middleware) *mux.Mux { return served(t, o, value([]item{}), mw...) },
			"[" + note + "]", "[]", `{"results":[],"notice":` + note + `}`, ""},
		{"object", func(o mux.Options, mw ...registry.Middleware) *mux.Mux {
			return served(t, o, value(object{"&"}), mw...)
		},
			"[" + note + `,{"a":"&"}]`, `{"a":"&"}`, `{"a":"&","notice":` + note + `}`, ""},
		{"empty object", func(o mux.Options, mw ...registry.Middleware) *mux.Mux { return served(t, o, value(none{}), mw...) },
			"[" + note + ",{}]", "{}", `{"notice":` + note + `}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 5 {
				m := c.mount(mux.Options{Structured: true}, middleware.Notice(notice))
				res := ask(t, m, run)
				if got := text(t, res, 0); got != c.text {
					t.Errorf("got  %s\nwant %s", got, c.text)
				}
				if got := string(res.StructuredContent.(json.RawMessage)); got != c.structured {
					t.Errorf("got  %s\nwant %s", got, c.structured)
				}
				if c.remarks != "" {
					if got := text(t, res, 1); got != c.remarks {
						t.Errorf("remarks: %s", got)
					}
				} else if len(res.Content) != 1 {
					t.Errorf("%d blocks", len(res.Content))
				}
				if got := text(t, ask(t, m, run), 0); got != c.plain {
					t.Errorf("the second call: %s", got)
				}
			}
			if res := ask(t, c.mount(mux.Options{}), run); res.StructuredContent != nil || text(t, res, 0) != c.plain || res.IsError {
				t.Errorf("without structured content: %+v", res)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	m := served(t, mux.Options{}, value(object{}))
	for _, c := range []struct{ tool, args, want string }{
		{"u", run, `{"status":"error","error_code":"ERR_UNKNOWN_TOOL","error_message":"there is no tool \"u\"; the tools are t"}`},
		{"t", `{"operation":"walk"}`, `{"status":"error","error_code":"ERR_UNKNOWN_OPERATION_ACTION","error_message":"t has no operation \"walk\"; it must be one of \"run\""}`},
		{"t", `{"operation":"walk","path":"p"}`, `{"status":"error","error_code":"ERR_UNKNOWN_OPERATION_ACTION","error_message":"t has no operation \"walk\"; it must be one of \"run\"","path":"p"}`},
		{"t", `{}`, `{"status":"error","error_code":"ERR_INVALID_PARAMETER","error_message":"t: operation is required and must be one of \"run\""}`},
		{"t", ``, `{"status":"error","error_code":"ERR_INVALID_PARAMETER","error_message":"t: operation is required and must be one of \"run\""}`},
		{"t", `{"operation":null}`, `{"status":"error","error_code":"ERR_INVALID_PARAMETER","error_message":"t: operation is required and must be one of \"run\""}`},
		{"t", `{"operation":["run"]}`, `{"status":"error","error_code":"ERR_INVALID_PARAMETER","error_message":"t: operation is required and must be one of \"run\""}`},
	} {
		res, err := m.Call(t.Context(), c.tool, json.RawMessage(c.args))
		if err != nil || !res.IsError || text(t, res, 0) != c.want {
			t.Errorf("%s %s: %s, %v", c.tool, c.args, text(t, res, 0), err)
		}
	}
}

func TestFailures(t *testing.T) {
	bad := item{Name: "b"}
	bad.Settle(fault.New(fault.FSNotFound, "no file"))
	for _, c := range []struct {
		name  string
		m     *mux.Mux
		want  string
		error bool
	}{
		{"call", served(t, mux.Options{}, func(context.Context) (object, error) { return object{"lost"}, fault.New(fault.FSNotFound, "no file") }),
			`{"status":"error","error_code":"ERR_FS_NOT_FOUND","error_message":"no file"}`, true},
		{"panic", served(t, mux.Options{}, func(context.Context) (object, error) { panic("secret") }),
			`{"status":"error","error_code":"ERR_INTERNAL_SERVER_ERROR","error_message":"internal error; the server's log has the details"}`, true},
		{"cannot be encoded", served(t, mux.Options{}, value(math.Inf(1))),
			`{"status":"error","error_code":"ERR_INTERNAL_SERVER_ERROR","error_message":"internal error; the server's log has the details"}`, true},
		{"every item", served(t, mux.Options{}, value([]item{bad, bad})),
			`[{"name":"b","status":"error","error_code":"ERR_FS_NOT_FOUND","error_message":"no file"},{"name":"b","status":"error","error_code":"ERR_FS_NOT_FOUND","error_message":"no file"}]`, true},
		{"some items", served(t, mux.Options{}, value([]item{bad, good("a", "x")})),
			`[{"name":"b","status":"error","error_code":"ERR_FS_NOT_FOUND","error_message":"no file"},{"name":"a","text":"x","status":"success"}]`, false},
	} {
		if res := ask(t, c.m, run); text(t, res, 0) != c.want || res.IsError != c.error {
			t.Errorf("%s: %s, IsError %t", c.name, text(t, res, 0), res.IsError)
		}
	}
}

// A source is a body that counts how often it is closed.
type source struct {
	text   string
	fail   bool
	closed *atomic.Int32
}

func (s source) Size() int64 { return int64(len(s.text)) }

func (s source) EscapedSize(layers int) int64 { return int64(body.EscapedLen([]byte(s.text), layers)) }

func (s source) WriteTo(w io.Writer) (int64, error) {
	if s.fail {
		return 0, errors.New("source lost")
	}
	n, err := io.WriteString(w, s.text)
	return int64(n), err
}

func (s source) Close() error { s.closed.Add(1); return nil }

func TestResponseCap(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprint("streamed ", streamed), func(t *testing.T) {
			var closed atomic.Int32
			from := func(name string, n int) item {
				i := item{Name: name, Text: registry.TextFrom(source{strings.Repeat("\n", n), false, &closed})}
				i.Settle(nil)
				return i
			}
			o := mux.Options{MaxResponse: 4096}
			if streamed {
				o.Bodies = body.NewStore()
			}
			m := served(t, o, func(context.Context) ([]item, error) {
				return []item{from("a", 300), from("b", 2000), from("c", 100), from("d", 1000)}, nil
			})
			res := ask(t, m, run)
			line := expanded(t, o.Bodies, res)
			if len(line) > 4096 {
				t.Errorf("%d bytes", len(line))
			}
			var got mcp.CallToolResult
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatal(err)
			}
			var items []struct {
				Name, Text, Status string
				Code               fault.Code `json:"error_code"`
				Message            string     `json:"error_message"`
			}
			if err := json.Unmarshal([]byte(text(t, &got, 0)), &items); err != nil || len(items) != 4 {
				t.Fatalf("%v: %s", err, line)
			}
			for i, want := range []struct {
				size int
				code fault.Code
			}{{300, ""}, {0, fault.LimitExceeded}, {100, ""}, {0, fault.LimitExceeded}} {
				if it := items[i]; len(it.Text) != want.size || it.Code != want.code || it.Name != "abcd"[i:i+1] {
					t.Errorf("item %d: %d bytes, %s", i, len(it.Text), it.Code)
				}
			}
			if !strings.Contains(items[1].Message, "CONDUIT_MAX_RESPONSE_BYTES (4096); read it in parts with offset and length") {
				t.Error(items[1].Message)
			}
			if closed.Load() != 4 {
				t.Errorf("%d of 4 bodies closed", closed.Load())
			}
			if got.IsError {
				t.Error("a response with successes is an error")
			}

			closed.Store(0)
			res = ask(t, served(t, o, func(context.Context) (item, error) { return from("whole", 5000), nil }), run)
			if !res.IsError || closed.Load() != 1 {
				t.Errorf("a response too large as a whole: IsError %t, its body closed %d times", res.IsError, closed.Load())
			}
		})
	}
	o := mux.Options{MaxResponse: 4096}
	if res := ask(t, served(t, o, value([]item{good("a", strings.Repeat("x", 5000))})), run); !res.IsError || !strings.HasPrefix(text(t, res, 0), `[{"name":"a","status":"error","error_code":"ERR_RESOURCE_LIMIT_EXCEEDED"`) {
		t.Errorf("every item shed: %+v", text(t, res, 0))
	}
	if res := ask(t, served(t, o, value(object{strings.Repeat("x", 5000)})), run); !res.IsError || !strings.HasPrefix(text(t, res, 0), `{"status":"error","error_code":"ERR_RESOURCE_LIMIT_EXCEEDED"`) {
		t.Errorf("whole: %s", text(t, res, 0))
	}
	if res := ask(t, served(t, mux.Options{}, value(object{strings.Repeat("x", 5000)})), run); res.IsError {
		t.Error("a limit where there is none")
	}
	o.Structured = true // counts too
	if res := ask(t, served(t, o, value(object{strings.Repeat("x", 2500)})), run); !res.IsError {
		t.Error("text and structured content together exceed the limit")
	}
}

// expanded is the result as it goes over the wire.
func expanded(t *testing.T, store *body.Store, res *mcp.CallToolResult) []byte {
	t.Helper()
	line, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	if store == nil {
		return line
	}
	var b bytes.Buffer
	if err := store.Expand(&b, line); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLargeTextEqualsPlainResult(t *testing.T) {
	const piece = "line \"quoted\" \\ é 😀 <&> \u2028\x01\t\n"
	for _, view := range []string{"full", "lean"} {
		for _, structured := range []bool{false, true} {
			var results []string
			for _, store := range []*body.Store{nil, body.NewStore()} {
				var closed atomic.Int32
				m := served(t, mux.Options{Bodies: store, Structured: structured}, func(context.Context) (leanItems, error) {
					i := item{Name: "a", Text: registry.TextFrom(source{strings.Repeat(piece, 2000), false, &closed})}
					i.Settle(nil)
					return leanItems{i, good("b", "small")}, nil
				}, middleware.Notice("n"))
				res := ask(t, m, `{"operation":"run","view":"`+view+`"}`)
				line := expanded(t, store, res)
				var v any
				if err := json.Unmarshal(line, &v); err != nil {
					t.Fatal(err)
				}
				again, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, string(again))
				if closed.Load() != 1 {
					t.Errorf("closed %d times", closed.Load())
				}
			}
			if results[0] != results[1] {
				t.Errorf("%s, structured %t: streamed and plain results differ:\n%.600s\n%.600s", view, structured, results[0], results[1])
			}
		}
	}
}

type leanItems []item

func (list leanItems) Lean(w io.Writer) error {
	for _, i := range list {
		if _, err := io.WriteString(w, i.Name+": "); err != nil {
			return err
		}
		if i.Text != nil {
			if _, err := i.Text.WriteTo(w); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestFailingSourceInMemoryFailsTheCall(t *testing.T) {
	var closed atomic.Int32
	m := served(t, mux.Options{}, value([]item{{Text: registry.TextFrom(source{"x", true, &closed})}}))
	if res := ask(t, m, run); !res.IsError || strings.Contains(text(t, res, 0), "source lost") {
		t.Errorf("%s", text(t, res, 0))
	}
	if closed.Load() != 1 {
		t.Errorf("closed %d times", closed.Load())
	}
}

func TestLean(t *testing.T) {
	f := func(ctx context.Context) (leanItems, error) {
		registry.AddRemark(ctx, "R", "Remark.", nil)
		return leanItems{good("a", "x\xff")}, nil
	}
	m := served(t, mux.Options{Structured: true}, f, middleware.Notice("n"))
	res := ask(t, m, `{"operation":"run","view":"lean"}`)
	if text(t, res, 0) != "a: x\uFFFD" || text(t, res, 1) != `["n",{"type":"info_notice","notice_code":"R","message":"Remark."}]` || res.StructuredContent != nil {
		t.Errorf("%q, %q, %v", text(t, res, 0), text(t, res, 1), res.StructuredContent)
	}
	if res := ask(t, m, run); !strings.HasPrefix(text(t, res, 0), "[{") {
		t.Errorf("the default view: %s", text(t, res, 0))
	}
	m = served(t, mux.Options{LeanDefault: true}, f)
	if res := ask(t, m, run); !strings.HasPrefix(text(t, res, 0), "a: ") {
		t.Errorf("lean by default: %s", text(t, res, 0))
	}
	if res := ask(t, m, `{"operation":"run","view":"full"}`); !strings.HasPrefix(text(t, res, 0), "[{") {
		t.Errorf("full on demand: %s", text(t, res, 0))
	}
	if res := ask(t, m, `{"operation":"run","view":"big"}`); !res.IsError || !strings.Contains(text(t, res, 0), `view must be one of`) {
		t.Errorf("a view that does not exist: %s", text(t, res, 0))
	}
	m = served(t, mux.Options{}, func(context.Context) (leanItems, error) { return nil, fault.New(fault.FSNotFound, "no file") })
	if res := ask(t, m, `{"operation":"run","view":"lean"}`); !res.IsError || text(t, res, 0) != "ERR_FS_NOT_FOUND: no file" {
		t.Errorf("failure in lean: %s", text(t, res, 0))
	}
}

type pictured struct {
	A string `json:"a"`
}

func (pictured) Blocks() []registry.Block {
	return []registry.Block{{Kind: "image", MIME: "image/png", Data: []byte("PNG")}, {Kind: "audio", MIME: "audio/wav", Data: []byte("WAV")}}
}

func TestMediaFollowTheText(t *testing.T) {
	res := ask(t, served(t, mux.Options{}, func(ctx context.Context) (pictured, error) {
		registry.AddRemark(ctx, "R", "Remark.", nil)
		return pictured{"x"}, nil
	}), run)
	if len(res.Content) != 4 || text(t, res, 0) != `{"a":"x"}` || !strings.HasPrefix(text(t, res, 1), "[{") {
		t.Fatalf("%+v", res.Content)
	}
	if i, ok := res.Content[2].(*mcp.ImageContent); !ok || string(i.Data) != "PNG" || i.MIMEType != "image/png" {
		t.Errorf("%+v", res.Content[2])
	}
	if a, ok := res.Content[3].(*mcp.AudioContent); !ok || string(a.Data) != "WAV" {
		t.Errorf("%+v", res.Content[3])
	}
}

type picturedItem struct {
	Name string `json:"name"`
	registry.Outcome
	image []byte
}

func (p *picturedItem) Trim(err error) {
	*p = picturedItem{Name: p.Name}
	p.Settle(err)
}

func (p *picturedItem) Blocks() []registry.Block {
	if p.image == nil {
		return nil
	}
	return []registry.Block{{Kind: "image", MIME: "image/png", Data: p.image}}
}

func pictures(sizes ...int) (list []picturedItem) {
	for i, n := range sizes {
		list = append(list, picturedItem{Name: fmt.Sprint(i), image: make([]byte, n)})
		list[i].Settle(nil)
	}
	return list
}

// What no longer fits is left out with its item; a smaller one after it goes.
func TestMediaOfItemsOverTheCap(t *testing.T) {
	for _, view := range []string{"full", "lean"} {
		res := ask(t, served(t, mux.Options{MaxResponse: 8192, LeanDefault: view == "lean"}, value(pictures(2000, 4000, 1000))), run)
		if res.IsError || len(res.Content) != 3 || strings.Count(text(t, res, 0), "ERR_RESOURCE_LIMIT_EXCEEDED") != 1 {
			t.Fatalf("%s: %+v", view, res.Content)
		}
		for i, n := range []int{2000, 1000} {
			if c, ok := res.Content[i+1].(*mcp.ImageContent); !ok || len(c.Data) != n {
				t.Errorf("%s: block %d is %T, want an image of %d bytes", view, i+1, res.Content[i+1], n)
			}
		}
		line, err := json.Marshal(res)
		if err != nil || len(line) > 8192 {
			t.Errorf("%s: the response takes %d bytes, %v", view, len(line), err)
		}
	}
	res := ask(t, served(t, mux.Options{MaxResponse: 4096}, value(pictures(4096, 5000))), run)
	if !res.IsError || len(res.Content) != 1 {
		t.Errorf("no image fits: %+v", res.Content)
	}
}

type albums struct{}

func (albums) Blocks() []registry.Block { return pictures(4096)[0].Blocks() }

func TestMediaOverTheCap(t *testing.T) {
	res := ask(t, served(t, mux.Options{MaxResponse: 4096}, value(albums{})), run)
	if !res.IsError || len(res.Content) != 1 || !strings.Contains(text(t, res, 0), "ERR_RESOURCE_LIMIT_EXCEEDED") {
		t.Errorf("%+v", res.Content)
	}
}

func TestCancelledCall(t *testing.T) {
	var closed atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	m := served(t, mux.Options{}, func(context.Context) ([]item, error) {
		cancel()
		return []item{{Text: registry.TextFrom(source{"x", false, &closed})}}, nil
	})
	if res, err := m.Call(ctx, "t", json.RawMessage(run)); !errors.Is(err, context.Canceled) || res != nil {
		t.Errorf("%v, %v", res, err)
	}
	if closed.Load() != 1 {
		t.Error("the body of a cancelled call stays open")
	}
}

// connected is a client of m through the SDK.
func connected(t *testing.T, m *mux.Mux, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	m.Mount(server)
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), far, nil); err != nil {
		t.Fatal(err)
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, o).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestMount(t *testing.T) {
	told, seen := make(chan float64, 10), make(chan struct{})
	m := served(t, mux.Options{}, func(ctx context.Context) (object, error) {
		registry.Progress(ctx, 1, 2, "half")
		<-seen // nothing is sent once the call has ended
		return object{"x"}, nil
	})
	s := connected(t, m, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		if r.Params.ProgressToken == "tok" && r.Params.Total == 2 {
			told <- r.Params.Progress
			close(seen)
		}
	}})
	p := &mcp.CallToolParams{Name: "t", Arguments: json.RawMessage(run)}
	p.SetProgressToken("tok")
	res, err := s.CallTool(t.Context(), p)
	if err != nil || text(t, res, 0) != `{"a":"x"}` {
		t.Fatalf("%+v, %v", res, err)
	}
	if n := <-told; n != 1 {
		t.Errorf("progress %v", n)
	}
	res, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "nope", Arguments: json.RawMessage(`{}`)})
	if err != nil || !res.IsError || !strings.Contains(text(t, res, 0), "ERR_UNKNOWN_TOOL") {
		t.Errorf("unknown tool: %+v, %v", res, err)
	}
}

func TestNoticeWaitsForASuccessThatCanBeSent(t *testing.T) {
	size := 5000
	batch := served(t, mux.Options{MaxResponse: 4096}, func(context.Context) ([]item, error) {
		return []item{good("a", strings.Repeat("x", size))}, nil
	}, middleware.Notice(map[string]string{"type": "info_notice"}))
	whole := served(t, mux.Options{MaxResponse: 4096}, func(context.Context) (object, error) {
		return object{strings.Repeat("x", size)}, nil
	}, middleware.Notice(map[string]string{"type": "info_notice"}))
	for _, m := range []*mux.Mux{batch, whole} {
		size = 5000
		if res := ask(t, m, run); !res.IsError || strings.Contains(text(t, res, 0), "info_notice") {
			t.Errorf("too large: %s", text(t, res, 0))
		}
		size = 5
		if res := ask(t, m, run); res.IsError || !strings.HasPrefix(text(t, res, 0), `[{"type":"info_notice"},`) {
			t.Errorf("the first success that can be sent: %s", text(t, res, 0))
		}
		if res := ask(t, m, run); strings.Contains(text(t, res, 0), "info_notice") {
			t.Errorf("the second: %s", text(t, res, 0))
		}
	}
}
