package registry_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

type doubled struct {
	registry.Outcome
	n int
}

func TestEachParallelKeepsOrderAndSparesTheRest(t *testing.T) {
	entries := make([]int, 500)
	for i := range entries {
		entries[i] = i
	}
	var mu sync.Mutex
	var reported []int64
	ctx := registry.WithProgress(t.Context(), func(done, total int64, _ string) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, done, total)
	})
	got, err := registry.EachParallel(ctx, 4, entries, func(_ context.Context, n int) (doubled, error) {
		switch n {
		case 7:
			panic("seven")
		case 8:
			return doubled{n: 16}, fault.New(fault.FSNotFound, "no eight")
		}
		return doubled{n: 2 * n}, nil
	})
	if err != nil || len(got) != len(entries) {
		t.Fatalf("%d results, %v", len(got), err)
	}
	for i, r := range got {
		want := doubled{registry.Outcome{Status: "success"}, 2 * i}
		switch i {
		case 7:
			want = doubled{registry.Outcome{Status: "error", ErrorCode: fault.Internal, ErrorMessage: "internal error; the server's log has the details"}, 0}
		case 8:
			want = doubled{registry.Outcome{Status: "error", ErrorCode: fault.FSNotFound, ErrorMessage: "no eight"}, 16}
		}
		if r.Status != want.Status || r.ErrorCode != want.ErrorCode || r.ErrorMessage != want.ErrorMessage || r.n != want.n || (r.Cause() == nil) == r.Failed() {
			t.Errorf("result %d = %+v, want %+v", i, r, want)
		}
	}
	if n := len(reported); n < 2 || !slices.Equal(reported[n-2:], []int64{500, 500}) {
		t.Errorf("the last progress is %v, want 500 of 500", reported[max(0, n-2):])
	}
}

func TestEachParallelRunsAtTheSameTime(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	var meeting sync.WaitGroup
	meeting.Add(3)
	// Each waits for the two others; one after the other they would wait for ever.
	got, err := registry.EachParallel(t.Context(), 4, []int{1, 2, 3}, func(context.Context, int) (doubled, error) {
		meeting.Done()
		meeting.Wait()
		return doubled{}, nil
	})
	if err != nil || len(got) != 3 {
		t.Errorf("%d results, %v", len(got), err)
	}
}

func TestEachParallelStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	ran := 0
	got, err := registry.EachParallel(ctx, 4, make([]int, 1000), func(context.Context, int) (doubled, error) {
		mu.Lock()
		defer mu.Unlock()
		ran++
		cancel()
		return doubled{n: 1}, nil
	})
	if !errors.Is(err, context.Canceled) || len(got) != 1000 {
		t.Fatalf("%d results, %v; want those so far and the context's error", len(got), err)
	}
	if most := 4; ran > most || got[0].n != 1 { // one for each goroutine
		t.Errorf("%d entries ran after the call was cancelled, want at most %d; the first result is %+v", ran, most, got[0])
	}
}

func TestEachParallelOfNothing(t *testing.T) {
	got, err := registry.EachParallel(t.Context(), 4, nil, func(context.Context, int) (doubled, error) { return doubled{}, nil })
	if err != nil || got == nil || len(got) != 0 {
		t.Errorf("%v, %v; want an empty list", got, err)
	}
}
