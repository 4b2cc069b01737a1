package middleware

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// PathGuard resolves every registry.Path of the call, for Rooted tools with
// below. It never fails the call: the verdict travels with the path, so one bad
// entry spares the others.
func PathGuard(resolve, below func(string) (place.Place, error)) registry.Middleware {
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Answer, error) {
			rule := resolve
			if c.Tool.Rooted {
				rule = below
			}
			registry.Paths(c.Input, func(p *registry.Path) { p.Vet(rule) })
			return next(ctx, c)
		}
	}
}
