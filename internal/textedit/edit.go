package textedit

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// An Edit is one change of a text. It must be one of three, and no more: Old is replaced; the
// lines First to Last are; or New is inserted at the line At. Line ends in Old
// and New are LF or CRLF, which count as the same.
type Edit struct {
	Old        string
	Occurrence int // which place of Old, from 1, or from the end for -1; 0 for the only one
	Expect     int // how often Old is to be found, all places replaced unless Occurrence is set; 0 for once

	First, Last int // from 1; negative counts from the end; Last 0 is First

	At    int // as First; one more than the last line is the end
	After bool

	New string // for lines, "" deletes them; a line end at its end may be left out
}

// Matching says what of Old has to agree with the file.
type Matching uint8

const (
	Auto       Matching = iota // every byte; of several lines white space around them may differ where that finds nothing
	Exact                      // every byte but line ends
	Whitespace                 // as Auto, for single lines as well
)

// A Plan is what edits come to.
type Plan struct {
	Splices []Splice
	Loose   []int // the edits whose Old was found with other white space only
}

// Plan turns edits into splices. All of them speak of the text as it is; those
// that overlap are refused, and nothing is done unless all can be: the error is
// a [Reason] or that of ctx.
//
// Each line end that is kept stays as it is. Inserted lines get the one of the
// line they replace, else of their neighbour.
func (d *Doc) Plan(ctx context.Context, edits []Edit, m Matching) (Plan, error) {
	p := planner{d: d, edits: edits, matching: m}
	if err := p.search(ctx); err != nil {
		return Plan{}, err
	}
	var failed []int
	var first error
	for i := range edits {
		if err := ctx.Err(); err != nil {
			return Plan{}, err
		}
		if err := p.edit(ctx, i, first == nil); err != nil {
			first = cmp.Or(first, err)
			failed = append(failed, i)
		}
	}
	if _, ok := first.(Reason); ok && len(failed) > 1 {
		return Plan{}, &Several{First: first, Others: failed[1:]}
	}
	if first != nil {
		return Plan{}, first
	}
	return p.finish()
}

func unified(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// A claim is the part of the text that an edit speaks of, and the splice it
// comes to, which lies within.
type claim struct {
	edit     int
	from, to int
	splice   Splice
	joint    string // line end to put in front where the text before is not ended
}

type planner struct {
	d        *Doc
	edits    []Edit
	matching Matching
	lookups  []lookup
	claims   []claim
	loose    []int
}

// edit adds the claims of edit i. Unless explain is set, errors are short.
func (p *planner) edit(ctx context.Context, i int, explain bool) error {
	switch e := p.edits[i]; {
	case e.Old != "":
		return p.replace(ctx, i, explain)
	case e.At != 0:
		return p.insert(i)
	}
	return p.lines(i)
}

// line resolves a line number; most is the greatest that is accepted.
func (p *planner) line(i int, field Field, n, most int) (int, error) {
	lines := p.d.Lines()
	k := n
	if n < 0 {
		k = lines + 1 + n
	}
	if k < 1 || k > most {
		return 0, &NoLine{Edit: i, Field: field, Line: n, Lines: lines}
	}
	return k, nil
}

func (p *planner) lines(i int) error {
	d, e := p.d, p.edits[i]
	first, err := p.line(i, FirstLine, e.First, d.Lines())
	if err != nil {
		return err
	}
	last := first
	if e.Last != 0 {
		if last, err = p.line(i, LastLine, e.Last, d.Lines()); err != nil {
			return err
		}
	}
	if last < first {
		return &Backwards{Edit: i, First: e.First, Last: e.Last}
	}
	from, to := d.Start(first), d.Start(last+1)
	if e.New == "" {
		p.claim(claim{edit: i, from: from, to: to, splice: Splice{From: from, To: to}})
		return nil
	}
	text := unified(e.New)
	inner := to
	if end := before(d.text, to); end >= from { // kept
		inner = end
		text = strings.TrimSuffix(text, "\n")
	}
	old := d.span(from, inner)
	was := make([]string, len(old))
	for k, r := range old {
		was[k] = r.text
	}
	s := d.rewrite(from, inner, old, was, strings.Split(text, "\n"), nil)
	p.claim(claim{edit: i, from: from, to: to, splice: s})
	return nil
}

func (p *planner) insert(i int) error {
	d, e := p.d, p.edits[i]
	lines := d.Lines()
	n, err := p.line(i, AtLine, e.At, lines+1)
	if err != nil {
		return err
	}
	if e.After && n <= lines {
		n++
	}
	at := d.Start(n)
	beside := at
	if e.After && n > 1 {
		beside = d.Start(n - 1)
	}
	end := d.endNear(beside)
	text := unified(e.New)
	c := claim{edit: i, from: at, to: at}
	if at == len(d.text) && before(d.text, at) < 0 && at > 0 {
		c.joint = end // and the missing line end at the end stays missing
	} else if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	c.splice = Splice{at, at, strings.ReplaceAll(text, "\n", end)}
	p.claim(c)
	return nil
}

func (p *planner) replace(ctx context.Context, i int, explain bool) error {
	e, q := p.edits[i], p.lookups[i]
	switch {
	case q.exact.count > 0:
		if err := q.exact.verdict(p.d, i, e); err != nil {
			return err
		}
		was, now := strings.Split(q.old, "\n"), strings.Split(q.text, "\n")
		for _, at := range q.exact.places {
			s := Splice{at[0], at[1], q.text}
			if len(was) > 1 || len(now) > 1 {
				s = p.d.rewrite(at[0], at[1], p.d.span(at[0], at[1]), was, now, nil)
			} else {
				s = p.d.trim(s)
			}
			p.claim(claim{edit: i, from: at[0], to: at[1], splice: s})
		}
		return nil
	case p.last(i):
		return nil
	case q.loose.count > 0:
		if err := q.loose.verdict(p.d, i, e); err != nil {
			return err
		}
		p.loose = append(p.loose, i)
		for _, at := range q.loose.places {
			p.looseClaim(i, at, q)
		}
		return nil
	case !explain:
		return &Miss{Edit: i, Brief: true}
	}
	return p.d.miss(ctx, i, q.old, p.matching)
}

// last replaces the end of a text whose last line has no end, where the old text
// of edit i has one and agrees otherwise.
func (p *planner) last(i int) bool {
	d := p.d
	e := p.edits[i]
	old, ok := strings.CutSuffix(p.lookups[i].old, "\n")
	if !ok || old == "" || strings.HasSuffix(d.text, "\n") || e.Expect > 1 || e.Occurrence > 1 || e.Occurrence < -1 {
		return false
	}
	lines := strings.Split(old, "\n")
	from := back(d.text, len(d.text), len(lines)-1)
	tail := unified(d.text[from:])
	if !strings.HasSuffix(tail, old) {
		return false
	}
	from += len(tail) - len(old) // both have as many line ends, so it lies in front of the first
	text := strings.TrimSuffix(unified(e.New), "\n")
	s := d.rewrite(from, len(d.text), d.span(from, len(d.text)), lines, strings.Split(text, "\n"), nil)
	p.claim(claim{edit: i, from: from, to: len(d.text), splice: s})
	return true
}

// looseClaim replaces the lines at a place, which agree with what is looked for
// but for white space.
func (p *planner) looseClaim(i int, at [2]int, q lookup) {
	d := p.d
	from, to := at[0], at[1]
	rows, old, now := d.span(from, to), q.lines, strings.Split(q.text, "\n")
	indent := reindenter(d, from, to, old, now, rows)
	if q.ended { // the last line end goes, too
		end := to + len(d.rowAt(to).end)
		if q.text == "" {
			p.claim(claim{edit: i, from: from, to: end, splice: Splice{From: from, To: end}})
			return
		}
		rows[len(rows)-1].end = d.text[to:end]
		rows = append(rows, row{})
		old = append(slices.Clone(old), "")
		to = end
	}
	p.claim(claim{edit: i, from: from, to: to, splice: d.rewrite(from, to, rows, old, now, indent)})
}

func (p *planner) claim(c claim) { p.claims = append(p.claims, c) }

// finish puts the claims in order and refuses those that overlap.
func (p *planner) finish() (Plan, error) {
	slices.SortStableFunc(p.claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.edit, b.edit))
	})
	plan := Plan{Loose: p.loose, Splices: make([]Splice, 0, len(p.claims))}
	for k, c := range p.claims {
		if k > 0 && c.from < p.claims[k-1].to {
			a, b := p.claims[k-1], c
			if a.edit > b.edit {
				a, b = b, a
			}
			return Plan{}, &Overlap{Edits: [2]int{a.edit, b.edit}, Lines: [2][2]int{p.reach(a), p.reach(b)}}
		}
		if c.joint != "" && !p.ended(plan.Splices) {
			c.splice.New = c.joint + c.splice.New
		}
		plan.Splices = append(plan.Splices, c.splice)
	}
	return plan, nil
}

// reach is the first and the last line that c speaks of.
func (p *planner) reach(c claim) [2]int {
	first := p.d.Line(c.from)
	if c.to > c.from {
		return [2]int{first, p.d.Line(c.to - 1)}
	}
	return [2]int{first, first}
}

// ended reports whether the text is empty or ends with a line end once the
// splices s are applied.
func (p *planner) ended(s []Splice) bool {
	at := len(p.d.text)
	for k := len(s) - 1; k >= 0 && s[k].To == at; k-- {
		if s[k].New != "" {
			return strings.HasSuffix(s[k].New, "\n")
		}
		at = s[k].From
	}
	return at == 0 || p.d.text[at-1] == '\n'
}
