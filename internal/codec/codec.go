// Package codec opens compressed streams, with memory that is used again and
// bounds on what a stream may ask for.
package codec

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"
)

// zstdWindow is the most memory that a zstd stream may ask for to look back.
const zstdWindow = 128 << 20

// level gives sizes like those of zip -6 and gzip -6.
const level = 6

// Gzip opens a gzip stream.
func Gzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

// Bzip2 opens a bzip2 stream.
func Bzip2(r io.Reader) (io.ReadCloser, error) { return archives.Bz2{}.OpenReader(r) }

// Xz opens an xz stream.
func Xz(r io.Reader) (io.ReadCloser, error) { return archives.Xz{}.OpenReader(r) }

// Zstd opens a zstd stream.
func Zstd(r io.Reader) (io.ReadCloser, error) {
	return archives.Zstd{DecoderOptions: []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow)}}.OpenReader(r)
}

// An inflater decompresses one stream at a time.
type inflater struct {
	in  *bufio.Reader
	out io.ReadCloser
}

var inflaters = sync.Pool{New: func() any {
	in := bufio.NewReaderSize(nil, 64<<10)
	return &inflater{in, flate.NewReader(in)}
}}

// Inflate returns a reader of what is deflated in r. To close it gives its
// memory back.
func Inflate(r io.Reader) io.ReadCloser {
	i := inflaters.Get().(*inflater)
	i.in.Reset(r)
	if err := i.out.(flate.Resetter).Reset(i.in, nil); err != nil {
		return failing{err}
	}
	return &inflating{i}
}

// inflating gives its inflater back when it is closed.
type inflating struct{ *inflater }

func (i *inflating) Read(b []byte) (int, error) {
	if i.inflater == nil {
		return 0, fs.ErrClosed
	}
	return i.out.Read(b)
}

func (i *inflating) Close() error {
	if i.inflater != nil {
		inflaters.Put(i.inflater)
		i.inflater = nil
	}
	return nil
}

// failing is a stream that cannot be opened.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
func (f failing) Close() error             { return nil }

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, level)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}}

// Deflate returns a writer that deflates to w, which may refer to dict as what
// came before, and what gives its memory back.
func Deflate(w io.Writer, dict []byte) (d *flate.Writer, release func()) {
	d = deflaters.Get().(*flate.Writer)
	d.ResetDict(w, dict)
	return d, func() { deflaters.Put(d) }
}

// WithContext returns a reader of r that ends with its context.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(b)
}
