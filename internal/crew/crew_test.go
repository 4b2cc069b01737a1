package crew_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/crew"
)

func TestGroup(t *testing.T) {
	var g crew.Group
	var n atomic.Int32
	for range 10 {
		g.Go(func() error { n.Add(1); return nil })
	}
	if err := g.Wait(); err != nil || n.Load() != 10 {
		t.Errorf("Wait = %v after %d of 10", err, n.Load())
	}
}

func TestGroupKeepsTheFirstError(t *testing.T) {
	var g crew.Group
	first := errors.New("first")
	g.Do(func() error { return first })
	g.Do(func() error { return errors.New("second") })
	if err := g.Err(); err != first {
		t.Errorf("Err = %v, want the first", err)
	}
	if err := g.Wait(); err != first {
		t.Errorf("Wait = %v, want the first", err)
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	var g crew.Group
	g.Go(func() error { panic("overboard") })
	err := g.Wait()
	if err == nil || !strings.Contains(err.Error(), "overboard") || !strings.Contains(err.Error(), "crew_test.go") {
		t.Errorf("err = %v, want the panic and its stack", err)
	}
}
