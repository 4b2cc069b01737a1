package crew_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/crew"
)

func TestLimit(t *testing.T) {
	const most = 3
	l := crew.NewLimit(most)
	var working, peak, leaves atomic.Int32
	var divide func(levels int) error
	divide = func(levels int) error {
		var g crew.Group
		for range 4 {
			l.Go(&g, func() error {
				if levels > 0 {
					return divide(levels - 1)
				}
				n := working.Add(1)
				defer working.Add(-1)
				for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
				}
				leaves.Add(1)
				return nil
			})
		}
		return l.Wait(&g)
	}
	if err := divide(4); err != nil || leaves.Load() != 1024 || peak.Load() > most {
		t.Errorf("%v after %d of 1024 leaves, up to %d of %d at a time", err, leaves.Load(), peak.Load(), most)
	}
}

func TestLimitWorksAtTheSameTime(t *testing.T) {
	l := crew.NewLimit(3)
	var g crew.Group
	var meeting sync.WaitGroup
	meeting.Add(3)
	meet := func() error { // one after the other they would wait for ever
		meeting.Done()
		meeting.Wait()
		return nil
	}
	for range 3 {
		l.Go(&g, meet)
	}
	if err := l.Wait(&g); err != nil {
		t.Error(err)
	}
}

func TestLimitOfOneKeepsTheOrder(t *testing.T) {
	l := crew.NewLimit(1)
	var g crew.Group
	var got []int
	for i := range 5 {
		l.Go(&g, func() error { got = append(got, i); return nil })
		if len(got) != i+1 {
			t.Fatalf("part %d did not run at once", i)
		}
	}
	if err := l.Wait(&g); err != nil {
		t.Error(err)
	}
}
