// Package panics makes errors of panics.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Try runs f; a panic in it becomes an error that holds the stack, for the log.
func Try(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}
