package parallel_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

func TestLimit(t *testing.T) {
	const most = 3
	l := parallel.NewLimit(most)
	var working, peak, leaves atomic.Int32
	var divide func(levels int) error
	divide = func(levels int) error {
		return l.Divide(func(d *parallel.Division) error {
			for range 4 {
				if err := d.Go(func() error {
					if levels > 0 {
						return divide(levels - 1)
					}
					n := working.Add(1)
					defer working.Add(-1)
					for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
					}
					leaves.Add(1)
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := divide(4); err != nil || leaves.Load() != 1024 || peak.Load() > most {
		t.Errorf("%v after %d of 1024 leaves, up to %d of %d at a time", err, leaves.Load(), peak.Load(), most)
	}
}

func TestLimitWorksAtTheSameTime(t *testing.T) {
	l := parallel.NewLimit(3)
	var meeting sync.WaitGroup
	meeting.Add(3)
	err := l.Divide(func(d *parallel.Division) error {
		for range 3 {
			_ = d.Go(func() error { // one after the other they would wait for ever
				meeting.Done()
				meeting.Wait()
				return nil
			})
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLimitOfOneKeepsTheOrder(t *testing.T) {
	l := parallel.NewLimit(1)
	var got []int
	err := l.Divide(func(d *parallel.Division) error {
		for i := range 5 {
			if err := d.Go(func() error { got = append(got, i); return nil }); err != nil {
				return err
			}
			if len(got) != i+1 {
				t.Errorf("part %d did not run at once", i)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAFailureEndsTheDivision(t *testing.T) {
	failure := errors.New("failure")
	for title, n := range map[string]int{"here": 1, "in a goroutine": 2} {
		t.Run(title, func(t *testing.T) {
			l := parallel.NewLimit(n)
			err := l.Divide(func(d *parallel.Division) error {
				for {
					if err := d.Go(func() error { return failure }); err != nil {
						return err
					}
				}
			})
			if err != failure {
				t.Errorf("%v, want the failure", err)
			}
		})
	}
}

func TestAPanicWaitsForTheOthers(t *testing.T) {
	l := parallel.NewLimit(2)
	var ended atomic.Bool
	panicked := make(chan struct{})
	err := l.Divide(func(d *parallel.Division) error {
		_ = d.Go(func() error {
			<-panicked
			ended.Store(true)
			return nil
		})
		return d.Go(func() error { // there is no worker left for it
			defer close(panicked)
			panic("overboard")
		})
	})
	if err == nil || !strings.Contains(err.Error(), "overboard") {
		t.Errorf("%v, want the panic", err)
	}
	if !ended.Load() {
		t.Error("another part was still at work")
	}
}
