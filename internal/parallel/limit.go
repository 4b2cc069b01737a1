package parallel

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
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

// Divide is called by a worker. It calls divide, which hands out the parts of
// the work, and returns when all has ended, with an error of a part or of
// divide.
func (l *Limit) Divide(divide func(*Division) error) error {
	d := &Division{limit: l}
	err := panics.Try(func() error { return divide(d) })
	l.working.Release(1)
	err = cmp.Or(d.group.Wait(), err)
	_ = l.working.Acquire(context.Background(), 1) // it fails with its context alone
	return err
}

// A Division is work that is being divided.
type Division struct {
	limit  *Limit
	group  errgroup.Group
	failed atomic.Bool
}

var errFailed = errors.New("another part has failed")

// Go runs a part in a goroutine of its own while fewer than the limit work,
// otherwise at once, and returns its error. Once one in a goroutine has failed
// it runs no more and fails too.
func (d *Division) Go(part func() error) error {
	switch {
	case d.failed.Load():
		return errFailed
	case !d.limit.working.TryAcquire(1):
		return part()
	}
	d.group.Go(func() error {
		defer d.limit.working.Release(1)
		err := panics.Try(part)
		if err != nil {
			d.failed.Store(true)
		}
		return err
	})
	return nil
}
