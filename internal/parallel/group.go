// Package parallel runs work in goroutines whose panics become errors.
package parallel

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
)

// A Group is an [errgroup.Group] in which a panic is an error like any other;
// see [panics.Try].
type Group struct{ group *errgroup.Group }

// New returns a group that runs everything whatever fails.
func New() *Group { return &Group{new(errgroup.Group)} }

// WithContext returns a group with a context that is cancelled once something
// in it has failed; [context.Cause] is that error then.
func WithContext(ctx context.Context) (*Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return &Group{g}, ctx
}

// SetLimit has Go wait while n functions run.
func (g *Group) SetLimit(n int) { g.group.SetLimit(n) }

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func() error) {
	g.group.Go(func() error { return panics.Try(f) })
}

// Wait returns once everything has ended, with the first error.
func (g *Group) Wait() error { return g.group.Wait() }
