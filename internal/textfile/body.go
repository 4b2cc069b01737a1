package textfile

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
)

// A Body is a part of a text that is written late. One pass over the file has
// settled its sizes; writing reads the file again. It takes charge of the
// text's file.
type Body struct {
	text    *Text
	part    Part
	number  int64
	size    int64
	escaped [3]int64 // by layers
	lossy   bool
	sha256  []byte
	readerCloser
}

// Settle reads p once and returns it as a Body; number is that of String. It
// does not close the file where it fails.
func (t *Text) Settle(ctx context.Context, p Part, number int64) (*Body, error) {
	b := &Body{text: t, part: p, number: number, readerCloser: readerCloser{t.r}}
	var seen func([]byte)
	hash := sha256.New()
	whole := p == Part{0, t.size}
	if whole {
		seen = func(raw []byte) { hash.Write(raw) }
	}
	var err error
	if b.lossy, err = t.write(ctx, (*measure)(b), p, number, seen); err != nil {
		return nil, err
	}
	if whole {
		b.sha256 = hash.Sum(nil)
	}
	return b, nil
}

// Lossy reports whether U+FFFD stands for what is no character.
func (b *Body) Lossy() bool { return b.lossy }

// SHA256 is the digest of the file where the part is all of it, else nil.
func (b *Body) SHA256() []byte { return b.sha256 }

// Size is the length of the text in bytes.
func (b *Body) Size() int64 { return b.size }

// EscapedSize is the length of the text in layers (1 or 2) of JSON strings.
func (b *Body) EscapedSize(layers int) int64 { return b.escaped[layers] }

// WriteTo writes the text. Where the file has changed so that the text has
// another length, it writes at most Size bytes and fails with
// ERR_FS_READ_FAILED.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	e := &exact{w: w, left: b.size, name: b.text.name}
	_, err := b.text.write(context.Background(), e, b.part, b.number, nil)
	return b.size - e.left, e.end(err)
}

// A measure adds up the sizes of a Body.
type measure Body

func (m *measure) Write(text []byte) (int, error) {
	m.size += int64(len(text))
	for layers := 1; layers <= 2; layers++ {
		m.escaped[layers] += int64(body.EscapedLen(text, layers))
	}
	return len(text), nil
}

// An exact passes on a settled number of bytes.
type exact struct {
	w    io.Writer
	left int64
	name string
}

func (e *exact) Write(b []byte) (int, error) {
	if int64(len(b)) > e.left {
		return 0, changed(e.name)
	}
	n, err := e.w.Write(b)
	e.left -= int64(n)
	return n, err
}

// end returns err, or an error where bytes are missing.
func (e *exact) end(err error) error {
	if err == nil && e.left > 0 {
		return changed(e.name)
	}
	return err
}

// A Base64 is a range of a file's bytes that is written late, in base64. It
// takes charge of the file.
type Base64 struct {
	r        io.ReaderAt
	from, to int64
	name     string
	readerCloser
}

// NewBase64 returns the bytes of r from one offset to another; name is how
// errors call it.
func NewBase64(r io.ReaderAt, from, to int64, name string) *Base64 {
	return &Base64{r, from, to, name, readerCloser{r}}
}

// Size is the length of the base64 text.
func (b *Base64) Size() int64 { return (b.to - b.from + 2) / 3 * 4 }

// EscapedSize is Size: nothing in base64 is escaped.
func (b *Base64) EscapedSize(int) int64 { return b.Size() }

// WriteTo writes the base64 text. Where the file has become shorter it writes
// less and fails with ERR_FS_READ_FAILED.
func (b *Base64) WriteTo(w io.Writer) (int64, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	const step = bufferSize / 3 * 3 // so that only the last piece is padded
	out := make([]byte, 0, base64.StdEncoding.EncodedLen(step))
	written := int64(0)
	for at := b.from; at < b.to; {
		raw := buf[:min(step, b.to-at)]
		if err := readFull(b.r, raw, at, b.name); err != nil {
			return written, err
		}
		n, err := w.Write(base64.StdEncoding.AppendEncode(out, raw))
		written += int64(n)
		if err != nil {
			return written, err
		}
		at += int64(len(raw))
	}
	return written, nil
}

// A readerCloser closes a reader that can be closed.
type readerCloser struct{ r io.ReaderAt }

// Close closes the file.
func (c readerCloser) Close() error {
	if f, ok := c.r.(io.Closer); ok {
		return f.Close()
	}
	return nil
}
