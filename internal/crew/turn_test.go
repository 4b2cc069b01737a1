package crew

import (
	"errors"
	"runtime"
	"testing"
	"time"
)

func TestWhoeverWaitsGivesUpTheTurn(t *testing.T) {
	l := NewLimit(2)
	var g Group
	l.Go(&g, func() error {
		for begun := time.Now(); len(l.working) != 1; runtime.Gosched() {
			if time.Since(begun) > 10*time.Second {
				return errors.New("the one who waits still counts as working")
			}
		}
		return nil
	})
	if err := l.Wait(&g); err != nil || len(l.working) != 1 {
		t.Errorf("%v; afterwards %d work, want 1", err, len(l.working))
	}
}
