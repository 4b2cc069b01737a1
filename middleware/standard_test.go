package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func TestStandardPutsLinksInTheirPlaces(t *testing.T) {
	var seen []string
	link := func(after, name string) registry.Link {
		return registry.Link{After: after, New: func(*registry.Env) (registry.Middleware, error) {
			return func(next registry.Handler) registry.Handler {
				return func(ctx context.Context, c *registry.Call) (registry.Answer, error) {
					typed := "raw"
					if c.Input != nil {
						typed = "typed"
					}
					seen = append(seen, name+" "+typed)
					a, err := next(ctx, c)
					if err != nil {
						seen = append(seen, name+" sees the error")
					}
					return a, err
				}
			}, nil
		}}
	}
	env := &registry.Env{Log: slog.New(slog.DiscardHandler)}
	resolve := func(p string) (place.Place, error) { return place.Place{Abs: p}, nil }
	o := middleware.Options{MaxPayload: 1000, Resolve: resolve, ResolveBelow: resolve}
	chain, err := middleware.Standard(env, o, link(middleware.StagePaths, "innermost"), link(middleware.StageErrors, "outermost"),
		link(middleware.StageDecode, "first"), link(middleware.StageDecode, "second"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := chain(answer(registry.Answer{}, errors.New("cause")))(t.Context(), newCall(`{"path":"p"}`))
	if err != nil || !a.Failed {
		t.Errorf("%+v, %v", a, err)
	}
	want := []string{"outermost raw", "first typed", "second typed", "innermost typed", "innermost sees the error", "second sees the error", "first sees the error", "outermost sees the error"}
	if !slices.Equal(seen, want) {
		t.Errorf("seen: %q", seen)
	}
	if _, err := middleware.Standard(env, o, link("nowhere", "x")); err == nil || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("%v", err)
	}
	broken := registry.Link{After: middleware.StageLog, New: func(*registry.Env) (registry.Middleware, error) { return nil, errors.New("broken") }}
	if _, err := middleware.Standard(env, o, broken); err == nil || err.Error() != "broken" {
		t.Errorf("%v", err)
	}
}
