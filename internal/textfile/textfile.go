// Package textfile reads parts of text files, by bytes or by lines, as valid
// UTF-8 and in constant memory.
//
// Text is UTF-8, or UTF-16 where the file begins with a byte order mark; the
// mark is never part of the content. Each byte, and each unit of UTF-16, that is
// no character becomes one U+FFFD. Lines end with LF. Offsets count bytes of the
// file.
package textfile

import (
	"context"
	"errors"
	"hash"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Text is the content of a file as it was when its size was taken: what is
// appended later is not part of it. A file that became shorter fails with
// ERR_FS_READ_FAILED.
type Text struct {
	r    io.ReaderAt
	size int64
	name string
	form form
}

// New returns the text in the first size bytes of r; name is how errors call
// it.
func New(r io.ReaderAt, size int64, name string) (*Text, error) {
	t := &Text{r: r, size: size, name: name}
	head := make([]byte, min(3, size))
	if err := t.readAt(head, 0); err != nil {
		return nil, err
	}
	t.form = formOf(head)
	return t, nil
}

// Charset is "utf-8", "utf-16le" or "utf-16be" where a byte order mark says so,
// else empty.
func (t *Text) Charset() string { return t.form.charset }

// Size is the length of the file in bytes.
func (t *Text) Size() int64 { return t.size }

// A Part is a range of a text's bytes that begins and ends between characters.
type Part struct{ From, To int64 }

// Len is the number of bytes.
func (p Part) Len() int64 { return p.To - p.From }

// Bytes returns the part that holds every character whose first byte is one of
// the length bytes from offset on; a negative length means all the rest. So
// consecutive ranges join without loss.
func (t *Text) Bytes(offset, length int64) (Part, error) {
	from, err := t.boundary(offset)
	if err != nil || length < 0 || length >= t.size-offset {
		return Part{from, t.size}, err
	}
	to, err := t.boundary(offset + length)
	return Part{from, to}, err
}

// boundary returns the first place between characters at or after offset.
func (t *Text) boundary(offset int64) (int64, error) {
	if offset <= 0 || offset >= t.size {
		return min(max(offset, 0), t.size), nil
	}
	// No character is longer than four bytes, so one that goes on at offset
	// begins at most three before it and ends at most three after.
	low := max(0, offset-3)
	b := make([]byte, min(t.size, offset+3)-low)
	if err := t.readAt(b, low); err != nil {
		return 0, err
	}
	for at := low; at < offset; at++ {
		if t.form.wide() && at%2 == 1 {
			continue
		}
		if _, n := t.form.next(b[at-low:]); at+int64(n) > offset {
			return at + int64(n), nil
		}
	}
	return offset, nil
}

// Lines returns the part from line first to line last, both included and counted
// from 1, or back from -1, the last line. Zero stands for the beginning and the
// end of the file. Lines that do not exist are left out.
func (t *Text) Lines(ctx context.Context, first, last int64) (Part, error) {
	p := Part{0, t.size}
	var err error
	switch {
	case first > 0:
		p.From, err = t.skip(ctx, 0, first-1)
	case first < 0:
		p.From, err = t.tail(ctx, first)
	}
	switch {
	case err != nil:
		return Part{}, err
	case last > 0 && first > 0:
		p.To, err = t.skip(ctx, p.From, last-first+1)
	case last > 0:
		p.To, err = t.skip(ctx, 0, last)
	case last < -1:
		p.To, err = t.tail(ctx, last+1)
	}
	p.To = max(p.From, p.To)
	return p, err
}

// skip returns where the line begins that is n lines after the one at from.
func (t *Text) skip(ctx context.Context, from, n int64) (int64, error) {
	if n <= 0 {
		return from, nil
	}
	for raw, err := range t.chunks(ctx, Part{from, t.size}, nil) {
		if err != nil {
			return 0, err
		}
		if k := t.form.lines(raw); k < n {
			n -= k
			from += int64(len(raw))
			continue
		}
		for ; n > 0; n-- {
			i := t.form.line(raw)
			raw = raw[i:]
			from += int64(i)
		}
		return from, nil
	}
	return t.size, nil
}

// tail returns where line n begins, counted back from -1. It reads from the end
// of the file.
func (t *Text) tail(ctx context.Context, n int64) (int64, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	end := t.size
	if t.form.wide() {
		end &^= 1
	}
	for end > 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := max(0, end-bufferSize)
		raw := buf[:end-start]
		if err := t.readAt(raw, start); err != nil {
			return 0, err
		}
		for i := t.form.lastLine(raw); i >= 0; i = t.form.lastLine(raw) {
			at := start + int64(i)
			if at < t.size { // the last line end of a file begins no line
				if n++; n == 0 {
					return at, nil
				}
			}
			raw = raw[:i-t.form.unit()]
		}
		end = start
	}
	return 0, nil
}

// LineAt returns the number of the line that the byte at offset belongs to,
// counted from 1.
func (t *Text) LineAt(ctx context.Context, offset int64) (int64, error) {
	n := int64(1)
	for raw, err := range t.chunks(ctx, Part{0, offset}, nil) {
		if err != nil {
			return 0, err
		}
		n += t.form.lines(raw)
	}
	return n, nil
}

// Cut returns the part of p that holds as many of its lines as fit into a number
// of characters, at least 1. A first line that is longer is cut after so many.
func (t *Text) Cut(ctx context.Context, p Part, chars int64) (Part, error) {
	if p.Len() <= chars {
		return p, nil // no character takes less than a byte
	}
	at, line, count := p.From, p.From, int64(0)
	for raw, err := range t.chunks(ctx, p, nil) {
		if err != nil {
			return Part{}, err
		}
		for len(raw) > 0 {
			r, n := t.form.next(raw)
			if at >= t.form.mark {
				count++
			}
			if count > chars {
				if line > p.From {
					at = line
				}
				return Part{p.From, at}, nil
			}
			at += int64(n)
			raw = raw[n:]
			if r == '\n' {
				line = at
			}
		}
	}
	return p, nil
}

// String returns the text of p. Where number is not zero, each line has its
// number and a tab in front, and the first one's is number. It is lossy where
// U+FFFD stands for what is no character.
func (t *Text) String(ctx context.Context, p Part, number int64) (text string, lossy bool, err error) {
	var b strings.Builder
	b.Grow(int(p.Len()))
	lossy, err = t.write(ctx, &b, p, number, nil)
	return b.String(), lossy, err
}

// write writes the text of p to w, a chunk of whole characters at a time. Where
// sum is not nil, the file's bytes are added to it at the same time.
func (t *Text) write(ctx context.Context, w io.Writer, p Part, number int64, sum hash.Hash) (lossy bool, err error) {
	if number != 0 {
		w = &numbering{w: w, next: number, start: true}
	}
	mark := int64(0) // to be left out
	if p.From < t.form.mark {
		mark = t.form.mark
	}
	var scratch []byte
	var behind *parallel.Group
	if sum != nil {
		behind = parallel.New()
	}
	for raw, err := range t.chunks(ctx, p, behind) {
		if err != nil {
			return lossy, err
		}
		if behind != nil {
			behind.Go(func() error {
				sum.Write(raw)
				return nil
			})
		}
		text, bad := t.form.decode(scratch[:0], raw[mark:])
		mark = 0
		if lossy = lossy || bad; bad || t.form.wide() {
			scratch = text
		}
		if _, err := w.Write(text); err != nil {
			return lossy, err
		}
	}
	if behind != nil {
		err = behind.Wait()
	}
	return lossy, err
}

const bufferSize = 256 << 10 // even, as UTF-16 needs

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// chunks yields the bytes of p in pieces that end between characters. A piece is
// valid until the next one and, where behind is not nil, as long as work on it
// in that group lasts: one piece is worked on there while the next one is read.
func (t *Text) chunks(ctx context.Context, p Part, behind *parallel.Group) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		buf := buffers.Get().(*[bufferSize]byte)
		defer func() { buffers.Put(buf) }()
		if behind != nil {
			other := buffers.Get().(*[bufferSize]byte)
			defer func() {
				behind.Wait()
				buffers.Put(other)
			}()
			each := yield
			yield = func(raw []byte, err error) bool {
				behind.Wait()
				buf, other = other, buf
				return each(raw, err)
			}
		}
		for at := p.From; at < p.To; {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			raw := buf[:min(bufferSize, p.To-at)]
			if err := t.readAt(raw, at); err != nil {
				yield(nil, err)
				return
			}
			if at += int64(len(raw)); at < p.To {
				n := t.form.whole(raw)
				at -= int64(len(raw) - n)
				raw = raw[:n]
			}
			if !yield(raw, nil) {
				return
			}
		}
	}
}

// readAt fills b with the bytes from offset on.
func (t *Text) readAt(b []byte, offset int64) error {
	return readFull(t.r, b, offset, t.name)
}

func readFull(r io.ReaderAt, b []byte, offset int64, name string) error {
	n, err := r.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return changed(name)
	}
	return fault.Hide(fault.FSReadFailed, err, "reading %s failed at byte %d", name, offset+int64(n))
}

func changed(name string) error {
	return fault.New(fault.FSReadFailed, "%s changed while it was read; read it again", name)
}
