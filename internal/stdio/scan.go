package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
)

const (
	maxDepth = 1000 // levels of nesting that are accepted, as by the SDK's decoder
	maxRaw   = 4096 // bytes kept of a key, an id and a method
)

// A scanner checks the syntax of one JSON text, which arrives in pieces, and
// notes the members of its outermost object that JSON-RPC knows. It needs the
// same memory for any text.
type scanner struct {
	state   state
	rest    string // what is still to come of true, false, null or \u0000
	kind    byte   // the first byte of the text
	depth   int    // open objects and arrays
	objects [maxDepth/64 + 1]uint64
	deep    bool  // nested beyond maxDepth; brackets are only counted there
	off     int64 // bytes fed before the current piece
	inKey   bool  // the string being read is a key
	into    *member
	key     member
	named   *member // what the last key of the outermost object names
	param   *member // what the last key of the object params names

	version, id, method, params, result, fault member
	tool, arguments, meta                      member // of params
	extra                                      bool   // params has other members, or one of these twice
	ignored                                    member
}

// A member is the value of a member of the outermost object or of its params. Of
// several with the same name the last counts.
type member struct {
	kind       byte  // the value's first byte; 0: there is no such member
	start, end int64 // where it stands in the text
	raw        []byte
	long       bool // raw holds only the first of its bytes
}

type state uint8

const (
	value      state = iota // a value must follow
	firstValue              // a value or the end of an empty array
	firstKey                // a key or the end of an empty object
	nextKey                 // a key
	colon                   // a colon
	after                   // a value has ended
	inString
	escaped // after a backslash
	hex     // in the digits of \u0000
	literal // in true, false or null
	minus   // in a number, after the minus sign
	zero    // after a leading 0
	integer // in the digits before a point
	point   // after the point
	fraction
	exponent // after e or E
	sign     // after the sign of an exponent
	power    // in the digits of an exponent
	tooDeep  // beyond maxDepth
	broken   // this is not JSON
)

// complete reports whether all that was fed is one valid JSON text.
func (s *scanner) complete() bool {
	return s.depth == 0 && (s.state == after || s.ends())
}

// blank reports whether nothing but blanks was fed.
func (s *scanner) blank() bool { return s.state == value && s.depth == 0 }

// ends reports whether the number being read could end here.
func (s *scanner) ends() bool {
	return s.state == zero || s.state == integer || s.state == fraction || s.state == power
}

// feed reads the next piece of the text.
func (s *scanner) feed(b []byte) {
	for i := 0; i < len(b); {
		if s.state == inString {
			n := body.Plain(b[i:])
			s.keep(b[i : i+n])
			if i += n; i == len(b) {
				break
			}
		}
		if s.step(b[i], s.off+int64(i)) {
			i++
		}
	}
	s.off += int64(len(b))
}

// step reads the byte c, which stands at position at. It reports false where c
// ended a number and must be read again.
func (s *scanner) step(c byte, at int64) bool {
	switch s.state {
	case inString:
		s.keep([]byte{c})
		switch {
		case c == '"':
			s.endString(at + 1)
		case c == '\\':
			s.state = escaped
		case c < ' ':
			s.state = broken
		}
	case escaped:
		s.keep([]byte{c})
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.state = inString
		case 'u':
			s.state, s.rest = hex, "0000"
		default:
			s.state = broken
		}
	case hex:
		s.keep([]byte{c})
		if s.rest = s.rest[1:]; !isHex(c) {
			s.state = broken
		} else if s.rest == "" {
			s.state = inString
		}
	case literal:
		s.keep([]byte{c})
		if c != s.rest[0] {
			s.state = broken
		} else if s.rest = s.rest[1:]; s.rest == "" {
			s.endValue(at + 1)
		}
	case minus, zero, integer, point, fraction, exponent, sign, power:
		return s.number(c, at)
	case tooDeep:
		switch c {
		case '"':
			s.state = inString
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth--; s.depth == maxDepth {
				s.state = after
			}
		}
	case broken:
	default:
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			s.token(c, at)
		}
	}
	return true
}

// token reads the first byte of a token.
func (s *scanner) token(c byte, at int64) {
	switch s.state {
	case firstValue:
		if c == ']' {
			s.close(at + 1)
			return
		}
		s.begin(c, at)
	case value:
		s.begin(c, at)
	case firstKey, nextKey:
		switch {
		case c == '}' && s.state == firstKey:
			s.close(at + 1)
		case c == '"':
			s.state, s.inKey = inString, true
			if s.depth == 1 || s.inParams() {
				s.key = member{raw: append(s.key.raw[:0], c)}
				s.into = &s.key
			}
		default:
			s.state = broken
		}
	case colon:
		if s.state = value; c != ':' {
			s.state = broken
		}
	case after:
		object := s.inObject()
		switch {
		case s.depth > 0 && c == ',' && object:
			s.state = nextKey
		case s.depth > 0 && c == ',':
			s.state = value
		case s.depth > 0 && (c == '}' && object || c == ']' && !object):
			s.close(at + 1)
		default:
			s.state = broken
		}
	}
}

// begin reads the first byte of a value.
func (s *scanner) begin(c byte, at int64) {
	if s.kind == 0 {
		s.kind = c
	}
	switch {
	case s.depth == 1 && s.inObject():
		s.named = s.find()
		if s.named == &s.params {
			s.tool, s.arguments, s.meta, s.extra = member{raw: s.tool.raw[:0]}, member{}, member{}, false
		}
		s.enter(s.named, c, at)
	case s.inParams() && s.inObject():
		s.param = s.findParam()
		s.extra = s.extra || s.param == &s.ignored || s.param.kind != 0
		s.enter(s.param, c, at)
	}
	switch {
	case c == '{' || c == '[':
		s.into = nil
		s.open(c == '{')
	case c == '"':
		s.state, s.inKey = inString, false
	case c == '-':
		s.state = minus
	case c == '0':
		s.state = zero
	case '1' <= c && c <= '9':
		s.state = integer
	case c == 't':
		s.state, s.rest = literal, "rue"
	case c == 'f':
		s.state, s.rest = literal, "alse"
	case c == 'n':
		s.state, s.rest = literal, "ull"
	default:
		s.state = broken
	}
}

// enter notes that the value of m begins with c.
func (s *scanner) enter(m *member, c byte, at int64) {
	*m = member{kind: c, start: at, raw: m.raw[:0]}
	if s.into = nil; m == &s.version || m == &s.id || m == &s.method || m == &s.tool {
		s.into = m
	}
	s.keep([]byte{c})
}

// number reads a byte of a number, or the one after it.
func (s *scanner) number(c byte, at int64) bool {
	digit := '0' <= c && c <= '9'
	next := broken
	switch s.state {
	case minus:
		if c == '0' {
			next = zero
		} else if digit {
			next = integer
		}
	case zero, integer:
		switch {
		case digit && s.state == integer:
			next = integer
		case c == '.':
			next = point
		case c == 'e' || c == 'E':
			next = exponent
		}
	case point, fraction:
		switch {
		case digit:
			next = fraction
		case s.state == fraction && (c == 'e' || c == 'E'):
			next = exponent
		}
	case exponent:
		if c == '+' || c == '-' {
			next = sign
		} else if digit {
			next = power
		}
	case sign, power:
		if digit {
			next = power
		}
	}
	if next == broken && s.ends() {
		s.endValue(at)
		return false
	}
	s.state = next
	s.keep([]byte{c})
	return true
}

func (s *scanner) open(object bool) {
	s.depth++
	if s.depth > maxDepth {
		s.deep, s.state = true, tooDeep
		return
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if object {
		s.objects[word] |= bit
		s.state = firstKey
	} else {
		s.objects[word] &^= bit
		s.state = firstValue
	}
}

// inObject reports whether the innermost open bracket is a brace.
func (s *scanner) inObject() bool {
	return s.objects[s.depth/64]>>(s.depth%64)&1 == 1
}

// inParams reports whether what is read is directly in the params.
func (s *scanner) inParams() bool { return s.depth == 2 && s.named == &s.params }

func (s *scanner) close(end int64) {
	s.depth--
	s.endValue(end)
}

func (s *scanner) endString(end int64) {
	switch {
	case s.depth > maxDepth:
		s.state = tooDeep
	case s.inKey:
		s.state, s.into = colon, nil
	default:
		s.endValue(end)
	}
}

// endValue notes that a value ended before position end.
func (s *scanner) endValue(end int64) {
	switch {
	case s.depth == 1 && s.inObject():
		s.named.end = end
	case s.inParams() && s.inObject():
		s.param.end = end
	}
	s.state, s.into = after, nil
}

// keep remembers bytes of a token of which more than its place matters.
func (s *scanner) keep(b []byte) {
	if s.into == nil {
		return
	}
	room := maxRaw - len(s.into.raw)
	s.into.long = s.into.long || len(b) > room
	s.into.raw = append(s.into.raw, b[:min(len(b), room)]...)
}

// find is the member that the current key of the outermost object names.
func (s *scanner) find() *member {
	name, _ := s.key.string()
	switch string(name) {
	case "jsonrpc":
		return &s.version
	case "id":
		return &s.id
	case "method":
		return &s.method
	case "params":
		return &s.params
	case "result":
		return &s.result
	case "error":
		return &s.fault
	}
	return &s.ignored
}

// findParam is the member that the current key of params names.
func (s *scanner) findParam() *member {
	name, _ := s.key.string()
	switch string(name) {
	case "name":
		return &s.tool
	case "arguments":
		return &s.arguments
	case "_meta":
		return &s.meta
	}
	return &s.ignored
}

// reset prepares s for another text. It keeps the room for what is kept.
func (s *scanner) reset() {
	key, version, id, method, tool := s.key.raw[:0], s.version.raw[:0], s.id.raw[:0], s.method.raw[:0], s.tool.raw[:0]
	*s = scanner{}
	s.key.raw, s.version.raw, s.id.raw, s.method.raw, s.tool.raw = key, version, id, method, tool
}

// string is the value of a string; ok is false for anything else and for one
// that was not kept whole.
func (m *member) string() (text []byte, ok bool) {
	n := len(m.raw)
	if m.long || n < 2 || m.raw[0] != '"' || m.raw[n-1] != '"' {
		return nil, false
	}
	if raw := m.raw[1 : n-1]; bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return raw, true
	}
	var s string
	err := json.Unmarshal(m.raw, &s)
	return []byte(s), err == nil
}

// text is the value of a string, like string, to be kept.
func (m *member) text() (string, bool) {
	text, ok := m.string()
	if string(text) == toolsCall {
		return toolsCall, ok
	}
	return string(text), ok
}

var errID = errors.New("id must be a string or an integer between -9007199254740991 and 9007199254740991")

// parseID returns the id that m holds, invalid where there is none. An id that
// cannot be repeated exactly in a reply is an error.
func parseID(m *member) (jsonrpc.ID, error) {
	switch {
	case m.kind == 0:
		return jsonrpc.ID{}, nil
	case m.end == 0:
		return jsonrpc.ID{}, errID // the text ended inside it
	case m.kind == '"':
		text, ok := m.text()
		if !ok || bytes.ContainsRune([]byte(text), utf8.RuneError) {
			return jsonrpc.ID{}, errors.New("id must be valid Unicode of at most 4096 bytes")
		}
		return jsonrpc.MakeID(text)
	}
	const safe = 1<<53 - 1 // the largest integer that every JSON reader keeps apart from its neighbours
	n, err := strconv.ParseInt(string(m.raw), 10, 64)
	if err != nil || n < -safe || n > safe {
		return jsonrpc.ID{}, errID
	}
	return jsonrpc.MakeID(float64(n))
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
