package picture

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, data := range corpus(t) {
		if _, _, err := Compress(ctx, bytes.NewReader(data), int64(len(data)), "", 75); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Fit(ctx, bytes.NewReader(data), int64(len(data)), "", Limits{MaxSide: 9}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]func() error{
		"encodeJPEG": func() error { _, err := encodeJPEG(ctx, photo(9, 9, false), 75, nil, unlimited); return err },
		"encodePNG":  func() error { _, err := encodePNG(ctx, photo(9, 9, false), nil, unlimited); return err },
		"encodeTIFF": func() error { _, err := encodeTIFF(ctx, photo(9, 9, false), nil, unlimited); return err },
	} {
		if err := f(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stuck is a file of which the end cannot be read before a channel is closed.
type stuck struct {
	*bytes.Reader
	from    int64
	reached chan<- struct{}
	open    <-chan struct{}
}

func (s *stuck) ReadAt(p []byte, from int64) (int, error) {
	if from >= s.from {
		select {
		case s.reached <- struct{}{}:
		default:
		}
		<-s.open
	}
	return s.Reader.ReadAt(p, from)
}

// Whoever gives up gets the answer at once; the room is not given to the next
// before the work has ended.
func TestCancelledUnderWay(t *testing.T) {
	data := stdJPEG(t, photo(400, 300, false), 100)
	ctx, cancel := context.WithCancel(t.Context())
	reached, open := make(chan struct{}, 1), make(chan struct{})
	go func() {
		<-reached
		cancel()
	}()
	s := &stuck{bytes.NewReader(data), int64(len(data) / 2), reached, open}
	if _, _, err := Compress(ctx, s, int64(len(data)), "", 75); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if working.TryAcquire(pixelsAtATime) {
		t.Error("the room was given away")
	}
	close(open)
	if err := working.Acquire(t.Context(), pixelsAtATime); err != nil {
		t.Fatal(err)
	}
	working.Release(pixelsAtATime)
}
