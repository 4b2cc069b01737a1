package textdiff

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// settle moves changes that only add or only remove lines down as far as the
// lines allow, which is where people expect them, and joins those that meet.
func settle(changes []change, a, b []int32) []change {
	out := changes[:0]
	for i := 0; i < len(changes); {
		c := changes[i]
		for i++; ; i++ {
			next := change{a0: len(a), b0: len(b)}
			if i < len(changes) {
				next = changes[i]
			}
			switch {
			case c.a0 == c.a1:
				for c.b1 < next.b0 && b[c.b0] == b[c.b1] {
					c.shift(1)
				}
			case c.b0 == c.b1:
				for c.a1 < next.a0 && a[c.a0] == a[c.a1] {
					c.shift(1)
				}
			}
			if i == len(changes) || c.a1 < next.a0 {
				break
			}
			c.a1, c.b1 = next.a1, next.b1
		}
		out = append(out, c)
	}
	return out
}

// A cursor stands at the beginning of a line.
type cursor struct {
	text     []byte
	at, line int
}

// next returns the line and goes on to the one after it.
func (c *cursor) next() []byte {
	from := c.at
	c.at = lineEnd(c.text, from)
	c.line++
	return c.text[from:c.at]
}

// to goes to a line.
func (c *cursor) to(line int) {
	for c.line < line {
		c.next()
	}
	for c.line > line {
		c.at = bytes.LastIndexByte(c.text[:c.at-1], '\n') + 1
		c.line--
	}
}

// left is how many of the next n lines there are.
func (c cursor) left(n int) int {
	from := c.line
	for c.line < from+n && c.at < len(c.text) {
		c.next()
	}
	return c.line - from
}

// A writer writes the changes of one diff.
type writer struct {
	context int
	a, b    cursor
	out     strings.Builder
	diff    Diff
}

func (w *writer) write(changes []change, nameA, nameB string) Diff {
	w.out.Grow(w.estimate(changes))
	fmt.Fprintf(&w.out, "--- %s\n+++ %s\n", header(nameA), header(nameB))
	for from := 0; from < len(changes); {
		to := from + 1
		for to < len(changes) && changes[to].a0-changes[to-1].a1 <= 2*w.context {
			to++
		}
		w.hunk(changes[from:to])
		from = to
	}
	w.diff.Text = w.out.String()
	return w.diff
}

// estimate is about how long the diff will be.
func (w *writer) estimate(changes []change) int {
	shown := 0
	for _, c := range changes {
		shown += c.a1 - c.a0 + c.b1 - c.b0 + 2*w.context
	}
	size := len(w.a.text) + len(w.b.text)
	lines := bytes.Count(w.a.text, newline) + bytes.Count(w.b.text, newline) + 1
	return min(size, shown*(size/lines+2))
}

// hunk writes changes that lie close together.
func (w *writer) hunk(changes []change) {
	first, last := changes[0], changes[len(changes)-1]
	before := min(w.context, first.a0)
	w.a.to(last.a1)
	after := w.a.left(w.context)
	w.a.to(first.a0 - before)
	fmt.Fprintf(&w.out, "@@ -%s +%s @@\n",
		extent(first.a0-before, last.a1+after), extent(first.b0-before, last.b1+after))
	for _, c := range changes {
		w.lines(' ', &w.a, c.a0)
		w.lines('-', &w.a, c.a1)
		w.b.to(c.b0)
		w.lines('+', &w.b, c.b1)
		w.diff.Removed += c.a1 - c.a0
		w.diff.Added += c.b1 - c.b0
	}
	w.lines(' ', &w.a, last.a1+after)
}

// extent tells which lines of a text a hunk holds, counted from 1. One that
// holds none names the line before it.
func extent(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return strconv.Itoa(to)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

// lines writes lines with their mark up to one that c then stands at.
func (w *writer) lines(mark byte, c *cursor, to int) {
	for c.line < to {
		line := c.next()
		w.out.WriteByte(mark)
		w.out.Write(line)
		if line[len(line)-1] != '\n' {
			w.out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// header returns a name as a header line has it: quoted as in C where it holds
// quotes, backslashes, control characters or what is no UTF-8, and followed by a
// tab where it holds a space, so that no reader ends it there.
func header(name string) string {
	var q strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		switch c := name[i]; {
		case c == '"' || c == '\\':
			q.WriteString(`\` + name[i:i+1])
		case c < ' ' && strings.IndexByte("\a\b\t\n\v\f\r", c) >= 0:
			q.WriteString(`\` + string("abtnvfr"[c-'\a']))
		case c < ' ' || c == 0x7f || r == utf8.RuneError && n == 1:
			fmt.Fprintf(&q, `\%03o`, c)
		default:
			q.WriteString(name[i : i+n])
		}
		i += n
	}
	quoted := q.String()
	if quoted != name {
		quoted = `"` + quoted + `"`
	}
	if strings.Contains(name, " ") {
		quoted += "\t"
	}
	return quoted
}
