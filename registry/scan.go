package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

var errSyntax = errors.New("invalid JSON")

// maxDepth bounds the nesting of arguments, as encoding/json does.
const maxDepth = 1000

// A scanner reads JSON from memory, value by value, without copying it.
type scanner struct {
	b     []byte
	i     int
	depth int
}

// peek returns the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// take consumes c or fails.
func (s *scanner) take(c byte) error {
	if s.peek() != c {
		return errSyntax
	}
	s.i++
	return nil
}

// rawString consumes a string and returns it without its quotes, escapes kept.
func (s *scanner) rawString() ([]byte, error) {
	if err := s.take('"'); err != nil {
		return nil, err
	}
	start := s.i
	for {
		n := bytes.IndexByte(s.b[s.i:], '"')
		if n < 0 {
			return nil, errSyntax
		}
		end := s.i + n
		k := end
		for k > start && s.b[k-1] == '\\' {
			k--
		}
		s.i = end + 1
		if (end-k)%2 == 0 {
			return s.b[start:end], nil
		}
	}
}

// inPlace is the length from which a string takes the place of its JSON: large
// arguments are not in memory twice.
const inPlace = 64 << 10

// str consumes a string and returns its value. A lone surrogate becomes U+FFFD,
// and so does a run of bytes that are not UTF-8.
func (s *scanner) str() (string, error) {
	raw, err := s.rawString()
	if err != nil {
		return "", err
	}
	dst := raw[:0] // a value is never longer than its JSON
	if len(raw) < inPlace {
		dst = make([]byte, 0, len(raw))
	}
	if dst, err = unescape(dst, raw); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(unsafe.String(unsafe.SliceData(dst), len(dst)), "\uFFFD"), nil
}

// unescape appends what raw stands for to dst, which may be the start of raw.
func unescape(dst, raw []byte) ([]byte, error) {
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(dst, raw...), nil
		}
		dst = append(dst, raw[:n]...)
		raw = raw[n+1:]
		if len(raw) == 0 {
			return nil, errSyntax
		}
		c := raw[0]
		raw = raw[1:]
		switch c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(raw)
			if !ok {
				return nil, errSyntax
			}
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
					low, ok = hex4(raw[2:])
				}
				if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
					raw = raw[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			return nil, errSyntax
		}
	}
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// word consumes a number or literal and returns it.
func (s *scanner) word() ([]byte, error) {
	s.peek()
	start := s.i
	for s.i < len(s.b) && (isWord(s.b[s.i])) {
		s.i++
	}
	if start == s.i {
		return nil, errSyntax
	}
	return s.b[start:s.i], nil
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// null consumes a null if one is next.
func (s *scanner) null() bool {
	if s.peek() == 'n' && bytes.HasPrefix(s.b[s.i:], []byte("null")) {
		s.i += 4
		return true
	}
	return false
}

// skip consumes the next value and returns it.
func (s *scanner) skip() (json.RawMessage, error) {
	c := s.peek()
	start := s.i
	var err error
	switch c {
	case '{':
		err = s.members(func([]byte) error { _, err := s.skip(); return err })
	case '[':
		err = s.elements(func(int) error { _, err := s.skip(); return err })
	case '"':
		_, err = s.rawString()
	default:
		_, err = s.word()
	}
	return s.b[start:s.i], err
}

// members consumes an object and calls f at each value; f must consume it.
// Names without escapes are not copied.
func (s *scanner) members(f func(name []byte) error) error {
	return s.nested('{', '}', func(int) error {
		name, err := s.rawString()
		if err != nil {
			return err
		}
		if bytes.IndexByte(name, '\\') >= 0 {
			if name, err = unescape(nil, name); err != nil {
				return err
			}
		}
		if err := s.take(':'); err != nil {
			return err
		}
		return f(name)
	})
}

// elements consumes an array and calls f at each element; f must consume it.
func (s *scanner) elements(f func(n int) error) error { return s.nested('[', ']', f) }

func (s *scanner) nested(open, end byte, f func(n int) error) error {
	if err := s.take(open); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return errSyntax
	}
	defer func() { s.depth-- }()
	if s.peek() == end {
		s.i++
		return nil
	}
	for n := 0; ; n++ {
		if err := f(n); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.i++
		case end:
			s.i++
			return nil
		default:
			return errSyntax
		}
	}
}
