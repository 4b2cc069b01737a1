package registry

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Outcome is the part every result object shares. Embed it in result types,
// after the field of a streamed text, since a text's failure under way is told
// by the status that follows it.
type Outcome struct {
	Status       string     `json:"status"`
	ErrorCode    fault.Code `json:"error_code,omitempty"`
	ErrorMessage string     `json:"error_message,omitempty"`

	cause error
}

// Failed reports whether o is an error.
func (o Outcome) Failed() bool { return o.Status == "error" }

// Cause returns the error that a failed item was settled with, for the log.
func (o Outcome) Cause() error { return o.cause }

// allFailed reports whether v is a batch without a single success.
func allFailed(v any) bool {
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice || list.Len() == 0 {
		return false
	}
	for i := range list.Len() {
		if o, ok := list.Index(i).Interface().(interface{ Failed() bool }); !ok || !o.Failed() {
			return false
		}
	}
	return true
}

// Settle fills o from err; nil means success.
func (o *Outcome) Settle(err error) {
	if o.Status = "success"; err != nil {
		o.Status, o.cause = "error", err
		o.ErrorCode, o.ErrorMessage = fault.Of(err)
	}
}

// A Trimmer is a batch item that can give up its bulk. Where a response would
// exceed CONDUIT_MAX_RESPONSE_BYTES, the item becomes a failed one that keeps
// only what identifies it.
type Trimmer interface {
	Trim(err error)
}

// Each runs f over a batch, in order. A failed entry becomes a failed result
// and the rest still run; only a cancelled ctx stops the batch. Progress is
// reported after each entry.
func Each[E, R any, P interface {
	*R
	Settle(error)
}](ctx context.Context, entries []E, f func(context.Context, E) (R, error)) ([]R, error) {
	results := make([]R, len(entries))
	for i, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := f(ctx, e)
		P(&r).Settle(err)
		results[i] = r
		if len(entries) > 1 {
			Progress(ctx, int64(i+1), int64(len(entries)), "")
		}
	}
	return results, ctx.Err()
}

// EachParallel is [Each] for entries that do not depend on each other: it runs
// f for up to atOnce of them at the same time. The n-th result still answers the
// n-th entry, and an entry whose f panics fails alone. Where ctx is cancelled,
// the results so far come with its error.
func EachParallel[E, R any, P interface {
	*R
	Settle(error)
}](ctx context.Context, atOnce int, entries []E, f func(context.Context, E) (R, error)) ([]R, error) {
	results := make([]R, len(entries))
	var next, done atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := next.Add(1) - 1
			if i >= int64(len(entries)) {
				return
			}
			r, err := recovered(ctx, entries[i], f)
			P(&r).Settle(err)
			results[i] = r
			if n := done.Add(1); len(entries) > 1 {
				Progress(ctx, n, int64(len(entries)), "")
			}
		}
	}
	var others sync.WaitGroup
	for range min(atOnce, len(entries)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return results, ctx.Err()
}

// recovered runs f and turns a panic into an error.
func recovered[E, R any](ctx context.Context, e E, f func(context.Context, E) (R, error)) (r R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f(ctx, e)
}
