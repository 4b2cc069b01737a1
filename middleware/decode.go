package middleware

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Decode parses the arguments into the op's parameter type and checks them
// against its schema. Below it calls are typed.
func Decode() registry.Middleware {
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Answer, error) {
			if err := c.Decode(); err != nil {
				return registry.Answer{}, err
			}
			return next(ctx, c)
		}
	}
}
