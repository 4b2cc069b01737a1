package middleware_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

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
