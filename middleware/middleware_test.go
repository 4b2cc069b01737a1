package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

type none struct{}

type params struct {
	Path  registry.Path     `json:"path"`
	More  []registry.Source `json:"more,omitempty"`
	Count int               `json:"count,omitempty"`
	Long  string            `json:"long,omitempty"`

	Content string  `json:"content,omitempty" log:"content"`
	Token   *string `json:"key,omitempty" log:"secret"`
	Any     any     `json:"any,omitempty" log:"secret"`
	Entries []entry `json:"entries,omitempty"`
}

type entry struct {
	Path registry.Path `json:"path"`
	Text string        `json:"text" log:"content"`
	N    int           `json:"n"`
	B    bool          `json:"b"`
}

var op = registry.New(registry.Desc{Tool: "t", Name: "a", Summary: "S.", Effect: registry.ReadOnly},
	func(none, *registry.Env) (registry.Func[params, string], error) { return nil, nil })

func newCall(args string) *registry.Call {
	return &registry.Call{Tool: registry.Tool{Name: "t", Discriminator: "operation", Notices: true, Echo: true}, Op: op, Args: json.RawMessage(args)}
}

func answer(a registry.Answer, err error) registry.Handler {
	return func(context.Context, *registry.Call) (registry.Answer, error) { return a, err }
}

// records collects a log.
func records(level slog.Level) (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level})), &b
}

func TestErrors(t *testing.T) {
	log, logged := records(slog.LevelDebug)
	for _, c := range []struct {
		name string
		next registry.Handler
		want string
	}{
		{"success", answer(registry.Answer{Value: "v"}, nil), `"v"`},
		{"fault", answer(registry.Answer{Value: "lost"}, fault.New(fault.FSNotFound, "no file")), `{"status":"error","error_code":"ERR_FS_NOT_FOUND","error_message":"no file","action_performed":"a","path":"p"}`},
		{"wrapped", answer(registry.Answer{}, fmt.Errorf("secret: %w", fault.New(fault.FSNotFound, "no file"))), `{"status":"error","error_code":"ERR_FS_NOT_FOUND","error_message":"no file","action_performed":"a","path":"p"}`},
		{"system", answer(registry.Answer{}, &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission}), `{"status":"error","error_code":"ERR_FS_ACCESS_DENIED","error_message":"the operating system denies access: /x","action_performed":"a","path":"p"}`},
		{"unknown", answer(registry.Answer{}, errors.New("secret")), `{"status":"error","error_code":"ERR_INTERNAL_SERVER_ERROR","error_message":"internal error; the server's log has the details","action_performed":"a","path":"p"}`},
		{"panic", func(context.Context, *registry.Call) (registry.Answer, error) { panic("secret") }, `{"status":"error","error_code":"ERR_INTERNAL_SERVER_ERROR","error_message":"internal error; the server's log has the details","action_performed":"a","path":"p"}`},
	} {
		a, err := middleware.Errors(log)(c.next)(t.Context(), newCall(`{"path":"p"}`))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := json.Marshal(a.Value)
		if err != nil || string(got) != c.want || a.Failed != (c.name != "success") {
			t.Errorf("%s: %s, failed %t, %v\nwant %s", c.name, got, a.Failed, err, c.want)
		}
	}
	if text := logged.String(); !strings.Contains(text, "panic") || !strings.Contains(text, "value=secret") || !strings.Contains(text, "stack=") {
		t.Errorf("the panic is not in the log: %s", text)
	}
}

func TestErrorsLeavesCancelledCalls(t *testing.T) {
	log, _ := records(slog.LevelDebug)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := middleware.Errors(log)(answer(registry.Answer{}, ctx.Err()))(ctx, newCall(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestErrorsSpeaksTheToolsDialect(t *testing.T) {
	log, _ := records(slog.LevelDebug)
	c := newCall(`{}`)
	c.Tool.Errors = fault.Dialect{
		Rename: map[fault.Code]fault.Code{fault.FSNotFound: "GONE"},
		Encode: func(code fault.Code, message string) any { return string(code) + ": " + message },
	}
	a, err := middleware.Errors(log)(answer(registry.Answer{}, fault.New(fault.FSNotFound, "no file")))(t.Context(), c)
	if err != nil || a.Value != "GONE: no file" {
		t.Errorf("%v, %v", a.Value, err)
	}
}

type item struct{ registry.Outcome }

func settled(err error) item {
	var i item
	i.Settle(err)
	return i
}

func TestLog(t *testing.T) {
	const args = `{"path":"/p/q","operation":"a","content":"TOP SECRET","key":"TOP SECRET","any":{"TOP SECRET":"TOP SECRET"},"unknown":["TOP SECRET"],"count":"5","more":{"TOP":"SECRET"},"long":"` +
		`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"` +
		`,"entries":[{"path":"e","text":"TOP SECRET","content":"TOP SECRET"},{"n":7,"b":true},"s",["TOP SECRET"]]}`
	batch := []item{settled(nil), settled(fault.New(fault.FSNotFound, "no file")), settled(fault.Hide(fault.FSOperation, errors.New("root cause"), "shown"))}
	for _, c := range []struct {
		name  string
		level slog.Level
		next  registry.Handler
		want  []string
		lines int
	}{
		{"success", slog.LevelDebug, answer(registry.Answer{Value: "TOP SECRET"}, nil),
			[]string{`level=DEBUG msg=request tool=t op=t.a params="{path:\"/p/q\" operation:\"a\" content:(12 bytes) key:(12 bytes) any:(27 bytes) unknown:(14 bytes) count:(3 bytes) more:(16 bytes) long:(`, `entries:[{path:\"e\" text:(12 bytes) content:(12 bytes)} {n:7 b:true} (3 bytes) (14 bytes)]}`, `level=INFO msg=done op=t.a took_ms=`, "results=1 failed=0"}, 2},
		{"at INFO", slog.LevelInfo, answer(registry.Answer{Value: "v"}, nil), []string{"msg=done"}, 1},
		{"failure", slog.LevelInfo, answer(registry.Answer{}, fault.Hide(fault.FSReadFailed, errors.New("root cause"), "shown")),
			[]string{"level=ERROR msg=failed op=t.a", "error_code=ERR_FS_READ_FAILED", `err="shown (cause: root cause)"`}, 1},
		{"unknown", slog.LevelInfo, answer(registry.Answer{}, errors.New("raw")), []string{"error_code=ERR_INTERNAL_SERVER_ERROR", "err=raw"}, 1},
		{"items", slog.LevelInfo, answer(registry.Answer{Value: batch}, nil),
			[]string{"level=ERROR msg=\"item failed\" op=t.a item=1 error_code=ERR_FS_NOT_FOUND err=\"no file\"", `item=2 error_code=ERR_FS_OPERATION_FAILED err="shown (cause: root cause)"`, "results=3 failed=2"}, 3},
		{"panic", slog.LevelInfo, func(context.Context, *registry.Call) (registry.Answer, error) { panic("oh") },
			[]string{"level=ERROR msg=panic op=t.a value=oh stack=", "level=ERROR msg=failed"}, 2},
	} {
		log, logged := records(c.level)
		_, err := middleware.Log(log)(c.next)(t.Context(), newCall(args))
		if (err != nil) != (c.name == "failure" || c.name == "unknown" || c.name == "panic") {
			t.Errorf("%s: %v", c.name, err)
		}
		text := logged.String()
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, text)
			}
		}
		if strings.Contains(text, "TOP SECRET") || strings.Contains(text, "xxxx") {
			t.Errorf("%s: content is in the log:\n%s", c.name, text)
		}
		if n := strings.Count(text, "\n"); n != c.lines {
			t.Errorf("%s: %d records:\n%s", c.name, n, text)
		}
	}
}

func TestLogOfCancelledCall(t *testing.T) {
	log, logged := records(slog.LevelInfo)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = middleware.Log(log)(answer(registry.Answer{}, ctx.Err()))(ctx, newCall(`{}`))
	if text := logged.String(); !strings.Contains(text, "level=INFO msg=cancelled") || strings.Contains(text, "ERROR") {
		t.Error(text)
	}
}

func TestNotice(t *testing.T) {
	good := answer(registry.Answer{Value: "v"}, nil)
	mw := middleware.Notice("hello")
	ask := func(next registry.Handler, change func(*registry.Call)) int {
		c := newCall(`{}`)
		if change != nil {
			change(c)
		}
		a, _ := mw(next)(t.Context(), c)
		return len(a.Notices)
	}
	steps := []struct {
		name   string
		next   registry.Handler
		change func(*registry.Call)
		want   int
	}{
		{"error", answer(registry.Answer{}, errors.New("no")), nil, 0},
		{"failed batch", answer(registry.Answer{Failed: true}, nil), nil, 0},
		{"a tool without notices", good, func(c *registry.Call) { c.Tool.Notices = false }, 0},
		{"first success", good, nil, 1},
		{"second success", good, nil, 0},
	}
	for _, s := range steps {
		if got := ask(s.next, s.change); got != s.want {
			t.Errorf("%s: %d notices", s.name, got)
		}
	}
	mw = middleware.Notice(nil)
	if ask(good, nil) != 0 {
		t.Error("a nil notice was sent")
	}
	mw = middleware.Notice("hello")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, _ := mw(good)(ctx, newCall(`{}`)); len(a.Notices) != 0 {
		t.Error("a cancelled call took the notice along")
	}
}

func TestNoticeGoesOnceToConcurrentCalls(t *testing.T) {
	mw := middleware.Notice("hello")
	start := make(chan struct{})
	var mu sync.Mutex
	sent := 0
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			h := mw(func(context.Context, *registry.Call) (registry.Answer, error) { <-start; return registry.Answer{}, nil })
			a, _ := h(context.Background(), newCall(`{}`))
			mu.Lock()
			defer mu.Unlock()
			sent += len(a.Notices)
		})
	}
	close(start)
	calls.Wait()
	if sent != 1 {
		t.Errorf("%d notices", sent)
	}
}

func TestPayloadLimit(t *testing.T) {
	h := middleware.PayloadLimit(10)(answer(registry.Answer{Value: "v"}, nil))
	if a, err := h(t.Context(), newCall(`{"a":"bcd"}`[:10])); err != nil || a.Value != "v" {
		t.Errorf("10 bytes: %v", err)
	}
	_, err := h(t.Context(), newCall(`{"a":"bcd"}`))
	if code, message := fault.Of(err); code != fault.LimitExceeded || !strings.HasPrefix(message, "Incoming MCP request payload exceeds CONDUIT_MAX_PAYLOAD_SIZE_BYTES") {
		t.Errorf("11 bytes: %v", err)
	}
}

func TestDecode(t *testing.T) {
	var seen any
	h := middleware.Decode()(func(_ context.Context, c *registry.Call) (registry.Answer, error) {
		seen = c.Input
		return registry.Answer{}, nil
	})
	if _, err := h(t.Context(), newCall(`{"path":"p","count":3}`)); err != nil {
		t.Fatal(err)
	}
	if in, ok := seen.(*params); !ok || in.Count != 3 || in.Path.String() != "p" {
		t.Errorf("%+v", seen)
	}
	seen = nil
	if _, err := h(t.Context(), newCall(`{"path":3}`)); err == nil || seen != nil {
		t.Errorf("a bad call went on: %v, %v", err, seen)
	}
}

func TestPathGuard(t *testing.T) {
	var asked []string
	resolve := func(p string) (place.Place, error) {
		asked = append(asked, p)
		if p == "bad" {
			// Not ERR_FS_ACCESS_DENIED, with which a path fails that nobody checked.
			return place.Place{}, fault.New(fault.FSNotFound, "no: %s", p)
		}
		return place.Place{Abs: "/abs/" + p}, nil
	}
	var in params
	if err := json.Unmarshal([]byte(`{"path":"p","more":["bad","http://h/x","ftp://h","q"]}`), &in); err != nil {
		t.Fatal(err)
	}
	reached := false
	c := newCall(`{}`)
	c.Input = &in
	_, err := middleware.PathGuard(resolve, nil)(func(context.Context, *registry.Call) (registry.Answer, error) {
		reached = true
		return registry.Answer{}, nil
	})(t.Context(), c)
	if err != nil || !reached {
		t.Fatalf("the guard failed the call: %v", err)
	}
	if got := strings.Join(asked, " "); got != "p bad q" {
		t.Errorf("asked for %s", got)
	}
	if at, err := in.Path.Place(); err != nil || at.Abs != "/abs/p" {
		t.Errorf("%v, %v", at, err)
	}
	if _, err := in.More[0].Place(); err == nil || err.Error() != "no: bad" {
		t.Errorf("the verdict is lost: %v", err)
	}
	if at, err := in.More[3].Place(); err != nil || at.Abs != "/abs/q" {
		t.Errorf("one bad path took others along: %v, %v", at, err)
	}
}

func TestPathGuardOfRootedTools(t *testing.T) {
	rule := func(name string) func(string) (place.Place, error) {
		return func(p string) (place.Place, error) { return place.Place{Abs: name + p}, nil }
	}
	for _, rooted := range []bool{false, true} {
		var in params
		if err := json.Unmarshal([]byte(`{"path":"p"}`), &in); err != nil {
			t.Fatal(err)
		}
		c := newCall(`{}`)
		c.Input, c.Tool.Rooted = &in, rooted
		_, err := middleware.PathGuard(rule("/any/"), rule("/below/"))(func(context.Context, *registry.Call) (registry.Answer, error) {
			return registry.Answer{}, nil
		})(t.Context(), c)
		want := map[bool]string{false: "/any/p", true: "/below/p"}[rooted]
		if at, perr := in.Path.Place(); err != nil || perr != nil || at.Abs != want {
			t.Errorf("rooted %v: %s, %v, %v; want %s", rooted, at.Abs, err, perr, want)
		}
	}
}
