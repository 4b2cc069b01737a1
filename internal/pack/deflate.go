package pack

import (
	"bytes"
	"io"
	"os"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
)

const (
	blockSize = 1 << 20  // what is compressed at a time
	window    = 32 << 10 // how far back deflate refers
)

// endOfStream is an empty final deflate block. It ends a stream of blocks that
// were compressed one by one.
var endOfStream = []byte{3, 0}

// deflate appends data, compressed, to dst. What was before it in the stream, dict,
// is referred to. Unless whole is set, the stream goes on.
func deflate(dst *bytes.Buffer, dict, data []byte, whole bool) error {
	w, release := codec.Deflate(dst, dict)
	defer release()
	if _, err := w.Write(data); err != nil {
		return err
	}
	if whole {
		return w.Close()
	}
	return w.Flush()
}

// A slab is memory for one task: what was read and what became of it.
type slab struct{ raw, out bytes.Buffer }

var slabs = sync.Pool{New: func() any { return new(slab) }}

func getSlab() *slab {
	s := slabs.Get().(*slab)
	s.raw.Reset()
	s.out.Reset()
	return s
}

// put gives s back. One that has grown out of proportion is left to the
// collector.
func (s *slab) put() {
	if s.raw.Cap() <= 4*blockSize && s.out.Cap() <= 4*blockSize {
		slabs.Put(s)
	}
}

// blocks puts the content of f on l, a block at a time, and calls finish with
// each one in order, compressed as part of one stream. It reads to the end of f
// or, where most is not negative, at most that much, and returns how much that
// was.
func blocks(l *line, f *os.File, most int64, finish func(raw, deflated []byte) error) (int64, error) {
	var read int64
	var dict []byte
	for {
		want := int64(blockSize)
		if most >= 0 {
			want = min(want, most-read)
		}
		s := getSlab()
		s.raw.Grow(blockSize + bytes.MinRead)
		n, err := s.raw.ReadFrom(io.LimitReader(f, want))
		if err != nil || n == 0 {
			s.put()
			return read, err
		}
		read += n
		before := dict
		raw := s.raw.Bytes()
		dict = bytes.Clone(raw[max(0, len(raw)-window):])
		err = l.put(func() error { return deflate(&s.out, before, raw, false) }, func() error {
			defer s.put()
			return finish(raw, s.out.Bytes())
		})
		if err != nil {
			return read, err
		}
	}
}
