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
	runes [][]rune
	// The search goes from one candidate of the anchor to the next. All
	// characters in front of it have as many bytes in every case.
	anchors [][]byte
	before  int // bytes in front of the anchor
}

// NewLiteral returns a matcher for text, which must not be empty. Unless case
// counts, characters that differ in case alone are the same (simple folding of
// Unicode).
func NewLiteral(text string, caseSensitive bool) *Literal {
	if caseSensitive || !strings.ContainsFunc(text, func(r rune) bool { return len(cases(r)) > 1 }) {
		return &Literal{exact: []byte(text)}
	}
	l := &Literal{}
	best, offset, fixed := -1, 0, true
	for _, r := range text {
		variants := cases(r)
		l.runes = append(l.runes, variants)
		if !fixed {
			continue
		}
		if cost := commonness(r) * len(variants); best < 0 || cost < best {
			best, l.before = cost, offset
			l.anchors = l.anchors[:0]
			for _, v := range variants {
				l.anchors = append(l.anchors, []byte(string(v)))
			}
		}
		offset += utf8.RuneLen(r)
		fixed = !slices.ContainsFunc(variants, func(v rune) bool { return utf8.RuneLen(v) != utf8.RuneLen(r) })
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

// commonness estimates how often r stands in texts.
func commonness(r rune) int {
	const order = "jqxzvkwyb0123456789gpfmucdhlnrsiaote "
	switch i := strings.IndexRune(order, unicode.ToLower(r)); {
	case i >= 0:
		return 2 + i
	case r < utf8.RuneSelf:
		return 8
	}
	return 1
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
		i := bytes.Index(b[at:], l.exact)
		if i < 0 {
			return -1, -1
		}
		return at + i, at + i + len(l.exact)
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
		if n := l.verify(b[first-l.before:]); n >= 0 {
			return first - l.before, first - l.before + n
		}
		pos = first + 1
	}
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
