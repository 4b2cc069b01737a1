package middleware_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

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
