package picture

import (
	"bytes"
	"context"
	"io"
)

// A source is the bytes of an image file.
type source struct {
	io.ReaderAt
	size   int64
	window *window
}

// A window is what was read of a source last.
type window struct {
	from  int64
	bytes []byte
}

const windowSize = 4096

func newSource(r io.ReaderAt, size int64) source { return source{r, size, new(window)} }

func memory(b []byte) source { return newSource(bytes.NewReader(b), int64(len(b))) }

// section is a part of a source.
func (s source) section(from, n int64) source { return newSource(io.NewSectionReader(s, from, n), n) }

// part returns n bytes, nil where there are not as many.
func (s source) part(from, n int64) []byte {
	if from < 0 || n < 0 || n > s.size-from {
		return nil
	}
	w := s.window
	if from < w.from || from+n > w.from+int64(len(w.bytes)) {
		b := make([]byte, max(n, min(windowSize, s.size-from)))
		if got, _ := s.ReadAt(b, from); got < len(b) {
			return nil
		}
		w.from, w.bytes = from, b
	}
	from -= w.from
	return w.bytes[from : from+n : from+n]
}

// all reads the source from its beginning, until ctx ends.
func (s source) all(ctx context.Context) io.Reader {
	return io.NewSectionReader(untilDone{ctx, s.ReaderAt}, 0, s.size)
}

// untilDone reads while ctx goes on.
type untilDone struct {
	ctx context.Context
	io.ReaderAt
}

func (u untilDone) ReadAt(p []byte, from int64) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.ReaderAt.ReadAt(p, from)
}
