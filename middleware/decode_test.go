package middleware_test

import (
	"context"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

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
