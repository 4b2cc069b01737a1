package etag_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/conduit-mcp/conduit-mcp/internal/etag"
)

func TestOf(t *testing.T) {
	sum := sha256.Sum256(nil)
	if got, want := etag.Of(sum[:]), "47DEQpj8HBSa-_TImW-5JA"; got != want {
		t.Errorf("Of(empty) = %q, want %q", got, want)
	}
}

func TestSum(t *testing.T) {
	content := strings.Repeat("0123456789", 100_000)
	want := sha256.Sum256([]byte(content))
	for name, r := range map[string]io.Reader{
		"whole":         strings.NewReader(content),
		"halves":        iotest.HalfReader(strings.NewReader(content)),
		"EOF with data": iotest.DataErrReader(strings.NewReader(content)),
	} {
		got, err := etag.Sum(t.Context(), r)
		if err != nil || string(got) != string(want[:]) {
			t.Errorf("%s: Sum = %x, %v; want %x", name, got, err, want)
		}
	}
}

func TestSumFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := etag.Sum(t.Context(), iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("err = %v, want that of the reader", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := etag.Sum(ctx, strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want that of the context", err)
	}
}
