package patch

import (
	"cmp"
	"fmt"
	"strings"
)

// around is how many unchanged lines a diff shows on each side of a change.
const around = 3

// Diff is the unified diff of what was really changed, without the lines that
// name the file; "" where nothing was.
func (a *Applied) Diff() string {
	m := a.image
	var b strings.Builder
	shift := 0 // lines more on the new side so far
	for changes := a.changes(); len(changes) > 0; {
		n := 1
		for n < len(changes) && changes[n].from-changes[n-1].to <= 2*around {
			n++
		}
		from := max(changes[0].from-around, 0)
		to := min(changes[n-1].to+around, m.len())
		added := 0
		for _, c := range changes[:n] {
			added += len(c.lines) - (c.to - c.from)
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", extent(from, to-from), extent(from+shift, to-from+added))
		at := from
		for _, c := range changes[:n] {
			a.show(&b, ' ', at, c.from)
			a.show(&b, '-', c.from, c.to)
			for _, l := range c.lines {
				write(&b, '+', l)
			}
			at = c.to
		}
		a.show(&b, ' ', at, to)
		shift += added
		changes = changes[n:]
	}
	return b.String()
}

// A change is lines of a text and what replaces them.
type change struct {
	from, to int
	lines    []string
}

// changes returns what was changed by whole lines, what is the same before and
// after left out.
func (a *Applied) changes() []change {
	m := a.image
	var list []change
	for runs := a.runs; len(runs) > 0; {
		var c change
		c.from, c.to = a.extent(runs[0])
		var text strings.Builder
		at, begun := m.at[c.from], false
		for len(runs) > 0 {
			from, to := a.extent(runs[0])
			if begun && from >= c.to {
				break
			}
			begun = true
			c.to = max(c.to, to)
			text.WriteString(m.text[at:runs[0].splice.From] + runs[0].splice.New)
			at = runs[0].splice.To
			runs = runs[1:]
		}
		text.WriteString(m.text[at:m.at[c.to]])
		for line := range strings.Lines(text.String()) {
			c.lines = append(c.lines, line)
		}
		for c.from < c.to && len(c.lines) > 0 && c.lines[0] == m.line(c.from) {
			c.from++
			c.lines = c.lines[1:]
		}
		for c.from < c.to && len(c.lines) > 0 && c.lines[len(c.lines)-1] == m.line(c.to-1) {
			c.to--
			c.lines = c.lines[:len(c.lines)-1]
		}
		if c.from < c.to || len(c.lines) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// extent is which lines r changes as a diff has it: also one that gets an end,
// and one that a byte order mark comes to stand before.
func (a *Applied) extent(r run) (from, to int) {
	m := a.image
	from, to = r.from, r.to
	if from == to && from > 0 && from == m.len() && m.end(from-1) == "" {
		from--
	}
	if r.splice.From > m.at[r.from] && to < m.len() && (r.splice.To > m.at[to] || r.splice.New == "") {
		to++
	}
	return from, to
}

// Changed counts the lines added and removed.
func (a *Applied) Changed() (added, removed int) {
	for _, c := range a.changes() {
		added += len(c.lines)
		removed += c.to - c.from
	}
	return added, removed
}

// show writes lines of the text.
func (a *Applied) show(b *strings.Builder, op byte, from, to int) {
	for i := from; i < to; i++ {
		write(b, op, a.image.line(i))
	}
}

func write(b *strings.Builder, op byte, line string) {
	b.WriteByte(op)
	b.WriteString(line)
	if !strings.HasSuffix(line, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
}

// extent is one side of a hunk header, of lines counted from 0.
func extent(from, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, n)
}

// Header is the lines that name f in a diff, as git writes them; changed says
// whether hunks follow.
func (f *File) Header(changed bool) string {
	before, after := quote("a/"+f.Old), quote("b/"+f.New)
	var b strings.Builder
	switch f.Action {
	case Create:
		before = quote("a/" + f.New)
	case Delete:
		after = quote("b/" + f.Old)
	}
	fmt.Fprintf(&b, "diff --git %s %s\n", before, after)
	switch f.Action {
	case Create:
		fmt.Fprintf(&b, "new file mode %06o\n", cmp.Or(f.NewMode, regular))
		before = devNull
	case Delete:
		fmt.Fprintf(&b, "deleted file mode %06o\n", cmp.Or(f.OldMode, regular))
		after = devNull
	}
	if f.Action != Create && f.Action != Delete && f.NewMode != 0 && f.NewMode != f.OldMode {
		fmt.Fprintf(&b, "old mode %06o\nnew mode %06o\n", cmp.Or(f.OldMode, regular), f.NewMode)
	}
	switch f.Action {
	case Rename:
		fmt.Fprintf(&b, "rename from %s\nrename to %s\n", quote(f.Old), quote(f.New))
	case Copy:
		fmt.Fprintf(&b, "copy from %s\ncopy to %s\n", quote(f.Old), quote(f.New))
	}
	if changed {
		for _, side := range []struct{ mark, name string }{{"---", before}, {"+++", after}} {
			b.WriteString(side.mark + " " + side.name)
			if strings.Contains(side.name, " ") && side.name[0] != '"' {
				b.WriteByte('\t') // so that readers do not take its end for a time
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
