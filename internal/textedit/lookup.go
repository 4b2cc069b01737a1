package textedit

import (
	"context"
	"strings"
)

// A lookup is the search for one old text, whose line ends are LF by now.
type lookup struct {
	old, text string
	exact     finding
	lines     []string // old by lines, where it is looked for with other white space
	ended     bool     // the last line's end is part of old, and to be replaced
	loose     finding
}

// search finds all old texts, many in one pass.
func (p *planner) search(ctx context.Context) error {
	p.lookups = make([]lookup, len(p.edits))
	needles := make([]*needle, len(p.edits))
	for i, e := range p.edits {
		if e.Old != "" {
			p.lookups[i] = lookup{old: unified(e.Old), text: unified(e.New)}
			needles[i] = exactly(p.lookups[i].old)
		}
	}
	locate(p.d.text, needles)
	for i, n := range needles {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n != nil {
			p.lookups[i].exact = p.find(n, p.edits[i])
			needles[i] = p.loosened(&p.lookups[i])
		}
	}
	locate(p.d.text, needles)
	for i, n := range needles {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n != nil {
			p.lookups[i].loose = p.find(n, p.edits[i])
		}
	}
	return nil
}

// loosened returns what to look for with other white space, or nil.
func (p *planner) loosened(q *lookup) *needle {
	if q.exact.count > 0 || p.matching == Exact || p.matching == Auto && !strings.Contains(q.old, "\n") {
		return nil
	}
	bare, ended := strings.CutSuffix(q.old, "\n")
	if rest, both := strings.CutSuffix(q.text, "\n"); ended && both {
		q.text, ended = rest, false // the end of the last line stays
	}
	q.lines, q.ended = strings.Split(bare, "\n"), ended
	return loosely(q.lines)
}

// listed is how many places a message lists.
const listed = 10

// A finding is where an old text stands.
type finding struct {
	count  int
	places [][2]int // those to replace, where there are as many as asked for
	starts []int    // of the first places
}

// find looks for n as e asks for.
func (p *planner) find(n *needle, e Edit) finding {
	var f finding
	keep := max(1, e.Expect)
	var ring [][2]int // the last -Occurrence places
	n.each(p.d.text, func(from, to int) bool {
		f.count++
		if len(f.starts) < listed {
			f.starts = append(f.starts, from)
		}
		switch {
		case e.Occurrence > 0:
			if f.count == e.Occurrence {
				f.places = append(f.places, [2]int{from, to})
			}
		case e.Occurrence < 0:
			if ring = append(ring, [2]int{from, to}); len(ring) > -e.Occurrence {
				ring = ring[1:]
			}
		case f.count <= keep:
			f.places = append(f.places, [2]int{from, to})
		}
		return true
	})
	if len(ring) > 0 && len(ring) == -e.Occurrence {
		f.places = ring[:1]
	}
	return f
}

// verdict refuses what is found more or less often than asked for.
func (f finding) verdict(d *Doc, i int, e Edit) error {
	c := &Count{Edit: i, Found: f.count}
	switch {
	case e.Expect > 0 && f.count != e.Expect:
		c.Expect = e.Expect
	case e.Occurrence != 0 && len(f.places) == 0:
		c.Occurrence = e.Occurrence
	case e.Occurrence == 0 && e.Expect == 0 && f.count > 1:
	default:
		return nil
	}
	for _, at := range f.starts {
		c.Lines = append(c.Lines, d.Line(at))
	}
	return c
}
