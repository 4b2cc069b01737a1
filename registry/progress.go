package registry

import (
	"context"
	"sync"
)

type progress struct {
	mu   sync.Mutex
	done int64
	send func(done, total int64, message string)
}

type progressKey struct{}

// WithProgress returns a context in which [Progress] reports to send, one report
// at a time and never backwards. The multiplexer calls it where the caller asked
// for progress.
func WithProgress(ctx context.Context, send func(done, total int64, message string)) context.Context {
	return context.WithValue(ctx, progressKey{}, &progress{send: send, done: -1})
}

// Progress reports how far the call that ctx belongs to has come. A total of 0
// means unknown. Where nobody asked for progress it does nothing.
func Progress(ctx context.Context, done, total int64, message string) {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if done > p.done {
		p.done = done
		p.send(done, total, message)
	}
}
