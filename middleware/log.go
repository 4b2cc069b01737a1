package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Log records every call that reaches it at DEBUG, its outcome at INFO, and every
// failure at ERROR with its error_code and cause: of the call, and of the items
// of a result that is a list of what embeds [registry.Outcome]. It records no
// call that names no tool or operation, and nothing of how an answer is written;
// took ends when there is one. Arguments are told as [registry.Call.Outline]
// does, errors as [registry.Call.Redact].
func Log(log *slog.Logger) registry.Middleware {
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (a registry.Answer, err error) {
			if log.Enabled(ctx, slog.LevelDebug) {
				log.DebugContext(ctx, "request", "tool", c.Tool.Name, "op", c.Op.ID(), "params", c.Outline())
			}
			start := time.Now()
			defer func() {
				if r := recover(); r != nil {
					err = panicked(ctx, log, c, r)
				}
				took := time.Since(start)
				switch {
				case err != nil && ctx.Err() != nil:
					log.InfoContext(ctx, "cancelled", "op", c.Op.ID(), "took_ms", ms(took))
				case err != nil:
					code, _ := fault.Of(err)
					log.ErrorContext(ctx, "failed", "op", c.Op.ID(), "took_ms", ms(took), "error_code", code, "err", causes(c, err))
				default:
					items, bad := failures(ctx, log, c, a.Value)
					log.InfoContext(ctx, "done", "op", c.Op.ID(), "took_ms", ms(took), "results", items, "failed", bad)
				}
			}()
			return next(ctx, c)
		}
	}
}

// ms is a duration in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// causes words err, which c failed with, with the cause that a client is not shown.
func causes(c *registry.Call, err error) string {
	if err == nil {
		return ""
	}
	text := c.Redact(err.Error())
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Err != nil {
		return fmt.Sprintf("%s (cause: %s)", text, c.Redact(f.Err.Error()))
	}
	return text
}

// failures logs the failed items of a batch and counts them.
func failures(ctx context.Context, log *slog.Logger, c *registry.Call, v any) (items, bad int) {
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice {
		return 1, 0
	}
	for i := range list.Len() {
		f, ok := list.Index(i).Addr().Interface().(interface {
			Failed() bool
			Cause() error
		})
		if !ok {
			return list.Len(), 0
		}
		if f.Failed() {
			code, _ := fault.Of(f.Cause())
			log.ErrorContext(ctx, "item failed", "op", c.Op.ID(), "item", i, "error_code", code, "err", causes(c, f.Cause()))
			bad++
		}
	}
	return list.Len(), bad
}
