package parallel

import (
	"runtime"
	"testing"
)

func TestWhoeverWaitsDoesNotCount(t *testing.T) {
	l := NewLimit(2)
	err := l.Divide(func(d *Division) error {
		return d.Go(func() error {
			for !l.working.TryAcquire(1) { // there is room once the other one waits
				runtime.Gosched()
			}
			l.working.Release(1)
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	if !l.working.TryAcquire(1) || l.working.TryAcquire(1) {
		t.Error("afterwards it is not one who works")
	}
}
