package textfile

import (
	"context"
	"crypto/sha256"
	"hash"
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
	escaped [3]int64 // lengths by layers of JSON strings; without any it is that of the text
	lossy   bool
	sha256  []byte
	readerCloser
}

// Settle reads p once and returns it as a Body; number is that of String. It
// does not close the file where it fails.
func (t *Text) Settle(ctx context.Context, p Part, number int64) (*Body, error) {
	b := &Body{text: t, part: p, number: number, readerCloser: readerCloser{t.r}}
	var sum hash.Hash
	if p == (Part{0, t.size}) {
		sum = sha256.New()
	}
	var err error
	if b.lossy, err = t.write(ctx, (*measure)(b), p, number, sum); err != nil {
		return nil, err
	}
	if sum != nil {
		b.sha256 = sum.Sum(nil)
	}
	return b, nil
}

// Lossy reports whether U+FFFD stands for what is no character.
func (b *Body) Lossy() bool { return b.lossy }

// SHA256 is the digest of the file where the part is all of it, else nil.
func (b *Body) SHA256() []byte { return b.sha256 }

// Size is the length of the text in bytes.
func (b *Body) Size() int64 { return b.escaped[0] }

// EscapedSize is the length of the text in layers (1 or 2) of JSON strings.
func (b *Body) EscapedSize(layers int) int64 { return b.escaped[layers] }

// WriteTo writes the text. Where the file has changed so that the text has
// another length, it writes at most Size bytes and fails with
// ERR_FS_READ_FAILED.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	e := &exact{w: w, left: b.Size(), name: b.text.name}
	_, err := b.text.write(context.Background(), e, b.part, b.number, nil)
	return b.Size() - e.left, e.end(err)
}

// A measure adds up the sizes of a Body.
type measure Body

func (m *measure) Write(text []byte) (int, error) {
	for layers, n := range body.EscapedLens(text) {
		m.escaped[layers] += int64(n)
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

// A readerCloser closes a reader that can be closed.
type readerCloser struct{ r io.ReaderAt }

// Close closes the file.
func (c readerCloser) Close() error {
	if f, ok := c.r.(io.Closer); ok {
		return f.Close()
	}
	return nil
}
