package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

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
