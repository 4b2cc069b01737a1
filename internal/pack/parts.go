package pack

import (
	"io"
	"time"

	"github.com/klauspost/compress/flate"
)

// These are the parts that a reader and writer of zip files of its own needs.

// EntryName gives the name of an entry, as an archive has it, the form in which
// names are used here: UTF-8, without doubled slashes and "./", and without the
// slash of a directory. It may still be bad.
func EntryName(raw string, zip bool) string { return tidy(readable(raw, zip)) }

// BadName says what makes a name unfit to be written below a directory, ""
// where nothing does.
func BadName(name string) string { return badName(name) }

// Shown is a name from an archive as messages show it.
func Shown(name string) string { return shown(name) }

// Stays reports whether a link in directory dir with this text never leaves the
// top that dir is relative to, if what it passes are directories.
func Stays(text, dir string) bool { return stays(text, dir) }

// Inflate returns a reader of what a zip has compressed by method in r; ok is
// false where the method is not supported.
func Inflate(r io.Reader, method uint16) (c io.ReadCloser, ok bool) {
	switch method {
	case 0:
		return io.NopCloser(r), true
	case 8:
		return inflated(r), true
	}
	f, ok := map[uint16]Format{12: TarBz2, 93: TarZst, 95: TarXz}[method]
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

// DOSTime is t in UTC as the headers of a zip have it, in steps of two seconds.
func DOSTime(t time.Time) (date, clock uint16) { return dosTime(t) }

// TimeExtra is t to the second as an extra field of a zip.
func TimeExtra(t time.Time) []byte { return timeExtra(t) }
