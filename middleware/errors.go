// Package middleware wraps ops with the concerns they share: one concern, one
// file each. [Standard] has the order in which they are chained.
package middleware

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Errors turns any failure of a call, panics included, into the error object
// that the tool's clients read. It is the only place where a whole call's error
// is mapped. A cancelled call keeps its error, since nobody reads an answer.
func Errors(log *slog.Logger) registry.Middleware {
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (a registry.Answer, err error) {
			defer func() {
				if r := recover(); r != nil {
					log.ErrorContext(ctx, "panic", "op", c.Op.ID(), "value", c.Redact(fmt.Sprint(r)), "stack", string(debug.Stack()))
					err = fmt.Errorf("panic: %v", r)
				}
				if err != nil && ctx.Err() == nil {
					a, err = registry.Answer{Value: c.Failure(err), Failed: true}, nil
				}
			}()
			return next(ctx, c)
		}
	}
}
