package mediatype

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// json returns the type of a text that begins with a bracket after spaces:
// application/json, or plain where it is none of the formats written in JSON, or
// "" where only the library can tell. It is stricter than the library, which
// accepts some texts that are no JSON.
func json(head []byte) string {
	if stops(head) {
		return plain
	}
	s := jsonScan{b: head}
	s.value(false)
	s.space()
	switch {
	case s.unsure || s.i < len(head):
		return ""
	case s.cut && len(head) < HeadSize:
		return "" // a whole file that ends too early
	}
	return "application/json"
}

// jsonScan reads JSON from b until it ends. The first thing that is not as it
// should be makes it unsure, and then nothing more is read.
type jsonScan struct {
	b           []byte
	i           int
	cut, unsure bool
}

func (s *jsonScan) space() {
	i := s.i
	for i < len(s.b) && s.b[i] <= ' ' && jsonSpaces>>s.b[i]&1 == 1 {
		i++
	}
	s.i = i
}

// peek returns the next byte after spaces. Where there is none, the text is cut
// off and nothing more is read.
func (s *jsonScan) peek() byte {
	s.space()
	if s.i == len(s.b) {
		s.cut = true
		return 0
	}
	return s.b[s.i]
}

func (s *jsonScan) done() bool { return s.cut || s.unsure }

// value reads a value, of the member type of an object if typed.
func (s *jsonScan) value(typed bool) {
	switch c := s.peek(); {
	case s.cut:
	case c == '{':
		s.object()
	case c == '[':
		s.array()
	case c == '"':
		s.i++
		text := s.text()
		switch {
		case s.cut && len(text) > 0 && bytes.IndexByte([]byte(",]}"), text[0]) >= 0:
			s.unsure = true // the library reads on from there
		case typed:
			s.unsure = s.unsure || geographic(text)
		}
	case c == 't':
		s.constant("true")
	case c == 'f':
		s.constant("false")
	case c == 'n':
		s.constant("null")
	default:
		s.number()
	}
}

func (s *jsonScan) object() {
	s.i++
	if s.peek() == '}' {
		s.i++
		return
	}
	for !s.done() {
		if c := s.peek(); c != '"' {
			s.unsure = !s.cut
			return
		}
		s.i++
		name := s.text()
		if s.done() {
			return
		}
		if string(name) == "asset" || string(name) == "bomFormat" { // glTF, CycloneDX
			s.unsure = true
			return
		}
		if c := s.peek(); c != ':' {
			s.unsure = !s.cut
			return
		}
		s.i++
		s.value(string(name) == "type")
		if s.done() || s.closed('}') {
			return
		}
	}
}

func (s *jsonScan) array() {
	s.i++
	if s.peek() == ']' {
		s.i++
		return
	}
	for !s.done() {
		s.value(false)
		if s.done() || s.closed(']') {
			return
		}
	}
}

// closed reads what comes after an element: a comma or the closing bracket.
func (s *jsonScan) closed(bracket byte) bool {
	c := s.peek()
	if s.cut {
		return true
	}
	s.i++
	s.unsure = c != ',' && c != bracket
	return c == bracket
}

// text reads a string from behind its first quote and returns what is in it.
func (s *jsonScan) text() []byte {
	b := s.b[s.i:]
	for i := 0; i < len(b); i++ {
		if len(b)-i >= 8 {
			x := binary.LittleEndian.Uint64(b[i:])
			found := zero(x^'"'*ones) | zero(x^'\\'*ones)
			if found == 0 {
				i += 7
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		switch b[i] {
		case '"':
			s.i += i + 1
			return b[:i]
		case '\\':
			i++
			s.unsure = s.unsure || i < len(b) && !escape(b[i:])
		}
	}
	s.i, s.cut = len(s.b), true
	return b
}

// zero sets the highest bit of the first byte of x that is 0; what is set
// behind it means nothing.
func zero(x uint64) uint64 { return (x - ones) &^ x & (0x80 * ones) }

// escape reports whether b, which may be cut off, continues a backslash.
func escape(b []byte) bool {
	switch b[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		return len(bytes.TrimLeft(b[1:min(len(b), 5)], "0123456789abcdefABCDEF")) == 0
	}
	return false
}

func (s *jsonScan) constant(w string) {
	n := min(len(w), len(s.b)-s.i)
	s.unsure = string(s.b[s.i:s.i+n]) != w[:n]
	s.cut = n < len(w)
	s.i += n
}

func (s *jsonScan) number() {
	if s.b[s.i] == '-' {
		s.i++
	}
	s.digits()
	if !s.done() && s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		s.digits()
	}
	if !s.done() && s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		s.digits()
	}
}

func (s *jsonScan) digits() {
	start := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	s.cut = s.i == len(s.b)
	s.unsure = s.i == start && !s.cut
}

// geographic reports whether t is the type of a GeoJSON object.
func geographic(t []byte) bool {
	switch string(t) {
	case "Feature", "FeatureCollection", "Point", "LineString", "Polygon", "MultiPoint", "MultiLineString",
		"MultiPolygon", "GeometryCollection":
		return true
	}
	return false
}

// jsonLines reports whether head may be lines of JSON values, one of them at
// least an object or an array.
func jsonLines(head []byte) bool {
	found := false
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if stops(line) {
			return false
		}
		t := trim(line, jsonSpaces)
		found = found || has(t, "{") || has(t, "[")
	}
	return found
}

// stops reports whether the library's reader of JSON surely stops at a byte of b
// that it cannot use, so that it neither accepts b nor takes it for cut off.
func stops(b []byte) bool {
	b = trim(b, jsonSpaces)
	if len(b) == 0 {
		return false
	}
	rest := trim(b[1:], jsonSpaces)
	switch c := b[0]; {
	case c == '{':
		return len(rest) > 0 && rest[0] != '"' && rest[0] != '}'
	case c == '[':
		return len(rest) > 0 && bytes.IndexByte([]byte(`]{["-.0123456789`), rest[0]) < 0 && !word(rest)
	case c == '"':
		i := 1 + bytes.IndexAny(b[1:], `"\`)
		return i > 0 && b[i] == '"' && len(trim(b[i+1:], jsonSpaces)) > 0
	case c == '-', c == '.', '0' <= c && c <= '9':
		return len(bytes.TrimLeft(b, "0123456789+-.eE \t\r\n")) > 0
	}
	return !word(b)
}

// word reports whether b begins with a word of JSON, or is the start of one.
func word(b []byte) bool {
	for _, w := range [...]string{"true", "false", "null"} {
		if n := min(len(b), len(w)); string(b[:n]) == w[:n] {
			return true
		}
	}
	return false
}
