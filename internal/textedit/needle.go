package textedit

import (
	"math/bits"
	"strings"
)

// A needle is a text to look for, line by line. A line end in it stands for LF
// and CRLF. It is found by its anchor, the longest of its lines.
type needle struct {
	lines  []string
	anchor int
	loose  bool // whole lines, white space around each not counting

	known bool  // the anchor can begin in these places alone
	at    []int // in ascending order
}

// exactly returns the needle for old, whose line ends are LF.
func exactly(old string) *needle {
	n := &needle{lines: strings.Split(old, "\n")}
	n.drop()
	return n
}

// loosely returns the needle for the lines of old without regard to white space
// around them, or nil where there is nothing else.
func loosely(lines []string) *needle {
	n := &needle{loose: true}
	for _, l := range lines {
		n.lines = append(n.lines, strings.TrimSpace(l))
	}
	n.drop()
	if n.lines[n.anchor] == "" {
		return nil
	}
	return n
}

// drop puts down the anchor.
func (n *needle) drop() {
	for i, l := range n.lines {
		if len(l) > len(n.lines[n.anchor]) {
			n.anchor = i
		}
	}
}

// each calls yield for the places of n in text, in order and without overlaps,
// until it returns false.
func (n *needle) each(text string, yield func(from, to int) bool) {
	key := n.lines[n.anchor]
	if key == "" {
		key = "\n"
	}
	done := 0 // places begin here at the earliest
	next := 0 // in n.at
	for pos := 0; ; {
		if n.known {
			if next == len(n.at) {
				return
			}
			pos = n.at[next]
			next++
		} else {
			i := strings.Index(text[pos:], key)
			if i < 0 {
				return
			}
			pos += i
		}
		if from, to, ok := n.place(text, pos); ok && from >= done {
			if !yield(from, to) {
				return
			}
			done = to
			pos = max(pos+1, to)
			continue
		}
		pos++
	}
}

// place reports where n stands if its anchor begins at pos.
func (n *needle) place(text string, pos int) (from, to int, ok bool) {
	if n.loose {
		return n.looselyAt(text, pos)
	}
	from = pos
	if n.lines[n.anchor] == "" { // nothing but line ends: pos is the first
		if from > 0 && text[from-1] == '\r' {
			from--
		}
		to = from
	} else {
		for i := n.anchor - 1; i >= 0; i-- {
			if from = before(text, from); from < 0 {
				return 0, 0, false
			}
			if !strings.HasSuffix(text[:from], n.lines[i]) {
				return 0, 0, false
			}
			from -= len(n.lines[i])
		}
		to = pos + len(n.lines[n.anchor])
	}
	for _, l := range n.lines[n.anchor+1:] {
		switch {
		case strings.HasPrefix(text[to:], "\n"):
			to++
		case strings.HasPrefix(text[to:], "\r\n"):
			to += 2
		default:
			return 0, 0, false
		}
		if !strings.HasPrefix(text[to:], l) {
			return 0, 0, false
		}
		to += len(l)
	}
	return from, to, true
}

// before returns where the line end begins that ends at the offset at, or -1.
func before(text string, at int) int {
	switch {
	case at == 0 || text[at-1] != '\n':
		return -1
	case at > 1 && text[at-2] == '\r':
		return at - 2
	}
	return at - 1
}

// looselyAt is place for whole lines; the last one's end is left out.
func (n *needle) looselyAt(text string, pos int) (from, to int, ok bool) {
	from = strings.LastIndexByte(text[:pos], '\n') + 1
	for i := n.anchor - 1; i >= 0; i-- {
		if from == 0 {
			return 0, 0, false
		}
		line := strings.LastIndexByte(text[:from-1], '\n') + 1
		if strings.TrimSpace(text[line:from]) != n.lines[i] {
			return 0, 0, false
		}
		from = line
	}
	at := strings.LastIndexByte(text[:pos], '\n') + 1
	for i, l := range n.lines[n.anchor:] {
		if at > len(text) || at == len(text) && i > 0 {
			return 0, 0, false
		}
		to = len(text)
		next := len(text) + 1
		if k := strings.IndexByte(text[at:], '\n'); k >= 0 {
			to, next = at+k, at+k+1
		}
		if strings.TrimSpace(text[at:to]) != l {
			return 0, 0, false
		}
		at = next
	}
	if to > from && to < len(text) && text[to-1] == '\r' {
		to--
	}
	return from, to, true
}

// Many needles are looked for in one pass: by keyLength bytes of each anchor.
const (
	keyLength = 8
	manyMin   = 8       // needles from which on that is worth it
	atMost    = 1 << 12 // places of a key; one that is as common is looked for by itself
)

// locate finds where the anchors of needles, of which some are nil, can begin in
// text.
func locate(text string, needles []*needle) {
	type keyed struct {
		n      *needle
		offset int // of the key in the anchor
	}
	var filter [1 << 10]uint64 // one bit for each hash of 16 bits
	hash := func(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> 48 }
	keys := map[uint64][]keyed{}
	for _, n := range needles {
		if n == nil || len(n.lines[n.anchor]) < keyLength {
			continue
		}
		key, offset := bestKey(n.lines[n.anchor])
		h := hash(key)
		filter[h>>6] |= 1 << (h & 63)
		keys[key] = append(keys[key], keyed{n, offset})
		n.known = true
	}
	if len(keys) < manyMin {
		for _, list := range keys {
			for _, k := range list {
				k.n.known = false
			}
		}
		return
	}
	var window uint64
	for i := range len(text) {
		window = window>>8 | uint64(text[i])<<56
		h := hash(window)
		if filter[h>>6]&(1<<(h&63)) == 0 || i < keyLength-1 {
			continue
		}
		for _, k := range keys[window] {
			pos := i - keyLength + 1 - k.offset
			anchor := k.n.lines[k.n.anchor]
			if !k.n.known || pos < 0 || !strings.HasPrefix(text[pos:], anchor) {
				continue
			}
			if k.n.at = append(k.n.at, pos); len(k.n.at) > atMost {
				k.n.known, k.n.at = false, nil
			}
		}
	}
}

// bestKey is the part of s with the most different characters, which few other
// places have, and where it begins.
func bestKey(s string) (key uint64, offset int) {
	best := -1
	var window uint64
	for i := range min(len(s), 256) {
		window = window>>8 | uint64(s[i])<<56
		if i < keyLength-1 {
			continue
		}
		var seen uint64
		for b := window; b != 0; b >>= 8 {
			seen |= 1 << (b & 63)
		}
		if n := bits.OnesCount64(seen); n > best {
			best, key, offset = n, window, i-keyLength+1
		}
	}
	return key, offset
}
