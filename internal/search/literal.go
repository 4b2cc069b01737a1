package search

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Literal is a text to look for.
type Literal struct {
	exact []byte // where case counts; otherwise nil
	rare  int    // of exact: where its rarest byte is
	runes [][]rune
	// The search goes from one candidate of the anchor to the next. All
	// characters in front of it have as many bytes in every case.
	anchors [][]byte
	before  int // bytes in front of the anchor
	// Most candidates are told by one more byte, which is looked at first.
	probe  int // where it is; -1 for none
	probed [256]bool
}

// NewLiteral returns a matcher for text, which must not be empty. Unless case
// counts, characters that differ in case alone are the same (simple folding of
// Unicode).
func NewLiteral(text string, caseSensitive bool) *Literal {
	if caseSensitive || !strings.ContainsFunc(text, func(r rune) bool { return len(cases(r)) > 1 }) {
		l := &Literal{exact: []byte(text)}
		for i, c := range l.exact {
			if commonBytes[c] < commonBytes[l.exact[l.rare]] {
				l.rare = i
			}
		}
		return l
	}
	l := &Literal{probe: -1}
	best, second, offset, fixed := -1, -1, 0, true
	for _, r := range text {
		variants := cases(r)
		l.runes = append(l.runes, variants)
		if !fixed {
			continue
		}
		cost := commonness(variants)
		if best < 0 || cost < best {
			if best >= 0 {
				second, l.probe = best, l.before
			}
			best, l.before = cost, offset
		} else if second < 0 || cost < second {
			second, l.probe = cost, offset
		}
		offset += utf8.RuneLen(r)
		fixed = !slices.ContainsFunc(variants, func(v rune) bool { return utf8.RuneLen(v) != utf8.RuneLen(r) })
	}
	at := 0
	for i, r := range []rune(text) {
		if at == l.before || at == l.probe {
			for _, v := range l.runes[i] {
				v := []byte(string(v))
				if at == l.before {
					l.anchors = append(l.anchors, v)
				} else {
					l.probed[v[0]] = true
				}
			}
		}
		at += utf8.RuneLen(r)
	}
	return l
}

// cases returns the characters that differ from r in case alone, r first.
func cases(r rune) []rune {
	list := []rune{r}
	for v := unicode.SimpleFold(r); v != r; v = unicode.SimpleFold(v) {
		list = append(list, v)
	}
	return list
}

// commonness estimates how often any of the characters stands in texts, on the
// scale of commonBytes.
func commonness(variants []rune) int {
	most := 0
	for _, r := range variants {
		if r < utf8.RuneSelf {
			most = max(most, int(commonBytes[r]))
		}
	}
	return most + 12*(len(variants)-1)
}

// commonBytes tells how common each byte is in source code, data and prose: it
// grows by 12 where a byte is twice as common. Counted over some 190 MB of Go,
// JavaScript, Python, HTML, Markdown and JSON.
var commonBytes = [256]uint8{
	0, 0, 0, 0, 0, 0, 0, 0, 0, 208, 228, 0, 0, 119, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	255, 162, 211, 190, 165, 154, 164, 203, 213, 213, 199, 164, 217, 198, 214, 213,
	209, 200, 196, 188, 188, 187, 185, 178, 183, 185, 204, 193, 196, 204, 198, 162,
	153, 202, 185, 201, 194, 207, 189, 182, 178, 201, 156, 174, 199, 191, 200, 202,
	199, 151, 201, 211, 205, 184, 178, 170, 179, 172, 166, 185, 180, 185, 136, 221,
	185, 232, 207, 225, 223, 243, 217, 210, 216, 233, 180, 201, 225, 215, 233, 232,
	221, 171, 233, 234, 238, 219, 199, 196, 204, 206, 176, 191, 172, 191, 140, 0,
	145, 128, 132, 127, 121, 121, 120, 130, 126, 117, 118, 117, 124, 136, 116, 143,
	119, 128, 120, 118, 133, 126, 127, 119, 121, 135, 123, 118, 124, 120, 125, 154,
	155, 121, 115, 118, 130, 120, 124, 128, 124, 125, 123, 115, 116, 116, 125, 121,
	126, 124, 125, 120, 122, 123, 117, 132, 142, 128, 119, 125, 127, 128, 127, 125,
	0, 0, 157, 133, 107, 103, 52, 57, 55, 74, 55, 63, 78, 54, 126, 107,
	147, 131, 63, 44, 41, 101, 97, 126, 126, 121, 86, 102, 13, 0, 0, 0,
	146, 129, 152, 108, 106, 136, 136, 134, 133, 130, 95, 114, 118, 104, 51, 124,
	153, 0, 0, 49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
}

func (l *Literal) each(b []byte, start int, _ *time.Duration, yield func(from, to int) bool) error {
	for at := start; ; {
		from, to := l.next(b, at)
		if from < 0 || !yield(from, to) {
			return nil
		}
		at = to
	}
}

func (l *Literal) next(b []byte, at int) (from, to int) {
	if l.exact != nil {
		return l.nextExact(b, at)
	}
	pos := at + l.before
	// Where each variant of the anchor comes next, from pos on.
	var near [8]int
	for i := range l.anchors {
		near[i] = -1
	}
	for {
		first := len(b)
		for i, a := range l.anchors {
			if near[i] < pos {
				near[i] = index(b, a, pos)
			}
			first = min(first, near[i])
		}
		if first == len(b) {
			return -1, -1
		}
		from := first - l.before
		if at := from + l.probe; l.probe < 0 || at < len(b) && l.probed[b[at]] {
			if n := l.verify(b[from:]); n >= 0 {
				return from, from + n
			}
		}
		pos = first + 1
	}
}

// Where the rarest byte comes more often than this, in bytes between two, it is
// no longer what is looked for.
const (
	patience = 16
	spacing  = 64
)

// nextExact goes from one place of the rarest byte to the next, which takes a
// fraction of what comparing every position does.
func (l *Literal) nextExact(b []byte, at int) (from, to int) {
	rarest := l.exact[l.rare]
	for pos, misses := at+l.rare, 0; pos < len(b); misses++ {
		if misses > patience && pos-at < misses*spacing {
			at = pos - l.rare
			i := bytes.Index(b[at:], l.exact)
			if i < 0 {
				break
			}
			return at + i, at + i + len(l.exact)
		}
		i := bytes.IndexByte(b[pos:], rarest)
		if i < 0 {
			break
		}
		if from := pos + i - l.rare; bytes.HasPrefix(b[from:], l.exact) {
			return from, from + len(l.exact)
		}
		pos += i + 1
	}
	return -1, -1
}

// index is where sub comes in b from pos on, len(b) for nowhere.
func index(b, sub []byte, pos int) int {
	if pos > len(b) {
		return len(b)
	}
	i := 0
	if len(sub) == 1 {
		i = bytes.IndexByte(b[pos:], sub[0])
	} else {
		i = bytes.Index(b[pos:], sub)
	}
	if i < 0 {
		return len(b)
	}
	return pos + i
}

// verify returns how many bytes of the beginning of b the text takes, -1 where
// it is not there.
func (l *Literal) verify(b []byte) int {
	n := 0
	for _, variants := range l.runes {
		if n == len(b) {
			return -1
		}
		r, size := rune(b[n]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(b[n:])
		}
		if r != variants[0] && !slices.Contains(variants[1:], r) {
			return -1
		}
		n += size
	}
	return n
}
