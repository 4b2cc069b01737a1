package parallel

import (
	"cmp"
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
)

// A Limit bounds how many goroutines work at a time on one job that divides
// itself, and its parts again. Whoever waits for parts does not count.
type Limit struct{ working *semaphore.Weighted }

// NewLimit returns a Limit of n workers, at least one; the caller is the first.
func NewLimit(n int) *Limit {
	l := &Limit{semaphore.NewWeighted(int64(max(n, 1)))}
	l.working.TryAcquire(1)
	return l
}

// Divide is called by a worker. It calls divide, which divides the work by
// calling start with each part of it: that runs in a goroutine of its own while
// fewer than the limit work, otherwise at once in that of the caller. Once a
// part has failed, start does nothing and returns its error. Divide returns when
// everything has ended, with an error of a part or of divide.
func (l *Limit) Divide(divide func(start func(part func() error) error) error) error {
	g, ctx := WithContext(context.Background())
	err := panics.Try(func() error {
		return divide(func(part func() error) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case !l.working.TryAcquire(1):
				return part()
			}
			g.Go(func() error {
				defer l.working.Release(1)
				return part()
			})
			return nil
		})
	})
	l.working.Release(1)
	err = cmp.Or(g.Wait(), err)
	_ = l.working.Acquire(context.Background(), 1) // it fails with its context alone
	return err
}
