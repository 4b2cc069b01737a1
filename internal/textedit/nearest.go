package textedit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Bounds of looking for what an old text may have meant.
const (
	nearTime   = 300 * time.Millisecond
	nearShown  = 3
	nearKept   = 12   // candidates that are compared exactly
	nearRunes  = 1200 // longest text compared character by character
	lineRunes  = 240  // of a line, where differences are shown
	shingle    = 4    // bytes hashed together
	shownBytes = 420  // of one candidate
)

// A near is a run of lines that is like an old text.
type near struct {
	first, last int // lines
	from, to    int
	score       float64 // by shingles, then by characters
}

// miss is the error for an old text that is not in the file: it shows the
// places that are most like it.
func (d *Doc) miss(ctx context.Context, i int, old string, m Matching) error {
	bare := strings.TrimSuffix(old, "\n")
	list, whole, err := d.nearest(ctx, bare)
	if err != nil {
		return err
	}
	r := &Miss{
		Edit:       i,
		Anyhow:     m == Whitespace || m == Auto && strings.Contains(old, "\n"),
		Charset:    !isASCII(old) && d.name == "" && !utf8.ValidString(d.text),
		Incomplete: !whole,
	}
	for _, n := range list {
		r.Near = append(r.Near, Near{First: n.first, Last: n.last, Percent: min(99, int(n.score*100)), Blank: d.blankly(bare, n), Compared: d.compare(bare, n)})
	}
	return r
}

// nearest returns the runs of lines that are most like old, the most first, and
// whether the whole file was looked at.
func (d *Doc) nearest(ctx context.Context, old string) (list []near, whole bool, err error) {
	var filter [1 << 10]uint64
	length := 0
	shingles(old, func(h uint16) { filter[h>>6] |= 1 << (h & 63) }, &length)
	lines := strings.Count(old, "\n") + 1
	if length == 0 {
		return nil, true, nil
	}
	// What the last lines have, as a ring.
	type tally struct{ from, hits, length int }
	ring := make([]tally, lines)
	var sum tally
	var top []near
	var best near
	flush := func() {
		if best.score > 0 {
			top = insert(top, best)
		}
		best = near{}
	}
	until := time.Now().Add(nearTime)
	whole = true
	checked := 0
	for at, n := 0, 1; at < len(d.text); n++ {
		if at-checked > 1<<20 {
			checked = at
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			if time.Now().After(until) {
				whole = false
				break
			}
		}
		end := len(d.text)
		if k := strings.IndexByte(d.text[at:], '\n'); k >= 0 {
			end = at + k
		}
		t := tally{from: at}
		shingles(d.text[at:end], func(h uint16) {
			if filter[h>>6]&(1<<(h&63)) != 0 {
				t.hits++
			}
		}, &t.length)
		slot := &ring[n%lines]
		sum.hits += t.hits - slot.hits
		sum.length += t.length - slot.length
		*slot = t
		first := max(1, n-lines+1)
		w := near{first: first, last: n, from: ring[first%lines].from, to: end}
		w.score = 2 * float64(sum.hits) / float64(length+sum.length)
		if lines == 1 { // old may be a part of the line
			w.score = min(1, float64(sum.hits)/float64(length)) + w.score/100
		}
		if w.first >= best.first+lines {
			flush()
		}
		if w.score > best.score {
			best = w
		}
		at = end + 1
	}
	flush()
	for i := range top {
		top[i].score = d.likeness(old, top[i])
	}
	slices.SortStableFunc(top, func(a, b near) int { return cmp.Compare(b.score, a.score) })
	for _, n := range top {
		if n.score >= 0.4 && len(list) < nearShown && !slices.ContainsFunc(list, func(o near) bool { return n.first <= o.last && o.first <= n.last }) {
			list = append(list, n)
		}
	}
	return list, whole, nil
}

// insert puts n into top, the best first.
func insert(top []near, n near) []near {
	if len(top) == nearKept && top[nearKept-1].score >= n.score {
		return top
	}
	i, _ := slices.BinarySearchFunc(top, n, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.score, a.score), -1) // after its equals
	})
	top = slices.Insert(top, i, n)
	return top[:min(len(top), nearKept)]
}

// shingles calls yield with a hash for each group of bytes of s that are not
// white space, and adds to length how many there are. A shorter s is one group.
func shingles(s string, yield func(uint16), length *int) {
	var window uint32
	n := 0
	for i := range len(s) {
		c := s[i]
		if c == ' ' || c == '\t' || c == '\r' {
			continue
		}
		if c == '\n' {
			if n > 0 && n < shingle {
				*length++
				yield(uint16(window * 0x9E3779B1 >> 16))
			}
			window, n = 0, 0
			continue
		}
		window = window<<8 | uint32(c)
		if n++; n >= shingle {
			*length++
			yield(uint16(window * 0x9E3779B1 >> 16))
		}
	}
	if n > 0 && n < shingle {
		*length++
		yield(uint16(window * 0x9E3779B1 >> 16))
	}
}

// likeness is how much of old and the lines n is the same, from 0 to 1.
func (d *Doc) likeness(old string, n near) float64 {
	file := unified(d.text[n.from:n.to])
	part := n.first == n.last // old may be a part of a line
	if part {
		old, file = strings.TrimSpace(old), strings.TrimSpace(file)
	}
	a, b := []rune(fault.ClipTo(old, 4*nearRunes)), []rune(fault.ClipTo(file, 4*nearRunes))
	if len(a) > nearRunes || !part && len(b) > nearRunes {
		return min(n.score, 1)
	}
	// The distance of Levenshtein, for a part of a line with both ends free.
	row := make([]int, len(b)+1)
	for j := range row {
		if !part {
			row[j] = j
		}
	}
	for i, r := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, s := range b {
			cost := diagonal
			if r != s {
				cost = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	distance, size := row[len(b)], max(len(a), len(b))
	if part {
		distance, size = slices.Min(row), len(a)
	}
	return max(0, 1-float64(distance)/float64(max(size, 1)))
}

// blankly reports whether the lines n differ from old in white space alone.
func (d *Doc) blankly(old string, n near) bool {
	return slices.Equal(strings.Fields(old), strings.Fields(d.text[n.from:n.to]))
}

// compare shows how the lines n differ from old: the first two that do.
func (d *Doc) compare(old string, n near) string {
	was := strings.Split(old, "\n")
	is := strings.Split(unified(d.text[n.from:n.to]), "\n")
	var parts []string
	for i := range max(len(was), len(is)) {
		var a, b string
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a == b {
			continue
		}
		if len(parts) == 2 {
			parts = append(parts, "…")
			break
		}
		text := differences(a, b, len(was) == 1)
		if len(was) > 1 || len(is) > 1 {
			text = fmt.Sprintf("\n  line %d: %s", n.first+i, text)
		} else {
			text = " " + text
		}
		parts = append(parts, fault.ClipTo(text, shownBytes/2))
	}
	if len(parts) == 0 {
		return " only the line end at the end differs"
	}
	return strings.Join(parts, "")
}

// differences shows a and b as one line in which what only a has stands in
// [- -] and what only b has in {+ +}. Where part is set, a may be a part of b,
// and what surrounds it there is no difference.
func differences(a, b string, part bool) string {
	x, y := []rune(a), []rune(b)
	x = x[:min(len(x), lineRunes)]
	if part && len(y) > lineRunes {
		y = closest(x, y[:min(len(y), 4*lineRunes)])
	}
	y = y[:min(len(y), lineRunes)]
	d := diffmatchpatch.New()
	d.DiffTimeout = 100 * time.Millisecond
	list := d.DiffCleanupSemantic(d.DiffMainRunes(x, y, false))
	if part {
		list = withoutSurroundings(list)
	}
	var out strings.Builder
	for k, r := range list {
		text := []rune(r.Text)
		switch r.Type {
		case diffmatchpatch.DiffEqual:
			out.WriteString(shorten(text, k > 0, k+1 < len(list)))
		case diffmatchpatch.DiffDelete:
			out.WriteString("[-" + visible(text) + "-]")
		case diffmatchpatch.DiffInsert:
			out.WriteString("{+" + shorten(text, true, true) + "+}")
		}
	}
	return out.String()
}

// withoutSurroundings drops what only the second text has at its ends, unless it
// stands in place of something.
func withoutSurroundings(list []diffmatchpatch.Diff) []diffmatchpatch.Diff {
	isInsert := func(at int) bool { return list[at].Type == diffmatchpatch.DiffInsert }
	if n := len(list); n > 1 && isInsert(n-1) && list[n-2].Type == diffmatchpatch.DiffEqual {
		list = list[:n-1]
	}
	if len(list) > 1 && isInsert(0) && list[1].Type == diffmatchpatch.DiffEqual {
		list = list[1:]
	}
	return list
}

// kept is how many characters are shown on either side of a difference.
const kept = 24

// shorten leaves out the middle of what does not differ.
func shorten(r []rune, before, after bool) string {
	head, tail := 0, 0
	if before {
		head = kept
	}
	if after {
		tail = kept
	}
	if len(r) <= head+tail+3 {
		return visible(r)
	}
	return visible(r[:head]) + "…" + visible(r[len(r)-tail:])
}

var escapes = strings.NewReplacer("\t", `\t`, "\r", `\r`, "\x00", `\0`)

func visible(r []rune) string { return escapes.Replace(string(r)) }

// closest returns the part of y that is most like x.
func closest(x, y []rune) []rune {
	type cell struct{ cost, from int }
	row := make([]cell, len(y)+1)
	for j := range row {
		row[j] = cell{0, j}
	}
	for i, r := range x {
		diagonal := row[0]
		row[0] = cell{i + 1, 0}
		for j, s := range y {
			next := diagonal
			if r != s {
				for _, c := range []cell{row[j], row[j+1]} {
					if c.cost < next.cost {
						next = c
					}
				}
				next.cost++
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	end := 0
	for j, c := range row {
		if c.cost < row[end].cost {
			end = j
		}
	}
	return y[row[end].from:end]
}
