package body

import (
	"encoding/binary"
	"math/bits"
)

// replacement holds, for 1 and 2 layers of JSON strings, what stands for each
// byte; an empty entry means the byte itself. A second layer escapes the
// backslashes and quotes of the first.
var replacement = func() (table [3][256]string) {
	const hex = "0123456789abcdef"
	short := map[byte]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`}
	for c := range 256 {
		s, ok := short[byte(c)]
		if !ok && c < ' ' {
			s = `\u00` + hex[c>>4:c>>4+1] + hex[c&15:c&15+1]
		}
		table[1][c], table[2][c] = s, again(s)
	}
	return table
}()

// separator is what stands for U+2028 (0) and U+2029 (1), which encoders
// escape so that their output is JavaScript too.
var separator = [3][2]string{1: {`\u2028`, `\u2029`}, 2: {again(`\u2028`), again(`\u2029`)}}

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

// Plain is the number of bytes at the start of b that stand for themselves in a
// JSON string: up to the first quote, backslash, control character or 0xE2,
// with which U+2028 begins. It looks at eight bytes at a time.
func Plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash, lead := w^('"'*ones), w^('\\'*ones), w^(0xE2*ones)
		// x-ones&^x has the high bit of each zero byte of x; a borrow can only
		// mark bytes after a marked one, so the first mark is right.
		hit := ((w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash | (lead-ones)&^lead) & highs
		if hit != 0 {
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

// escape returns the text that stands for the character at b[0], a byte at
// which [Plain] stopped, and how many bytes it replaces. An empty text means
// that those bytes stand for themselves.
func escape(b []byte, layers int) (text string, n int) {
	if b[0] != 0xE2 {
		return replacement[layers][b[0]], 1
	}
	if len(b) >= 3 && b[1] == 0x80 && (b[2] == 0xA8 || b[2] == 0xA9) {
		return separator[layers][b[2]-0xA8], 3
	}
	return "", 1
}

// EscapedLen is the number of bytes that b, UTF-8, takes inside a JSON string
// (layers 1) or a JSON string inside a JSON string (2), without the quotes, as
// encoding/json without HTML escapes writes it. The lengths of parts of a text
// add up to that of the whole if no character is split between them.
func EscapedLen(b []byte, layers int) int {
	n := len(b)
	for {
		i := Plain(b)
		if i == len(b) {
			return n
		}
		text, width := escape(b[i:], layers)
		if text != "" {
			n += len(text) - width
		}
		b = b[i+width:]
	}
}
