package textfile

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// A form is how a text is stored.
type form struct {
	charset string // as reported; empty without a byte order mark
	mark    int64  // length of the byte order mark
	order   binary.ByteOrder
}

// formOf tells a text's form by its first bytes.
func formOf(head []byte) form {
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return form{charset: "utf-8", mark: 3}
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return form{charset: "utf-16le", mark: 2, order: binary.LittleEndian}
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return form{charset: "utf-16be", mark: 2, order: binary.BigEndian}
	}
	return form{}
}

// wide reports whether characters are stored in units of two bytes.
func (f form) wide() bool { return f.order != nil }

// unit is the number of bytes that a line end takes.
func (f form) unit() int {
	if f.wide() {
		return 2
	}
	return 1
}

// next decodes the first character of b, which is not empty, and returns the
// number of bytes it takes. A rune of -1 stands for what is no character.
func (f form) next(b []byte) (rune, int) {
	if !f.wide() {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return -1, 1
		}
		return r, n
	}
	if len(b) < 2 {
		return -1, 1
	}
	r := rune(f.order.Uint16(b))
	if !utf16.IsSurrogate(r) {
		return r, 2
	}
	if len(b) >= 4 {
		if pair := utf16.DecodeRune(r, rune(f.order.Uint16(b[2:]))); pair != utf8.RuneError {
			return pair, 4
		}
	}
	return -1, 2
}

// whole returns the length of b without a character that may go on after it.
func (f form) whole(b []byte) int {
	if !f.wide() {
		for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
			if utf8.RuneStart(b[i]) {
				if utf8.FullRune(b[i:]) {
					break
				}
				return i
			}
		}
		return len(b)
	}
	n := len(b) &^ 1
	if n >= 2 {
		if u := f.order.Uint16(b[n-2:]); u >= 0xd800 && u < 0xdc00 {
			n -= 2
		}
	}
	return n
}

// decode returns raw, which begins and ends between characters, as valid UTF-8:
// raw itself where it is that, else appended to the empty dst. What is no
// character becomes U+FFFD and makes it lossy.
func (f form) decode(dst, raw []byte) (text []byte, lossy bool) {
	if !f.wide() && utf8.Valid(raw) {
		return raw, false
	}
	for len(raw) > 0 {
		r, n := f.next(raw)
		lossy = lossy || r < 0
		dst = utf8.AppendRune(dst, r)
		raw = raw[n:]
	}
	return dst, lossy
}

// lines counts the line ends in b, which begins between characters.
func (f form) lines(b []byte) int64 {
	if !f.wide() {
		return int64(bytes.Count(b, []byte{'\n'}))
	}
	n := int64(0)
	for i := f.line(b); i >= 0; i = f.line(b) {
		b = b[i:]
		n++
	}
	return n
}

// line returns how much of b its first line takes, line end included, or -1
// where none ends in b. b begins between characters.
func (f form) line(b []byte) int {
	for from := 0; from < len(b); {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			break
		}
		if i += from; !f.wide() {
			return i + 1
		}
		if from = i&^1 + 2; from <= len(b) && f.order.Uint16(b[from-2:]) == '\n' {
			return from
		}
	}
	return -1
}

// lastLine returns where in b the line begins that follows the last line end,
// or -1 where none ends in b. b begins between characters.
func (f form) lastLine(b []byte) int {
	for {
		i := bytes.LastIndexByte(b, '\n')
		if i < 0 {
			return -1
		}
		if !f.wide() {
			return i + 1
		}
		if i &^= 1; i+2 <= len(b) && f.order.Uint16(b[i:]) == '\n' {
			return i + 2
		}
		b = b[:i]
	}
}
