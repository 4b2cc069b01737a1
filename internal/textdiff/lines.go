package textdiff

import (
	"bytes"
	"hash/maphash"
)

// alone is the number of a line of the second text that the first lacks.
const alone = -1

// number gives each line of both texts a number, the same to equal lines, and
// says of each number whether both texts have it. Lines that only the second
// text has are all alone.
func number(a, b []byte) (linesA, linesB []int32, common []bool) {
	linesA = make([]int32, 0, bytes.Count(a, newline)+1)
	linesB = make([]int32, 0, bytes.Count(b, newline)+1)
	t := newTable(a)
	for at := 0; at < len(a); {
		end := lineEnd(a, at)
		linesA = append(linesA, t.add(at, end))
		at = end
	}
	common = make([]bool, len(t.lines))
	last := int32(-1)
	for at := 0; at < len(b); {
		end := lineEnd(b, at)
		// Texts worth comparing go on alike for long.
		if last = t.find(b[at:end], last+1); last != alone {
			common[last] = true
		}
		linesB = append(linesB, last)
		at = end
	}
	return linesA, linesB, common
}

// lineEnd returns where the line that begins at ends, its LF included.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// A table numbers the different lines of a text from 0, in their order.
type table struct {
	text  []byte
	seed  maphash.Seed
	slots []slot // a power of two of them, at most half in use
	lines []span
}

type slot struct {
	hash uint32
	next int32 // number + 1; 0 where the slot is free
}

type span struct{ from, to int32 }

func newTable(text []byte) *table {
	return &table{text: text, seed: maphash.MakeSeed(), slots: make([]slot, 1<<10)}
}

// slot returns where line is, or the free slot where it belongs.
func (t *table) slot(line []byte) (s *slot, hash uint32) {
	hash = uint32(maphash.Bytes(t.seed, line))
	for i := int(hash); ; i++ {
		s = &t.slots[i&(len(t.slots)-1)]
		if s.next == 0 || s.hash == hash && t.is(s.next-1, line) {
			return s, hash
		}
	}
}

func (t *table) is(n int32, line []byte) bool {
	return bytes.Equal(t.text[t.lines[n].from:t.lines[n].to], line)
}

// add returns the number of the line that text has there.
func (t *table) add(from, to int) int32 {
	s, hash := t.slot(t.text[from:to])
	if s.next > 0 {
		return s.next - 1
	}
	t.lines = append(t.lines, span{int32(from), int32(to)})
	n := int32(len(t.lines))
	if *s = (slot{hash, n}); 2*int(n) > len(t.slots) {
		t.grow()
	}
	return n - 1
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, 4*len(old))
	for _, s := range old {
		if s.next == 0 {
			continue
		}
		i := int(s.hash)
		for t.slots[i&(len(t.slots)-1)].next > 0 {
			i++
		}
		t.slots[i&(len(t.slots)-1)] = s
	}
}

// find returns the number of line, or alone; guess is tried first.
func (t *table) find(line []byte, guess int32) int32 {
	if int(guess) < len(t.lines) && t.is(guess, line) {
		return guess
	}
	s, _ := t.slot(line)
	return s.next - 1
}

// squeeze returns text without white space other than the LF of each line,
// which the last line then has as well.
func squeeze(text []byte) []byte {
	out := make([]byte, 0, len(text)+1)
	for _, c := range text {
		switch c {
		case ' ', '\t', '\r', '\v', '\f':
		default:
			out = append(out, c)
		}
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		out = append(out, '\n')
	}
	return out
}
