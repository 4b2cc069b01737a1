package textedit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An Edit is one change of a text. It is one of three: Old is replaced; the
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
// ERR_INVALID_PARAMETER and begins with the edit's name, as in "edits[2]".
//
// Each line end that is kept stays as it is. Inserted lines get the one of the
// line they replace, else of their neighbour.
func (d *Doc) Plan(ctx context.Context, edits []Edit, m Matching) (Plan, error) {
	p := planner{d: d, edits: edits, matching: m}
	for i := range edits {
		if err := edits[i].check(i); err != nil {
			return Plan{}, err
		}
	}
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
	if first != nil {
		return Plan{}, also(first, failed)
	}
	return p.finish()
}

// also adds to err, about the first of failed, the names of the others.
func also(err error, failed []int) error {
	code, message := fault.Of(err)
	if len(failed) < 2 || code != fault.InvalidParameter {
		return err
	}
	var others []string
	for _, i := range failed[1:min(len(failed), 11)] {
		others = append(others, fmt.Sprintf("edits[%d]", i))
	}
	more := ""
	if n := len(failed) - 1 - len(others); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fault.New(code, "%s\nThe same call fails for %s%s too.", message, strings.Join(others, ", "), more)
}

func unified(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func wrong(i int, format string, args ...any) error {
	return fault.New(fault.InvalidParameter, "edits[%d]%s", i, fmt.Sprintf(format, args...))
}

// check refuses an edit that is none of the three, or more than one.
func (e *Edit) check(i int) error {
	lines := e.First != 0 || e.Last != 0
	kinds := 0
	for _, is := range []bool{e.Old != "", lines, e.At != 0} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return wrong(i, " names no place; give old_text, or start_line and end_line (from 1), or insert_at_line (from 1)")
	case kinds > 1:
		return wrong(i, " names more than one place; give old_text, or start_line with end_line, or insert_at_line, and use one edit for each")
	case e.Old == "" && (e.Occurrence != 0 || e.Expect != 0):
		return wrong(i, ": occurrence and expect_count belong to old_text; leave them out")
	case e.At == 0 && e.After:
		return wrong(i, ": position belongs to insert_at_line; leave it out")
	case lines && e.First == 0:
		return wrong(i, " has an end_line but no start_line; give both (from 1)")
	case e.At != 0 && e.New == "":
		return wrong(i, ".new_text is required with insert_at_line; an empty line is \"\\n\"")
	}
	return nil
}

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
	quests   []quest
	claims   []claim
	loose    []int
}

// A quest is the search for one old text, whose line ends are LF by now.
type quest struct {
	old, text string
	exact     finding
	lines     []string // old by lines, where it is looked for with other white space
	ended     bool     // the last line's end is part of old, and to be replaced
	loose     finding
}

// search finds all old texts, many in one pass.
func (p *planner) search(ctx context.Context) error {
	p.quests = make([]quest, len(p.edits))
	needles := make([]*needle, len(p.edits))
	for i, e := range p.edits {
		if e.Old != "" {
			p.quests[i] = quest{old: unified(e.Old), text: unified(e.New)}
			needles[i] = exactly(p.quests[i].old)
		}
	}
	locate(p.d.text, needles)
	for i, n := range needles {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n != nil {
			p.quests[i].exact = p.find(n, p.edits[i])
			needles[i] = p.loosened(&p.quests[i])
		}
	}
	locate(p.d.text, needles)
	for i, n := range needles {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n != nil {
			p.quests[i].loose = p.find(n, p.edits[i])
		}
	}
	return nil
}

// loosened returns what to look for with other white space, or nil.
func (p *planner) loosened(q *quest) *needle {
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
func (p *planner) line(i int, parameter string, n, most int) (int, error) {
	lines := p.d.Lines()
	k := n
	if n < 0 {
		k = lines + 1 + n
	}
	if k < 1 || k > most {
		return 0, wrong(i, ".%s is %d, but the lines of the file end at %d; read it again before editing by line numbers", parameter, n, lines)
	}
	return k, nil
}

func (p *planner) lines(i int) error {
	d, e := p.d, p.edits[i]
	first, err := p.line(i, "start_line", e.First, d.Lines())
	if err != nil {
		return err
	}
	last := first
	if e.Last != 0 {
		if last, err = p.line(i, "end_line", e.Last, d.Lines()); err != nil {
			return err
		}
	}
	if last < first {
		return wrong(i, ": start_line %d lies after end_line %d", e.First, e.Last)
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
	n, err := p.line(i, "insert_at_line", e.At, lines+1)
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
	e, q := p.edits[i], p.quests[i]
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
		return wrong(i, ".old_text is not in the file")
	}
	return p.d.miss(ctx, i, q.old, p.matching)
}

// last replaces the end of a text whose last line has no end, where the old text
// of edit i has one and agrees otherwise.
func (p *planner) last(i int) bool {
	d := p.d
	e := p.edits[i]
	old, ok := strings.CutSuffix(p.quests[i].old, "\n")
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
func (p *planner) looseClaim(i int, at [2]int, q quest) {
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
	where := func() string {
		var lines []string
		for _, at := range f.starts {
			lines = append(lines, fmt.Sprint(d.Line(at)))
		}
		s := strings.Join(lines, ", ")
		if n := f.count - len(f.starts); n > 0 {
			s += fmt.Sprintf(" and %d more", n)
		}
		return s
	}
	times := "once, at line"
	if f.count > 1 {
		times = fmt.Sprintf("%d times, at lines", f.count)
	}
	switch {
	case e.Expect > 0 && f.count != e.Expect:
		return wrong(i, ".old_text was expected %d times, but stands in the file %s %s; correct expect_count, or include more of the text around it", e.Expect, times, where())
	case e.Occurrence != 0 && len(f.places) == 0:
		return wrong(i, ".occurrence is %d, but old_text stands in the file %s %s", e.Occurrence, times, where())
	case e.Occurrence == 0 && e.Expect == 0 && f.count > 1:
		return wrong(i, ".old_text stands in the file %s %s; include more of the text around it, or name one by occurrence (1 to %d), or replace all with expect_count %d", times, where(), f.count, f.count)
	}
	return nil
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
			return Plan{}, fault.New(fault.InvalidParameter, "edits[%d] (%s) and edits[%d] (%s) overlap; join them into one edit. Every edit speaks of the file as it is before the call",
				a.edit, p.reach(a), b.edit, p.reach(b))
		}
		if c.joint != "" && !p.ended(plan.Splices) {
			c.splice.New = c.joint + c.splice.New
		}
		plan.Splices = append(plan.Splices, c.splice)
	}
	return plan, nil
}

// reach says which lines c speaks of.
func (p *planner) reach(c claim) string {
	first := p.d.Line(c.from)
	last := first
	if c.to > c.from {
		last = p.d.Line(c.to - 1)
	}
	if first == last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d-%d", first, last)
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
