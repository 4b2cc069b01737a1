package digest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/conduit-mcp/conduit-mcp/internal/digest"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// The digests of "abc" from RFC 1321, RFC 3174 and FIPS 180.
var abc = map[string]string{
	"md5":    "900150983cd24fb0d6963f7d28e17f72",
	"sha1":   "a9993e364706816aba3e25717850c26c9cd0d89d",
	"sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	"sha512": "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
}

func TestAlgorithms(t *testing.T) {
	for name, want := range abc {
		a, err := digest.Parse(strings.ToUpper(name))
		if err != nil || string(a) != name {
			t.Fatalf("Parse(%s) = %q, %v", strings.ToUpper(name), a, err)
		}
		h := a.New()
		if n, err := digest.Feed(t.Context(), strings.NewReader("abc"), h); n != 3 || err != nil {
			t.Errorf("Feed = %d, %v", n, err)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%s of abc = %s, want %s", name, got, want)
		}
	}
}

func TestUnknownAlgorithms(t *testing.T) {
	for _, name := range []string{"", "crc32", "sha-256", "SHA3", strings.Repeat("x", 1000)} {
		_, err := digest.Parse(name)
		code, message := fault.Of(err)
		if code != fault.ChecksumAlgorithm || !strings.Contains(message, "md5, sha1, sha256 or sha512") || len(message) > 150 {
			t.Errorf("Parse(%.20q): %s %s", name, code, message)
		}
	}
}

func TestFeedSeveral(t *testing.T) {
	content := strings.Repeat("0123456789", 300_000)
	hashes := []hash.Hash{digest.MD5.New(), digest.SHA1.New()}
	n, err := digest.Feed(t.Context(), iotest.DataErrReader(strings.NewReader(content)), hashes...)
	if n != int64(len(content)) || err != nil {
		t.Fatalf("Feed = %d, %v", n, err)
	}
	for i, a := range []digest.Algorithm{digest.MD5, digest.SHA1} {
		want := a.New()
		io.WriteString(want, content)
		if got := hashes[i].Sum(nil); string(got) != string(want.Sum(nil)) {
			t.Errorf("%s = %x, want %x", a, got, want.Sum(nil))
		}
	}
}

// Parts that are read while others are hashed come in order, whatever the reads
// bring.
func TestFeedLarge(t *testing.T) {
	b := make([]byte, 5<<20+12345)
	rand.NewChaCha8([32]byte{}).Read(b)
	want := sha256.Sum256(b)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"whole":         func(r io.Reader) io.Reader { return r },
		"EOF with data": iotest.DataErrReader,
		"short reads":   func(r io.Reader) io.Reader { return &alternating{r: r} },
	} {
		h := digest.SHA256.New()
		if n, err := digest.Feed(t.Context(), wrap(bytes.NewReader(b)), h); n != int64(len(b)) || err != nil || string(h.Sum(nil)) != string(want[:]) {
			t.Errorf("%s: %d bytes, %x, %v", name, n, h.Sum(nil), err)
		}
	}
	broken := errors.New("broken")
	r := io.MultiReader(bytes.NewReader(b[:3<<20]), iotest.ErrReader(broken))
	if n, err := digest.Feed(t.Context(), r, digest.MD5.New()); n != 3<<20 || !errors.Is(err, broken) {
		t.Errorf("%d bytes, %v; want the reader's error after 3 MiB", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	late := &alternating{r: bytes.NewReader(b), at: func(reads int) {
		if reads == 3 {
			cancel()
		}
	}}
	if n, err := digest.Feed(ctx, late, digest.MD5.New()); n == int64(len(b)) || !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v; want the context's error under way", n, err)
	}
	if _, err := digest.Feed(t.Context(), &alternating{r: bytes.NewReader(b), at: func(reads int) {
		if reads == 3 {
			panic("overboard")
		}
	}}); err == nil || !strings.Contains(err.Error(), "overboard") {
		t.Errorf("a panic of the reader: %v", err)
	}
}

// An alternating reader fills half of the buffer at every third read.
type alternating struct {
	r     io.Reader
	at    func(reads int)
	reads int
}

func (a *alternating) Read(b []byte) (int, error) {
	if a.reads++; a.at != nil {
		a.at(a.reads)
	}
	if a.reads%3 == 0 {
		b = b[:1+len(b)/2]
	}
	return a.r.Read(b)
}

func TestFeedFails(t *testing.T) {
	broken := errors.New("broken")
	r := io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))
	if n, err := digest.Feed(t.Context(), r); n != 3 || !errors.Is(err, broken) {
		t.Errorf("Feed = %d, %v; want 3 and the reader's error", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := digest.Feed(ctx, strings.NewReader("abc")); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Feed = %d, %v; want 0 and the context's error", n, err)
	}
}

func BenchmarkChecksum64MB(b *testing.B) {
	content := strings.Repeat("0123456789abcdef", 4<<20)
	for _, a := range []digest.Algorithm{digest.MD5, digest.SHA1, digest.SHA256, digest.SHA512} {
		b.Run(string(a), func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := digest.Feed(b.Context(), strings.NewReader(content), a.New()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
