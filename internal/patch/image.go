package patch

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// mark is the byte order mark of UTF-8.
const mark = "\ufeff"

// An image is a text by lines.
type image struct {
	text string
	at   []int // where each line begins, and the end
	bom  bool

	index *index // nil until a hunk is not where it says
	spent int    // comparisons of lines made in searching
	most  int    // bound of spent
}

func newImage(text string) *image {
	m := &image{text: text, at: make([]int, 0, strings.Count(text, "\n")+2), bom: strings.HasPrefix(text, mark), most: mostSpent}
	for from := 0; from < len(text); {
		m.at = append(m.at, from)
		n := strings.IndexByte(text[from:], '\n')
		if n < 0 {
			break
		}
		from += n + 1
	}
	m.at = append(m.at, len(text))
	return m
}

func (m *image) len() int { return len(m.at) - 1 }

// line is line i with its end.
func (m *image) line(i int) string { return m.text[m.at[i]:m.at[i+1]] }

// bare is line i without its end and without a byte order mark.
func (m *image) bare(i int) string {
	s, _ := split(m.line(i))
	if i == 0 && m.bom {
		s = s[len(mark):]
	}
	return s
}

// end is the end of line i: "\n", "\r\n", or "" of a last line without one.
func (m *image) end(i int) string {
	_, end := split(m.line(i))
	return end
}

// split parts a line from its end.
func split(line string) (bare, end string) {
	bare = strings.TrimSuffix(line, "\n")
	if len(bare) == len(line) {
		return line, ""
	}
	bare = strings.TrimSuffix(bare, "\r")
	return bare, line[len(bare):]
}

// loose is what a line of a hunk has in common with lines of files that differ
// from it in their ends alone.
func (l Line) loose() string { return strings.TrimPrefix(strings.TrimSuffix(l.Text, "\r"), mark) }

// A rigour says how alike lines must be.
type rigour bool

const (
	exact rigour = true  // byte for byte, their ends included
	loose rigour = false // but for their ends and a byte order mark
)

// same reports whether line i is l.
func (m *image) same(i int, l Line, how rigour) bool {
	if how == loose {
		have := m.bare(i)
		if have == l.loose() {
			return true
		}
		// A last line without a newline may end in a carriage return.
		return i == m.len()-1 && strings.TrimSuffix(have, "\r") == l.loose()
	}
	have := m.line(i)
	if l.Open {
		return have == l.Text
	}
	n := len(have) - 1
	return n >= 0 && have[n] == '\n' && have[:n] == l.Text
}

// holds reports whether want begins at line i, none of it taken.
func (m *image) holds(i int, want []Line, how rigour, free func(from, to int) bool) bool {
	if i < 0 || i+len(want) > m.len() {
		return false
	}
	for n, l := range want {
		m.spent++
		if !m.same(i+n, l, how) {
			return false
		}
	}
	return free(i, i+len(want))
}

// mostSpent bounds the comparisons that searching in one file may take: a
// patch made to match almost everywhere, but nowhere, is given up after about a
// second.
const mostSpent = 1 << 27

// find returns the place of want that is nearest to near, of two equally near
// the later one; -1 where there is none. not is a place that does not count.
func (m *image) find(ctx context.Context, want []Line, near int, how rigour, free func(from, to int) bool, not int) (int, error) {
	if m.index == nil {
		m.index = newIndex(m)
	}
	rare, list := -1, []int32(nil)
	for n, l := range want {
		places := m.index.places(l.loose())
		if rare < 0 || len(places) < len(list) {
			rare, list = n, places
		}
	}
	if rare < 0 {
		return -1, nil
	}
	after, _ := slices.BinarySearch(list, int32(max(near+rare, 0)))
	for before, tries := after-1, 0; before >= 0 || after < len(list); tries++ {
		if tries%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return -1, err
			}
		}
		var i int
		if after < len(list) && (before < 0 || int(list[after])-near-rare <= near+rare-int(list[before])) {
			i = int(list[after]) - rare
			after++
		} else {
			i = int(list[before]) - rare
			before--
		}
		m.spent++
		if i != not && m.holds(i, want, how, free) {
			return i, nil
		}
		if m.spent > m.most {
			return -1, fault.New(fault.LimitExceeded, "the hunks of the patch could not be found within %d comparisons of lines; give line numbers that are right, or more lines that occur only once", m.most)
		}
	}
	return -1, nil
}

// An index finds lines by their content.
type index struct {
	seed  maphash.Seed
	first []int32 // of each bucket, where its lines begin in lines; and the end
	lines []int32 // ascending within a bucket
}

func newIndex(m *image) *index {
	n := m.len()
	buckets := 1
	for buckets < n {
		buckets *= 2
	}
	x := &index{seed: maphash.MakeSeed(), first: make([]int32, buckets+1), lines: make([]int32, n)}
	of := make([]int32, n)
	for i := range n {
		b := x.bucket(m.bare(i))
		if i == n-1 {
			b = x.bucket(strings.TrimSuffix(m.bare(i), "\r"))
		}
		of[i] = int32(b)
		x.first[b+1]++
	}
	for b := range buckets {
		x.first[b+1] += x.first[b]
	}
	next := slices.Clone(x.first[:buckets])
	for i, b := range of {
		x.lines[next[b]] = int32(i)
		next[b]++
	}
	return x
}

func (x *index) bucket(s string) int {
	return int(maphash.String(x.seed, s) & uint64(len(x.first)-2))
}

// places returns the lines that may be s, in order.
func (x *index) places(s string) []int32 {
	b := x.bucket(s)
	return x.lines[x.first[b]:x.first[b+1]]
}
