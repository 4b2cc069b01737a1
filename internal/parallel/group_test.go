package parallel_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

func TestGroup(t *testing.T) {
	g := parallel.New()
	var n atomic.Int32
	for range 10 {
		g.Go(func() error { n.Add(1); return nil })
	}
	if err := g.Wait(); err != nil || n.Load() != 10 {
		t.Errorf("Wait = %v after %d of 10", err, n.Load())
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	g, ctx := parallel.WithContext(t.Context())
	g.Go(func() error { panic("overboard") })
	<-ctx.Done()
	g.Go(func() error { return errors.New("second") })
	err := g.Wait()
	if err == nil || !strings.Contains(err.Error(), "overboard") || !strings.Contains(err.Error(), "group_test.go") {
		t.Errorf("err = %v, want the panic and its stack", err)
	}
	if cause := context.Cause(ctx); cause != err {
		t.Errorf("the context ended with %v, want the same", cause)
	}
}
