package middleware

import (
	"context"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Notice sends notice along with the first successful answer of a tool that
// carries notices, once in the life of the server, however many calls run at
// the same time. A nil notice is never sent.
func Notice(notice any) registry.Middleware {
	var sent atomic.Bool
	return func(next registry.Handler) registry.Handler {
		if notice == nil {
			return next
		}
		return func(ctx context.Context, c *registry.Call) (registry.Answer, error) {
			a, err := next(ctx, c)
			if err == nil && !a.Failed && c.Tool.Notices && ctx.Err() == nil && sent.CompareAndSwap(false, true) {
				a.Notices = append(a.Notices, notice)
			}
			return a, err
		}
	}
}
