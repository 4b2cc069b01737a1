package charset

import (
	"bytes"
	"errors"
	"iter"

	"golang.org/x/text/transform"
)

// Declared returns the charset that a Content-Type header tells, as Decode
// would report it, or "".
func Declared(contentType string) string {
	_, name := lookup(parameter(contentType))
	return name
}

// Marked reports whether b begins with a byte order mark.
func Marked(b []byte) bool {
	return bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(b, []byte("\xfe\xff")) || bytes.HasPrefix(b, []byte("\xff\xfe"))
}

// TextOffset returns where in the text of b, decoded from the charset that
// Decode called name, the first character begins whose bytes begin at or after
// offset.
func TextOffset(b []byte, name string, offset int) int {
	at := 0
	for p := range characters(b, name) {
		if at = p.text; p.source >= offset {
			break
		}
	}
	return at
}

// SourceOffset is the inverse of TextOffset: where in b the character begins
// that begins at or after offset in its text.
func SourceOffset(b []byte, name string, offset int) int {
	at := 0
	for p := range characters(b, name) {
		if at = p.source; p.text >= offset {
			break
		}
	}
	return at
}

// A boundary lies between two characters.
type boundary struct{ source, text int }

// characters yields the boundaries before each character of b, and the end.
func characters(b []byte, name string) iter.Seq[boundary] {
	return func(yield func(boundary) bool) {
		enc, _ := lookup(name)
		if enc == nil {
			yield(boundary{len(b), len(b)})
			return
		}
		decoder := enc.NewDecoder().Transformer
		var text [16]byte
		at, n := boundary{}, 1
		for at.source+n <= len(b) {
			dst, src, err := decoder.Transform(text[:], b[at.source:at.source+n], at.source+n == len(b))
			if src == 0 && dst == 0 && errors.Is(err, transform.ErrShortSrc) && at.source+n < len(b) {
				n++ // the character takes more bytes
				continue
			}
			if src == 0 { // no charset has such characters
				break
			}
			if dst > 0 && !yield(at) {
				return
			}
			at.source += src
			at.text += dst
			n = 1
		}
		yield(boundary{len(b), at.text})
	}
}
