//go:build large

package pack

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Files beyond what 32 bits can tell need about 10 GB of disk and some minutes.

func sum(t *testing.T, r io.Reader) string {
	t.Helper()
	h := sha256.New()
	_, err := io.Copy(h, r)
	must(t, err)
	return fmt.Sprintf("%x", h.Sum(nil))
}

func (s scratch) sum(name string) string {
	s.t.Helper()
	f, err := os.Open(s.path(name))
	must(s.t, err)
	defer f.Close()
	return sum(s.t.(*testing.T), f)
}

func TestFilesBeyond4GiB(t *testing.T) {
	const size = 4<<30 + 12345
	s := newScratch(t)
	f, err := os.Create(s.path("sparse"))
	must(t, err)
	must(t, f.Truncate(size))
	must(t, f.Close())
	f, err = os.Create(s.path("large"))
	must(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	some := make([]byte, 1024) // so that it is not refused for its ratio
	for at := int64(0); at < size-1024; at += 64 << 10 {
		for i := range some {
			some[i] = byte(r.Uint32())
		}
		_, err := f.WriteAt(some, at)
		must(t, err)
	}
	must(t, f.Truncate(size))
	must(t, f.Close())
	s.write("last", []byte("behind them"))
	want := s.sum("large")
	for _, format := range both {
		name := "a." + string(format)
		_, err := s.create(name, CreateOptions{Format: format}, "large", "last")
		must(t, err)
		_, err = s.extract(name, "to", ExtractOptions{})
		must(t, err)
		if have := s.sum("to/large"); have != want {
			t.Errorf("%s: %s, want %s", format, have, want)
		}
		if s.read("to/last") != "behind them" {
			t.Errorf("%s: what is behind the large file is lost", format)
		}
		must(t, os.RemoveAll(s.path("to")))
		_, err = s.create(name, CreateOptions{Format: format}, "sparse")
		must(t, err)
		_, err = s.extract(name, "to", ExtractOptions{})
		wantCode(t, err, fault.LimitExceeded, "200 times")
	}
}
