package patch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Applied is what the hunks of a file come to in a text.
type Applied struct {
	Splices []textedit.Splice // in order, not overlapping
	Hunks   []Placed          // where each hunk was applied
	Notes   []string          // one sentence for each hunk that was not where it says

	image *image
	runs  []run
}

// Placed is where a hunk was applied.
type Placed struct {
	Line   int // first line of the old text, from 1
	Offset int // how many lines that is after the one stated, negative before
	Fuzz   int // lines of context left out at each end, at most 3
}

// MaxFuzz is how many lines of context may be left out at each end of a hunk.
const MaxFuzz = 3

// A run is adjacent lines that a hunk replaces.
type run struct {
	from, to int // lines of the image
	splice   textedit.Splice
}

// Apply finds the hunks of f in text and returns the changes they make, or the
// error of the first that has no place: ERR_PRECONDITION_FAILED, with the
// nearest place. Each is applied where it says, else at the nearest place where
// all its old lines are, else with up to [MaxFuzz] lines of context left out at
// both ends; removed lines always have to be there. Lines may differ in their
// ends: removed and unchanged ones are those of the text, and added ones take
// the end of what they replace or follow.
func Apply(ctx context.Context, text string, f *File) (*Applied, error) {
	a := &applying{Applied: &Applied{image: newImage(text)}, file: f}
	for n, h := range f.Hunks {
		if n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if err := a.hunk(ctx, n, h); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(a.runs, func(x, y run) int { return cmp.Or(x.from-y.from, x.to-y.to) })
	if a.ends {
		a.Notes = append(a.Notes, "The line ends or the byte order mark in the patch are not those of the file, which were kept.")
	}
	if err := a.join(f); err != nil {
		return nil, err
	}
	return a.Applied, nil
}

// join makes one of runs that touch, and lists their splices.
func (a *Applied) join(f *File) error {
	var joined []run
	for rest := a.runs; len(rest) > 0; {
		r, n := rest[0], 1
		news := []string{r.splice.New}
		for ; n < len(rest) && rest[n].splice.From == r.splice.To; n++ {
			r.to, r.splice.To = rest[n].to, rest[n].splice.To
			news = append(news, rest[n].splice.New)
		}
		if n < len(rest) && rest[n].splice.From < r.splice.To {
			return fault.New(fault.PreconditionFailed, "%s: two hunks of the patch change line %d; each line may be changed by one", fault.ClipTo(f.Name(), repeated), rest[n].from+1)
		}
		r.splice.New = strings.Join(news, "")
		joined = append(joined, r)
		a.Splices = append(a.Splices, r.splice)
		rest = rest[n:]
	}
	a.runs = joined
	return nil
}

// Text is the text with the changes made.
func (a *Applied) Text() string {
	if len(a.Splices) == 0 {
		return a.image.text
	}
	size := len(a.image.text)
	for _, s := range a.Splices {
		size += len(s.New) - (s.To - s.From)
	}
	var b strings.Builder
	b.Grow(size)
	from := 0
	for _, s := range a.Splices {
		b.WriteString(a.image.text[from:s.From])
		b.WriteString(s.New)
		from = s.To
	}
	b.WriteString(a.image.text[from:])
	return b.String()
}

type applying struct {
	*Applied
	file  *File
	taken []span // lines that hunks were found at, in order
	ends  bool   // a hunk was found that differs in line ends
}

type span struct{ from, to int }

// free reports whether no hunk was found at these lines.
func (a *applying) free(from, to int) bool {
	i, _ := slices.BinarySearchFunc(a.taken, from, func(s span, at int) int {
		if s.to <= at {
			return -1
		}
		return 1
	})
	return i == len(a.taken) || a.taken[i].from >= to
}

func (a *applying) take(s span) {
	i, _ := slices.BinarySearchFunc(a.taken, s, func(x, y span) int { return cmp.Or(x.from-y.from, x.to-y.to) })
	a.taken = slices.Insert(a.taken, i, s)
}

// A fit is a place for a hunk.
type fit struct {
	at        int    // line of the image where the old lines begin that are not left out
	head, end int    // lines left out
	how       rigour // how the lines agree
	fuzz      int
	early     bool // the file goes on after a hunk that says it ends
}

func (a *applying) hunk(ctx context.Context, n int, h *Hunk) error {
	old := h.side('+')
	want := h.OldStart
	if len(old) > 0 {
		want--
	}
	where, found, err := a.place(ctx, h, old, want)
	if err != nil {
		return err
	}
	if !found {
		return a.miss(ctx, n, h, old, want)
	}
	a.take(span{where.at, where.at + len(old) - where.head - where.end})
	a.ends = a.ends || where.how == loose && !a.image.holds(where.at, old[where.head:len(old)-where.end], exact, anywhere)
	a.runs = append(a.runs, a.rewrite(h, where)...)
	p := Placed{Line: where.at - where.head + 1, Offset: where.at - where.head - want, Fuzz: where.fuzz}
	if len(old) == 0 {
		p.Line, p.Offset = where.at+1, 0
	}
	a.Applied.Hunks = append(a.Applied.Hunks, p)
	if note := p.note(where.early); note != "" {
		a.Notes = append(a.Notes, fmt.Sprintf("Hunk %d applied at line %d (%s).", n+1, p.Line, note))
	}
	return nil
}

func (p Placed) note(early bool) string {
	var parts []string
	if p.Offset != 0 {
		parts = append(parts, "offset "+lines(p.Offset))
	}
	if p.Fuzz != 0 {
		parts = append(parts, fmt.Sprintf("fuzz %d", p.Fuzz))
	}
	if early {
		parts = append(parts, "not at the end of the file, where it says it is")
	}
	return strings.Join(parts, ", ")
}

// place finds the place of h, whose old lines begin at want by its header.
func (a *applying) place(ctx context.Context, h *Hunk, old []Line, want int) (fit, bool, error) {
	size := a.image.len()
	if len(old) == 0 { // nothing to look for: the stated line or none
		at := min(want, size)
		return fit{at: at, how: rigour(size == 0)}, a.free(at, at) && want <= size && !a.anew(h), nil
	}
	leading, trailing := h.context()
	// As git has it, a hunk without context after its changes ends the file.
	last := leading > 0 && trailing == 0 && h.OldStart > 1
	for _, how := range []rigour{exact, loose} {
		if last {
			if at := size - len(old); a.image.holds(at, old, how, a.free) {
				return fit{at: at, how: how}, true, nil
			}
			continue
		}
		at, err := a.nearest(ctx, old, want, how)
		if err != nil || at >= 0 {
			return fit{at: at, how: how}, at >= 0, err
		}
	}
	guess, found, err := a.guess(ctx, old, want, leading, trailing, last)
	if err != nil || !found {
		return fit{}, false, err
	}
	// A hunk that was applied before must not be applied once more beside it.
	done, err := a.done(ctx, h)
	if err != nil || done >= 0 && abs(done-(h.NewStart-1)) <= abs(guess.at-guess.head-want) {
		return fit{}, false, err
	}
	return guess, true, nil
}

// anew reports whether h seems to make the file, though it has lines. The header
// that git writes would say so.
func (a *applying) anew(h *Hunk) bool {
	return !a.file.git && h.OldStart == 0 && len(a.file.Hunks) == 1 && a.image.len() > 0
}

// nearest is the place of the lines at want or nearest to it, -1 for none.
func (a *applying) nearest(ctx context.Context, old []Line, want int, how rigour) (int, error) {
	if a.image.holds(want, old, how, a.free) {
		return want, nil
	}
	return a.image.find(ctx, old, want, how, a.free, -1)
}

// guess finds a place with less than all that the hunk says. A place that is
// not the stated one must be the only one, since little speaks for it.
func (a *applying) guess(ctx context.Context, old []Line, want, leading, trailing int, last bool) (fit, bool, error) {
	if last {
		at, err := a.nearest(ctx, old, want, loose)
		if err != nil || at >= 0 {
			return fit{at: at, early: true}, at >= 0, err
		}
	}
	most := max(leading, trailing)
	for fuzz := 1; fuzz <= min(MaxFuzz, most); fuzz++ {
		head, end := max(0, fuzz+leading-most), max(0, fuzz+trailing-most)
		part := old[head : len(old)-end]
		if len(part) == 0 {
			break
		}
		at, err := a.nearest(ctx, part, want+head, loose)
		if err != nil {
			return fit{}, false, err
		}
		if at < 0 {
			continue
		}
		if at != want+head {
			other, err := a.image.find(ctx, part, want+head, loose, a.free, at)
			if err != nil || other >= 0 {
				return fit{}, false, err
			}
		}
		return fit{at: at, head: head, end: end, fuzz: fuzz}, true, nil
	}
	return fit{}, false, nil
}

// done returns where the lines are that h would leave, -1 where they are not.
func (a *applying) done(ctx context.Context, h *Hunk) (int, error) {
	after := h.side('-')
	if len(after) == 0 {
		return -1, nil
	}
	return a.nearest(ctx, after, max(h.NewStart-1, 0), loose)
}

// rewrite returns what h replaces where it was found.
func (a *applying) rewrite(h *Hunk, where fit) []run {
	body := h.Lines[where.head : len(h.Lines)-where.end]
	var runs []run
	at := where.at
	for i := 0; i < len(body); {
		if body[i].Op == ' ' {
			at++
			i++
			continue
		}
		r := run{from: at, to: at}
		var added []Line
		for ; i < len(body) && body[i].Op != ' '; i++ {
			if body[i].Op == '-' {
				r.to++
			} else {
				added = append(added, body[i])
			}
		}
		a.splice(&r, h, added, where.how)
		runs = append(runs, r)
		at = r.to
	}
	return runs
}

// splice settles the bytes that added lines become in place of those of r.
func (a *applying) splice(r *run, h *Hunk, added []Line, how rigour) {
	m := a.image
	r.splice = textedit.Splice{From: m.at[r.from], To: m.at[r.to]}
	if how == loose && r.from == 0 && m.bom && (first(h) == nil || !strings.HasPrefix(first(h).Text, mark)) {
		r.splice.From = len(mark)
		r.splice.To = max(r.splice.To, r.splice.From)
	}
	var b strings.Builder
	atEnd := r.to == m.len()
	if atEnd && len(added) > 0 && r.from == r.to && r.from > 0 && m.end(r.from-1) == "" {
		b.WriteString(a.ending(r.from - 1))
	}
	verbatim := how == exact || mixed(h) || first(h) == nil && a.file.endsLines()
	for i, l := range added {
		text, end := l.Text, "\n"
		if !verbatim {
			text, end = strings.TrimSuffix(text, "\r"), a.endingFor(r, i, l)
		}
		b.WriteString(text)
		if i == len(added)-1 && atEnd && a.open(h, l, how) {
			break
		}
		b.WriteString(end)
	}
	r.splice.New = b.String()
}

// open reports whether the file ends without a newline after l, the last line
// that h adds at its end: as the patch says, but where lines may differ in
// their ends only if it changes that.
func (a *applying) open(h *Hunk, l Line, how rigour) bool {
	m := a.image
	if how == exact || m.len() == 0 {
		return l.Open
	}
	open := m.end(m.len()-1) == ""
	switch before := h.side('+'); {
	case len(before) == 0:
		return open || l.Open
	case before[len(before)-1].Open != l.Open:
		return l.Open
	}
	return open
}

// endingFor is the line end of the i-th line added in place of r.
func (a *applying) endingFor(r *run, i int, l Line) string {
	switch {
	case a.image.len() == 0:
		if strings.HasSuffix(l.Text, "\r") {
			return "\r\n"
		}
		return "\n"
	case r.from < r.to:
		return a.ending(min(r.from+i, r.to-1))
	case r.from > 0:
		return a.ending(r.from - 1)
	}
	return a.ending(0)
}

// ending is the end of line i, or of the one before where the last has none.
func (a *applying) ending(i int) string {
	for _, i := range []int{i, i - 1} {
		if i >= 0 {
			if end := a.image.end(i); end != "" {
				return end
			}
		}
	}
	return "\n"
}

// first is the first old line of h, nil where it has none.
func first(h *Hunk) *Line {
	for i := range h.Lines {
		if h.Lines[i].Op != '+' {
			return &h.Lines[i]
		}
	}
	return nil
}

// mixed reports whether h tells line ends by itself: some of its lines have a
// carriage return and some not.
func mixed(h *Hunk) bool {
	with := 0
	for _, l := range h.Lines {
		if strings.HasSuffix(l.Text, "\r") {
			with++
		}
	}
	return with > 0 && with < len(h.Lines)
}

// endsLines reports whether f tells carriage returns of the file's lines, not
// those that the whole patch got on its way.
func (f *File) endsLines() bool {
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if strings.HasSuffix(l.Text, "\r") {
				return !h.crlf
			}
		}
	}
	return false
}

// anywhere is a place that need not be free.
func anywhere(int, int) bool { return true }

func abs(n int) int { return max(n, -n) }
