package registry

import (
	"context"
	"sync"
	"time"
)

// A Remark is an info notice about a result, beyond what its own fields say,
// such as MORE_RESULTS. It travels beside the result, not in it.
type Remark struct {
	Type       string `json:"type"` // always "info_notice"
	NoticeCode string `json:"notice_code"`
	Message    string `json:"message"`
	Details    any    `json:"details,omitempty"`
}

// A More is the Details of a MORE_RESULTS remark.
type More struct {
	NextCursor string `json:"next_cursor"`
}

type remarks struct {
	mu   sync.Mutex
	said []any
}

type remarksKey struct{}

func withRemarks(ctx context.Context) (context.Context, *remarks) {
	r := &remarks{}
	return context.WithValue(ctx, remarksKey{}, r), r
}

func (r *remarks) list() []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said
}

// AddRemark adds an info notice to the answer of the call that ctx belongs to.
// Details may be nil.
func AddRemark(ctx context.Context, code, message string, details any) {
	if r, ok := ctx.Value(remarksKey{}).(*remarks); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.said = append(r.said, Remark{"info_notice", code, message, details})
	}
}

// progressEvery spaces the progress notifications of one call.
const progressEvery = 200 * time.Millisecond

type progress struct {
	mu   sync.Mutex
	last time.Time
	done int64
	send func(done, total int64, message string)
}

type progressKey struct{}

// WithProgress returns a context in which [Progress] reports to send, at most
// five times a second and never backwards. The multiplexer calls it where the
// caller asked for progress.
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
	now := time.Now()
	if done <= p.done || (now.Sub(p.last) < progressEvery && done != total) {
		return
	}
	p.last, p.done = now, done
	p.send(done, total, message)
}
