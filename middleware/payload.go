package middleware

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// PayloadLimit refuses calls whose arguments exceed max bytes with
// ERR_RESOURCE_LIMIT_EXCEEDED. The stdio transport enforces the same limit on
// the whole line, before it is parsed; this covers every other caller.
func PayloadLimit(max int64) registry.Middleware {
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Answer, error) {
			if int64(len(c.Args)) > max {
				return registry.Answer{}, fault.New(fault.LimitExceeded, "Incoming MCP request payload exceeds CONDUIT_MAX_PAYLOAD_SIZE_BYTES: the arguments have %d bytes, %d are accepted; send the work in smaller calls", len(c.Args), max)
			}
			return next(ctx, c)
		}
	}
}
