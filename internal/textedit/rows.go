package textedit

import (
	"sort"
	"strings"
	"sync"
)

// rowBlock is how much text lies between two counts of lines.
const rowBlock = 16 << 10

// rows counts the lines of a text, on first use.
type rows struct {
	once   sync.Once
	before []int // line ends in front of each block, and of the end
}

func (d *Doc) counts() []int {
	d.rows.once.Do(func() {
		n := 0
		d.rows.before = make([]int, 0, len(d.text)/rowBlock+2)
		for at := 0; at < len(d.text); at += rowBlock {
			d.rows.before = append(d.rows.before, n)
			n += strings.Count(d.text[at:min(at+rowBlock, len(d.text))], "\n")
		}
		d.rows.before = append(d.rows.before, n)
	})
	return d.rows.before
}

// Lines is the number of lines; a last one without a line end counts.
func (d *Doc) Lines() int {
	c := d.counts()
	n := c[len(c)-1]
	if d.text != "" && d.text[len(d.text)-1] != '\n' {
		n++
	}
	return n
}

// Line is the number, from 1, of the line that the offset at of the text lies
// in. The end of a text whose last line is ended lies in the line after it.
func (d *Doc) Line(at int) int {
	block := at / rowBlock
	return d.counts()[block] + strings.Count(d.text[block*rowBlock:at], "\n") + 1
}

// Start is where line n begins, n being at most one more than Lines: that is
// the end of the text.
func (d *Doc) Start(n int) int {
	c := d.counts()
	// The block in which the line end in front of line n lies.
	i := sort.SearchInts(c, n-1) - 1
	if i < 0 {
		return 0
	}
	if i == len(c)-1 {
		return len(d.text)
	}
	at := i * rowBlock
	for left := n - 1 - c[i]; left > 0; left-- {
		at += strings.IndexByte(d.text[at:], '\n') + 1
	}
	return at
}

// A row is a line taken apart: "\n" or "\r\n" is its end, "" that of a last
// line that has none.
type row struct{ text, end string }

// rowAt returns the line that begins at the offset at.
func (d *Doc) rowAt(at int) row {
	s := d.text[at:]
	i := strings.IndexByte(s, '\n')
	if i < 0 {
		return row{text: s}
	}
	s = s[:i+1]
	if i > 0 && s[i-1] == '\r' {
		return row{s[:i-1], s[i-1:]}
	}
	return row{s[:i], s[i:]}
}

// span returns the pieces between the line ends of text from one offset to
// another; the last one has no end.
func (d *Doc) span(from, to int) []row {
	list := make([]row, 0, 1+strings.Count(d.text[from:to], "\n"))
	for rest := d.text[from:to]; ; {
		i := strings.IndexByte(rest, '\n')
		if i < 0 {
			return append(list, row{text: rest})
		}
		cut := i
		if i > 0 && rest[i-1] == '\r' {
			cut--
		}
		list = append(list, row{rest[:cut], rest[cut : i+1]})
		rest = rest[i+1:]
	}
}

// endNear is the line end that fits at an offset: that of the line it lies in,
// else of the line before, else LF.
func (d *Doc) endNear(at int) string {
	i := strings.IndexByte(d.text[at:], '\n')
	if i >= 0 {
		i += at
	} else {
		i = strings.LastIndexByte(d.text[:at], '\n')
	}
	if i > 0 && d.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// Fit returns s, which is to stand at an offset of the text, with each LF in the
// form that line ends have there.
func (d *Doc) Fit(at int, s string) string {
	return strings.ReplaceAll(unified(s), "\n", d.endNear(at))
}
