package pack

import (
	"io"

	"github.com/klauspost/compress/flate"
)

// These are the parts that a reader and writer of zip files of its own needs.

// EntryName gives the name of an entry, as an archive has it, the form in which
// names are used here: UTF-8, without doubled slashes and "./", and without the
// slash of a directory. It may still be bad.
func EntryName(raw string, zip bool) string { return tidy(readable(raw, zip)) }

// streamed are the formats of which a zip may have the compression of entries,
// by its methods.
var streamed = map[uint16]Format{12: TarBz2, 93: TarZst, 95: TarXz}

// Inflate returns a reader of what a zip has compressed by method in r; ok is
// false where the method is not supported.
func Inflate(r io.Reader, method uint16) (c io.ReadCloser, ok bool) {
	switch method {
	case 0:
		return io.NopCloser(r), true
	case 8:
		return inflated(r), true
	}
	f, ok := streamed[method]
	if !ok {
		return nil, false
	}
	c, err := decompress(r, f)
	if err != nil {
		return failing{err}, true
	}
	return c, true
}

// Deflater returns a writer that compresses to w, and what gives its memory
// back.
func Deflater(w io.Writer) (d *flate.Writer, release func()) {
	d = deflaters.Get().(*flate.Writer)
	d.Reset(w)
	return d, func() { deflaters.Put(d) }
}
