package search

import (
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// wide turns UTF-16 into UTF-8. What is no character becomes U+FFFD.
type wide struct {
	in  io.Reader
	big bool

	raw  [32 << 10]byte
	kept int    // bytes at the beginning of raw that belong to the next character
	out  []byte // decoded, not yet read
	err  error
}

func (w *wide) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		var n int
		n, w.err = w.in.Read(w.raw[w.kept:])
		w.decode(w.raw[:w.kept+n])
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

func (w *wide) decode(b []byte) {
	w.out = w.out[:0]
	for len(b) >= 2 {
		r := w.unit(b)
		size := 2
		if utf16.IsSurrogate(r) {
			if len(b) < 4 && w.err == nil {
				break
			}
			pair := rune(utf8.RuneError)
			if len(b) >= 4 {
				pair = utf16.DecodeRune(r, w.unit(b[2:]))
			}
			if r = pair; pair != utf8.RuneError {
				size = 4
			}
		}
		w.out = utf8.AppendRune(w.out, r)
		b = b[size:]
	}
	if len(b) > 0 && w.err != nil {
		w.out, b = utf8.AppendRune(w.out, utf8.RuneError), nil
	}
	w.kept = copy(w.raw[:], b)
}

func (w *wide) unit(b []byte) rune {
	if w.big {
		return rune(binary.BigEndian.Uint16(b))
	}
	return rune(binary.LittleEndian.Uint16(b))
}
