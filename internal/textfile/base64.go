package textfile

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"io"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// A Base64 is a range of a file's bytes that is written late, in base64. It
// takes charge of the file.
type Base64 struct {
	r        io.ReaderAt
	from, to int64
	name     string
	readerCloser

	digest bool
	sha256 []byte
}

// NewBase64 returns the bytes of r from one offset to another; name is how
// errors call it.
func NewBase64(r io.ReaderAt, from, to int64, name string) *Base64 {
	return &Base64{r: r, from: from, to: to, name: name, readerCloser: readerCloser{r}}
}

// Size is the length of the base64 text.
func (b *Base64) Size() int64 { return (b.to - b.from + 2) / 3 * 4 }

// EscapedSize is Size: nothing in base64 is escaped.
func (b *Base64) EscapedSize(int) int64 { return b.Size() }

// Verbatim says that nothing in base64 is escaped.
func (b *Base64) Verbatim() {}

// Digest says whether WriteTo computes the SHA-256 of the bytes as well, on
// another processor. It does not where Digest was never called.
func (b *Base64) Digest(on bool) { b.digest = on }

// SHA256 is the digest of the bytes that WriteTo wrote last, or nil where it
// did not write them all or computed none.
func (b *Base64) SHA256() []byte { return b.sha256 }

// lag is how many pieces the digest may have waiting: with fewer, it and the
// writing stop for each other, since neither keeps its pace.
const lag = 6

// WriteTo writes the base64 text. Where the file has become shorter it writes
// less and fails with ERR_FS_READ_FAILED.
func (b *Base64) WriteTo(w io.Writer) (written int64, err error) {
	const step = bufferSize / 4 * 3 // so that only the last piece is padded
	b.sha256 = nil
	ring := make([]*[bufferSize]byte, 1)
	if b.digest { // beside those that wait one is hashed, and one read
		ring = make([]*[bufferSize]byte, min(lag+2, (b.to-b.from+step-1)/step))
	}
	for i := range ring {
		ring[i] = buffers.Get().(*[bufferSize]byte)
		defer buffers.Put(ring[i])
	}
	out := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(out)
	hand := func([]byte) {}
	if b.digest {
		behind := parallel.New()
		sum, pieces := sha256.New(), make(chan []byte, lag)
		behind.Go(func() error {
			defer func() {
				for range pieces { // so that a panic does not hold up the writing
				}
			}()
			for raw := range pieces {
				sum.Write(raw)
			}
			return nil
		})
		hand = func(raw []byte) { pieces <- raw }
		defer func() {
			close(pieces)
			if failed := behind.Wait(); err == nil {
				err = failed
			}
			if err == nil && written == b.Size() { // it is not after a panic
				b.sha256 = sum.Sum(nil)
			}
		}()
	}
	for i, at := 0, b.from; at < b.to; i++ {
		raw := ring[i%len(ring)][:min(step, b.to-at)]
		if err := readFull(b.r, raw, at, b.name); err != nil {
			return written, err
		}
		hand(raw)
		n, err := w.Write(out[:encodeBase64(out[:], raw)])
		written += int64(n)
		if err != nil {
			return written, err
		}
		at += int64(len(raw))
	}
	return written, nil
}

// pairs are the two characters of twelve bits each, the first in the low byte.
var pairs = sync.OnceValue(func() *[1 << 12]uint16 {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var table [1 << 12]uint16
	for i := range table {
		table[i] = uint16(alphabet[i>>6]) | uint16(alphabet[i&63])<<8
	}
	return &table
})

// encodeBase64 writes src in base64 to dst, which has room for it, and returns
// its length. It takes six bytes at a time, which is several times as fast as
// encoding/base64.
func encodeBase64(dst, src []byte) int {
	table := pairs()
	d := dst
	for len(src) >= 8 && len(d) >= 8 {
		w := binary.BigEndian.Uint64(src)
		binary.LittleEndian.PutUint64(d, uint64(table[w>>52])|uint64(table[w>>40&0xfff])<<16|
			uint64(table[w>>28&0xfff])<<32|uint64(table[w>>16&0xfff])<<48)
		src, d = src[6:], d[8:]
	}
	base64.StdEncoding.Encode(d, src)
	return len(dst) - len(d) + base64.StdEncoding.EncodedLen(len(src))
}
