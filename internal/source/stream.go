package source

import (
	"bytes"
	"io"
	"io/fs"
)

// A Stream is content that is read once from its beginning to its end, and
// whose first bytes can be read again.
type Stream struct {
	r    io.Reader
	head []byte
	at   int64
}

// Replayed is how many bytes of a Stream can be read again.
const Replayed = 1 << 20

// NewStream reads the first bytes of r.
func NewStream(r io.Reader) (*Stream, error) {
	var head bytes.Buffer
	n, err := io.CopyN(&head, r, Replayed)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return &Stream{r: r, head: head.Bytes(), at: n}, nil
}

// ReadAt reads from the first bytes, or on from where the last one ended.
func (s *Stream) ReadAt(b []byte, offset int64) (n int, err error) {
	if offset < int64(len(s.head)) {
		n = copy(b, s.head[offset:])
		offset += int64(n)
	}
	if n == len(b) {
		return n, nil
	}
	if offset != s.at {
		return n, &fs.PathError{Op: "read", Path: "stream", Err: fs.ErrInvalid}
	}
	more, err := io.ReadFull(s.r, b[n:])
	s.at += int64(more)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n + more, err
}
