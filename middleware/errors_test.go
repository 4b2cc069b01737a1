package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

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
