package textedit

import (
	"strings"
	"unicode/utf8"
)

// rewrite replaces the text from one offset to another, which is rows, by the
// lines now. was is what the caller takes rows for: lines of now that it has as
// well stay as the file has them, line ends included. indent, where not nil,
// adapts the other ones.
func (d *Doc) rewrite(from, to int, rows []row, was, now []string, indent func(string) string) Splice {
	head := 0
	for head < min(len(was), len(now))-1 && was[head] == now[head] {
		from += len(rows[head].text) + len(rows[head].end)
		head++
	}
	tail := 0
	for tail < min(len(was), len(now))-head && was[len(was)-1-tail] == now[len(now)-1-tail] {
		tail++
		r := rows[len(rows)-tail]
		to -= len(r.text) + len(r.end)
	}
	rows, was, now = rows[head:len(rows)-tail], was[head:len(was)-tail], now[head:len(now)-tail]
	end := ""
	var b strings.Builder
	same := align(was, now)
	for j, line := range now {
		i := min(j, len(rows)-1) // whose line end it gets
		if same[j] >= 0 {
			i = same[j]
			line = rows[i].text
		} else if indent != nil {
			line = indent(line)
		}
		b.WriteString(line)
		if j == len(now)-1 && tail == 0 {
			break
		}
		switch {
		case i >= 0 && rows[i].end != "":
			end = rows[i].end
		case end == "":
			end = d.endNear(to)
		}
		b.WriteString(end)
	}
	return d.trim(Splice{from, to, b.String()})
}

// alignMost bounds the table of align.
const alignMost = 1 << 20

// align returns for each line of now the line of was that it is, in order, or
// -1: a longest common subsequence, or nothing where that is much work.
func align(was, now []string) []int {
	same := make([]int, len(now))
	for j := range same {
		same[j] = -1
	}
	if len(was) == 0 || len(now) == 0 || len(was) > alignMost/len(now) {
		return same
	}
	width := len(now) + 1
	longest := make([]int32, (len(was)+1)*width)
	for i := len(was) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			at := i*width + j
			if was[i] == now[j] {
				longest[at] = longest[at+width+1] + 1
			} else {
				longest[at] = max(longest[at+width], longest[at+1])
			}
		}
	}
	for i, j := 0, 0; i < len(was) && j < len(now); {
		switch at := i*width + j; {
		case was[i] == now[j]:
			same[j] = i
			i++
			j++
		case longest[at+width] >= longest[at+1]:
			i++
		default:
			j++
		}
	}
	return same
}

// trim leaves out of s what is the same before and after, in whole characters.
func (d *Doc) trim(s Splice) Splice {
	old := d.text[s.From:s.To]
	n := 0
	for n < min(len(old), len(s.New)) && old[n] == s.New[n] {
		n++
	}
	for n > 0 && (n < len(old) && !utf8.RuneStart(old[n]) || n < len(s.New) && !utf8.RuneStart(s.New[n])) {
		n--
	}
	s.From += n
	s.New, old = s.New[n:], old[n:]
	n = 0
	for n < min(len(old), len(s.New)) && old[len(old)-1-n] == s.New[len(s.New)-1-n] {
		n++
	}
	for n > 0 && (!utf8.RuneStart(old[len(old)-n]) || !utf8.RuneStart(s.New[len(s.New)-n])) {
		n--
	}
	s.To -= n
	s.New = s.New[:len(s.New)-n]
	return s
}
