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

// Errors turns what fails below it, panics of the goroutine that runs the call
// included, into the error object that the tool's clients read. A cancelled call
// keeps its error, since nobody reads an answer. Calls that name no tool or
// operation never come here, and large texts that fail do so later, while the
// answer is written.
func Errors(log *slog.Logger) registry.Middleware {
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (a registry.Answer, err error) {
			defer func() {
				if r := recover(); r != nil {
					err = panicked(ctx, log, c, r)
				}
				if err != nil && ctx.Err() == nil {
					a, err = registry.Answer{Value: c.Failure(err), Failed: true}, nil
				}
			}()
			return next(ctx, c)
		}
	}
}

// panicked logs the value that c panicked with and returns it as an error.
func panicked(ctx context.Context, log *slog.Logger, c *registry.Call, value any) error {
	log.ErrorContext(ctx, "panic", "op", c.Op.ID(), "value", c.Redact(fmt.Sprint(value)), "stack", string(debug.Stack()))
	return fmt.Errorf("panic: %v", value)
}
