package patch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

var hunkHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)
})

// hunks reads the hunks that follow, to the first line that is not one's header.
func (p *parser) hunks(f *File) error {
	for p.next < len(p.lines) && strings.HasPrefix(p.lines[p.next], "@@") {
		if err := p.hunk(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) hunk(f *File) error {
	m := hunkHeader().FindStringSubmatch(p.line(0))
	if m == nil {
		return p.wrong("%q is no hunk header; write @@ -LINE,COUNT +LINE,COUNT @@ with the numbers of the first line and of the lines on each side", fault.ClipTo(p.line(0), repeated))
	}
	h := &Hunk{Header: strings.TrimRight(p.line(0), " "), Line: p.next + 1, OldStart: number(m[1], 0), NewStart: number(m[3], 0),
		crlf: strings.HasSuffix(p.lines[p.next], "\r")}
	before, after := number(m[2], 1), number(m[4], 1)
	p.next++
	end, ok := p.counted(p.next, before, after)
	if !ok {
		end = p.shaped(p.next)
	}
	for _, line := range p.lines[p.next:end] {
		switch {
		case line == "" || line == "\r":
			h.Lines = append(h.Lines, Line{Op: ' ', Text: line})
		case line[0] == '\\':
			if len(h.Lines) == 0 {
				return p.wrong("%q stands before any line of the hunk", fault.ClipTo(line, repeated))
			}
			h.Lines[len(h.Lines)-1].Open = true
		default:
			h.Lines = append(h.Lines, Line{Op: line[0], Text: line[1:]})
		}
	}
	f.Hunks = append(f.Hunks, h)
	if err := p.check(h, end); err != nil {
		return err
	}
	if err := p.follows(h, end, ok, before, after); err != nil {
		return err
	}
	if b, a := h.counts(); !ok {
		f.Notes = append(f.Notes, fmt.Sprintf("The header of hunk %d counts %d and %d lines, its body has %d and %d; the body was taken.", len(f.Hunks), before, after, b, a))
	}
	p.next = end
	return nil
}

// follows refuses a hunk whose body ends at a line that may have been meant for
// it, or for which the patch ends too soon: a part of it would be carried out.
// Counts that do not fit, told by fits, are put up with where a header, a
// closing fence or the end of the patch follows.
func (p *parser) follows(h *Hunk, end int, fits bool, before, after int) error {
	next := end
	for next < len(p.lines) && strings.TrimSpace(p.lines[next]) == "" {
		next++
	}
	b, a := h.counts()
	switch {
	case next == len(p.lines):
		if !fits && b <= before && a <= after {
			return p.wrongAt(h.Line-1, "the patch ends within this hunk, whose header counts %d and %d lines and whose body has %d and %d; give all of it, or counts that are right", before, after, b, a)
		}
		return nil
	case p.op(next) != 0, p.begins(next):
		return nil
	case fits:
		// What goes on like a body after a line that is none was meant for it.
		i := next
		for i < len(p.lines) && p.op(i) == 0 && !p.begins(i) {
			i++
		}
		if next > end || i == len(p.lines) || p.begins(i) || p.op(i) == ' ' {
			return nil
		}
	}
	return p.wrongAt(next, "is no line of the hunk that begins at patch line %d, whose header counts %d and %d lines and whose body ends here with %d and %d; begin each of its lines with a space, - or +", h.Line, before, after, b, a)
}

// begins reports whether line i begins something else than a line of a body.
func (p *parser) begins(i int) bool {
	line := p.lines[i]
	for _, prefix := range []string{"@@", "diff ", "```", "Index: "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return p.headerAt(i) || p.signature(i)
}

// check refuses a hunk that means nothing.
func (p *parser) check(h *Hunk, end int) error {
	changed := false
	for i, l := range h.Lines {
		changed = changed || l.Op != ' '
		if l.Open {
			for _, later := range h.Lines[i+1:] {
				if l.Op == ' ' || later.Op == ' ' || later.Op == l.Op {
					return p.wrongAt(h.Line-1, "in this hunk a line without a newline at its end is followed by others")
				}
			}
		}
	}
	switch {
	case changed:
		return nil
	case end < len(p.lines) && len(h.Lines) > 0:
		return p.wrongAt(end, "ends the hunk that begins at patch line %d before anything was changed; begin each of its lines with a space, - or +", h.Line)
	}
	return p.wrongAt(h.Line-1, "the hunk adds and removes nothing; begin added lines with + and removed ones with -")
}

// counted returns where the body that begins at i ends by the counts of its
// header, and whether it fits them.
func (p *parser) counted(i, before, after int) (end int, ok bool) {
	for before > 0 || after > 0 {
		if i >= len(p.lines) {
			return i, false
		}
		switch op := p.op(i); op {
		case ' ':
			before, after = before-1, after-1
		case '-':
			if p.headerAt(i) && (before != 1 || after != 1) {
				return i, false
			}
			before--
		case '+':
			after--
		case '\\':
		default:
			return i, false
		}
		if before < 0 || after < 0 {
			return i, false
		}
		i++
	}
	if i < len(p.lines) && p.op(i) == '\\' {
		i++
	}
	// What goes on like a body says that the counts were too small.
	return i, i >= len(p.lines) || p.lines[i] == "" || p.lines[i] == "\r" || p.ends(i)
}

// shaped returns where the body that begins at i ends by the look of its lines.
// Empty lines at its end do not belong to it.
func (p *parser) shaped(i int) int {
	for i < len(p.lines) && !p.ends(i) {
		i++
	}
	for i > p.next && (p.lines[i-1] == "" || p.lines[i-1] == "\r") {
		i--
	}
	return i
}

// ends reports whether line i cannot belong to a body.
func (p *parser) ends(i int) bool {
	return p.op(i) == 0 || p.headerAt(i) || p.signature(i)
}

// op is what line i of a body begins with; 0 where it is none. A line that lost
// the space of an empty line of context counts as that.
func (p *parser) op(i int) byte {
	line := p.lines[i]
	switch {
	case line == "", line == "\r":
		return ' '
	case line[0] == ' ', line[0] == '-', line[0] == '+':
		return line[0]
	case strings.HasPrefix(line, `\ `):
		return '\\'
	}
	return 0
}

var release = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d+\.\d+`)
})

// signature reports whether a mail written by git format-patch ends at line i.
func (p *parser) signature(i int) bool {
	line := strings.TrimSuffix(p.lines[i], "\r")
	return (line == "-- " || line == "--") && i+1 < len(p.lines) && release().MatchString(p.lines[i+1])
}

// number reads digits that a pattern has matched.
func number(s string, missing int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return missing
}

// repeated is how many bytes messages repeat of a line or name.
const repeated = 120
