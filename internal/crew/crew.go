// Package crew runs work in goroutines whose panics become errors.
package crew

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// A Group is work done at the same time. The zero Group is ready for use.
type Group struct {
	wg    sync.WaitGroup
	mu    sync.Mutex
	first error
}

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func() error) {
	g.wg.Go(func() { g.Do(f) })
}

// Do runs f in the goroutine of the caller, its failure counting like that of
// any other.
func (g *Group) Do(f func() error) {
	if err := Safely(f); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.first == nil {
			g.first = err
		}
	}
}

// Err returns the first error so far.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first
}

// Wait returns once everything has ended, with the first error.
func (g *Group) Wait() error {
	g.wg.Wait()
	return g.Err()
}

// Safely runs f; a panic in it becomes an error that holds the stack, for the
// log.
func Safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}
