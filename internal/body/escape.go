package body

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A replacement stands for a byte in a string: up to seven characters, the
// first in the lowest byte, and their number in the highest.
type replacement uint64

func (r replacement) len() int { return int(r >> 56) }

func replaced(s string) replacement {
	r := replacement(len(s)) << 56
	for i := range len(s) {
		r |= replacement(s[i]) << (8 * i)
	}
	return r
}

// replacements are, by layers of JSON strings, those of the bytes that stand
// for themselves nowhere, all of which are below the table's end. A second
// layer escapes the backslashes and quotes of the first.
var replacements = func() (table [3]['\\' + 1]replacement) {
	const hex = "0123456789abcdef"
	enter := func(c byte, s string) { table[1][c], table[2][c] = replaced(s), replaced(again(s)) }
	for c := range byte(' ') {
		enter(c, `\u00`+hex[c>>4:c>>4+1]+hex[c&15:c&15+1])
	}
	for i, c := range []byte("\"\\\b\t\n\f\r") {
		enter(c, `\`+`"\btnfr`[i:i+1])
	}
	return table
}()

// separators are what stands for U+2028 (0) and U+2029 (1), which encoders
// escape so that their output is JavaScript too.
var separators = [3][2]replacement{1: {replaced(`\u2028`), replaced(`\u2029`)}, 2: {replaced(again(`\u2028`)), replaced(again(`\u2029`))}}

func again(s string) string {
	var out []byte
	for _, c := range []byte(s) {
		if c == '"' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return string(out)
}

// Eight bytes are looked at at a time, as lanes of a word; a mark is the highest
// bit of a lane.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
	lows  = 0x7f * ones
)

// stops marks in w the bytes at which [Plain] stops. Only the first mark is
// right: where a difference borrows from the next lane, that lane comes after a
// marked one.
func stops(w uint64) uint64 {
	low := (w ^ 0x02*ones) - 0x21*ones // a quote becomes a space, which nothing above it does
	slash := (w ^ '\\'*ones) - ones
	lead := (w ^ 0xE2*ones) - ones
	return ((low|slash)&^w | lead&w) & highs
}

// Plain is the number of bytes at the start of b that stand for themselves in a
// JSON string: up to the first quote, backslash, control character or 0xE2,
// with which U+2028 begins.
func Plain(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if hit := stops(binary.LittleEndian.Uint64(b[i:])); hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' || c == 0xE2 {
			return i
		}
	}
	return len(b)
}

// separator returns which of the two b begins with, a byte 0xE2: 0, 1, or -1.
func separator(b []byte) int {
	if len(b) >= 3 && b[1] == 0x80 && b[2]&^1 == 0xA8 {
		return int(b[2] & 1)
	}
	return -1
}

// escape writes what stands for the text b in layers of JSON strings to dst
// until one of them comes to its end: less than eight bytes of dst are left then,
// or nothing of b. It returns the lengths of what it wrote and of what that stands
// for. Where b is whole characters, so is the rest of it.
func escape(dst, b []byte, layers int) (n, done int) {
	table := &replacements[layers]
	d, s := dst, b
	for len(s) > 0 && len(d) >= 8 {
		// Words are copied first and looked at then: what follows a stop is
		// overwritten.
		for len(s) >= 16 && len(d) >= 24 {
			v, w := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[8:])
			binary.LittleEndian.PutUint64(d, v)
			binary.LittleEndian.PutUint64(d[8:], w)
			if p, q := stops(v), stops(w); p|q != 0 {
				k := bits.TrailingZeros64(p) / 8
				if p == 0 {
					k = 8 + bits.TrailingZeros64(q)/8
				}
				s, d = s[k:], d[k:]
				break
			}
			s, d = s[16:], d[16:]
		}
		if len(s) == 0 {
			break
		}
		c := s[0]
		r, k := 1<<56|replacement(c), 1
		switch {
		case c < ' ' || c == '"' || c == '\\':
			r = table[c]
		case c == 0xE2:
			if i := separator(s); i >= 0 {
				r, k = separators[layers][i], 3
			}
		}
		binary.LittleEndian.PutUint64(d, uint64(r))
		s, d = s[k:], d[r.len():]
	}
	return len(dst) - len(d), len(b) - len(s)
}

// EscapedLen is the number of bytes that b, UTF-8, takes inside a JSON string
// (layers 1) or a JSON string inside a JSON string (2), without the quotes, as
// encoding/json without HTML escapes writes it. The lengths of parts of a text
// add up to that of the whole if no character is split between them.
func EscapedLen(b []byte, layers int) int { return EscapedLens(b)[layers] }

// EscapedLens is [EscapedLen] for 1 and 2 layers, and the length of b (0), in
// one pass.
func EscapedLens(b []byte) [3]int {
	var all census
	rest := b
	for len(rest) >= 8 {
		k := min(len(rest)&^7, 8*255) // a lane does not hold more
		all.count(rest[:k])
		rest = rest[k:]
	}
	if len(rest) > 0 {
		last := [8]byte{' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '}
		copy(last[:], rest)
		all.count(last[:])
	}
	seps := 0
	if all.wide {
		seps = bytes.Count(b, []byte("\u2028")) + bytes.Count(b, []byte("\u2029"))
	}
	return [3]int{
		len(b),
		len(b) + all.special + 4*all.long + 3*seps,
		len(b) + 3*all.special - all.control + 4*all.long + 4*seps,
	}
}

// A census counts the bytes of a text that are replaced.
type census struct {
	special int  // all of them
	control int  // control characters
	long    int  // those without a short form
	wide    bool // there is more than ASCII
}

// count counts those in b, whole words and at most 255.
func (c *census) count(b []byte) {
	n := len(b)
	var plain, graphic, short, all uint64 // what is not special, control and long, by lanes
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		b = b[8:]
		all |= w
		x := w & lows // so that no sum is carried into the next lane
		g := x + (0x80-' ')*ones | w
		p := (x^0x02*ones+(0x80-0x21)*ones)&(x^'\\'*ones+lows) | w
		s := (x+(0x80-'\b')*ones)&^(x+(0x80-'\r'-1)*ones)&(x^'\v'*ones+lows) | g
		plain += p >> 7 & ones
		graphic += g >> 7 & ones
		short += s >> 7 & ones
	}
	c.special += n - lanes(plain)
	c.control += n - lanes(graphic)
	c.long += n - lanes(short)
	c.wide = c.wide || all&highs != 0
}

// lanes is the sum of the lanes of w.
func lanes(w uint64) int {
	const even = 0x00ff00ff00ff00ff
	return int((w&even + w>>8&even) * 0x0001000100010001 >> 48)
}

// AppendString appends s as a JSON string, quotes included, to b, as
// encoding/json without HTML escapes writes it.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	for {
		i := ordinary(s)
		b = append(b, s[:i]...)
		if i == len(s) {
			return append(b, '"')
		}
		n := 1
		switch c := s[i]; {
		case c < utf8.RuneSelf:
			b = appendReplacement(b, replacements[1][c])
		default:
			var r rune
			switch r, n = utf8.DecodeRuneInString(s[i:]); {
			case r == utf8.RuneError && n == 1:
				b = append(b, `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				b = appendReplacement(b, separators[1][r-'\u2028'])
			default:
				b = append(b, s[i:i+n]...)
			}
		}
		s = s[i+n:]
	}
}

// ordinary is the number of bytes at the start of s that are ASCII and stand for
// themselves in a JSON string.
func ordinary(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		t := s[i : i+8]
		w := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
		if hit := (stops(w) | w) & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

func appendReplacement(b []byte, r replacement) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(r))[:len(b)+r.len()]
}
