package textfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/textfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// noise is n bytes without a pattern.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

func TestBase64Digest(t *testing.T) {
	data := noise(5 << 20) // more pieces than may wait
	for _, c := range [][2]int64{{0, 0}, {0, 1}, {5, 70}, {0, 196_608}, {0, 196_609}, {1, 1 << 20}, {0, 5 << 20}} {
		part := data[c[0]:c[1]]
		sum := sha256.Sum256(part)
		b := textfile.NewBase64(bytes.NewReader(data), c[0], c[1], "f")
		for _, digest := range []bool{false, true, true, false} {
			b.Digest(digest)
			var got strings.Builder
			if n, err := b.WriteTo(&got); err != nil || n != b.Size() || got.String() != base64.StdEncoding.EncodeToString(part) {
				t.Errorf("%v: wrote %d bytes, %v", c, n, err)
			}
			if got := b.SHA256(); digest && !bytes.Equal(got, sum[:]) || !digest && got != nil {
				t.Errorf("%v: SHA256 = %x, want %x: %t", c, got, sum, digest)
			}
		}
	}
}

// On one processor the digest runs only where the writing waits for it, so it
// is as late as it may be.
func TestBase64DigestThatIsLate(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	data := noise(10 << 20)
	sum := sha256.Sum256(data)
	b := textfile.NewBase64(bytes.NewReader(data), 0, int64(len(data)), "f")
	b.Digest(true)
	if _, err := b.WriteTo(io.Discard); err != nil || !bytes.Equal(b.SHA256(), sum[:]) {
		t.Errorf("SHA256 = %x, %v; want %x", b.SHA256(), err, sum)
	}
}

func TestBase64WithoutAllOfItHasNoDigest(t *testing.T) {
	data := noise(3 << 20)
	file := &shrinking{data: data}
	b := textfile.NewBase64(file, 0, int64(len(data)), "f")
	b.Digest(true)
	if _, err := b.WriteTo(io.Discard); err != nil || b.SHA256() == nil {
		t.Fatalf("SHA256 = %x, %v", b.SHA256(), err)
	}
	file.data = data[:2<<20]
	n, err := b.WriteTo(io.Discard)
	if code, _ := fault.Of(err); code != fault.FSReadFailed || n >= b.Size() || b.SHA256() != nil {
		t.Errorf("a file that shrank: %d bytes, %v, SHA256 = %x", n, err, b.SHA256())
	}
}

// A shrinking file has the content that is set last.
type shrinking struct{ data []byte }

func (s *shrinking) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(b, at)
}

// A lender keeps the buffers that it fills.
type lender struct {
	io.ReaderAt
	lent [][]byte
}

func (l *lender) ReadAt(b []byte, at int64) (int, error) {
	l.lent = append(l.lent, b)
	return l.ReaderAt.ReadAt(b, at)
}

// A brittle writer fails, or panics, at the third piece.
type brittle struct {
	panics bool
	writes int
}

func (b *brittle) Write(p []byte) (int, error) {
	if b.writes++; b.writes < 3 {
		return len(p), nil
	}
	if b.panics {
		panic("writer")
	}
	return 0, io.ErrClosedPipe
}

// After a failure nobody may use the buffers any more: the race detector sees
// it where the digest still does.
func TestBase64LeavesNothingBehind(t *testing.T) {
	const size = 2*196_608 + 100 // what is no whole block is copied, which the detector sees
	for _, panics := range []bool{false, true} {
		before := runtime.NumGoroutine()
		for range 20 {
			file := &lender{ReaderAt: bytes.NewReader(noise(size))}
			b := textfile.NewBase64(file, 0, size, "f")
			b.Digest(true)
			var err error
			func() {
				defer func() {
					if got := recover(); (got != nil) != panics {
						t.Errorf("recovered %v", got)
					}
				}()
				_, err = b.WriteTo(&brittle{panics: panics})
			}()
			if !panics && err != io.ErrClosedPipe {
				t.Errorf("err = %v, want that of the writer", err)
			}
			if b.SHA256() != nil {
				t.Errorf("SHA256 = %x", b.SHA256())
			}
			for _, buf := range file.lent {
				clear(buf)
			}
		}
		if after := runtime.NumGoroutine(); after > before+10 {
			t.Errorf("panics %t: %d goroutines, %d before", panics, after, before)
		}
	}
}
