package filesystem

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
)

// A missing is what a change has no match for.
type missing string

func (m missing) Error() string { return string(m) }

// byLines replaces, deletes or inserts whole lines.
func (c editChange) byLines(ctx context.Context, d *textedit.Doc) ([]textedit.Splice, claim, error) {
	e := textedit.Edit{}
	if c.Replace != nil {
		e.New = *c.Replace
	}
	var of claim
	if c.Search == "" {
		e.At = c.Start
		if c.Indent {
			e.New = indented(e.New, deeper(d, c.Start))
		}
		at := d.Start(min(c.Start, d.Lines()+1))
		of = claim{from: at, to: at}
	} else {
		first, last, err := c.find(ctx, d)
		if err != nil {
			return nil, of, err
		}
		if c.Indent && e.New != "" && !c.fits(lineOf(d, first)) {
			e.New = d.Reindent(first, last, c.Search, e.New)
		}
		e.First, e.Last = first, last
		of = claim{from: d.Start(first), to: d.Start(last + 1)}
	}
	plan, err := d.Plan(ctx, []textedit.Edit{e}, textedit.Exact)
	return plan.Splices, of, err
}

// lineOf is line n of d without its end.
func lineOf(d *textedit.Doc, n int) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.Text()[d.Start(n):d.Start(n+1)], "\n"), "\r")
}

// deeper is the indentation of line n or of the line before it, whichever has
// more: what is inserted between the head of a block and its first line belongs
// to the block, and so does what comes after its last.
func deeper(d *textedit.Doc, n int) (indent string) {
	for k := max(1, n-1); k <= min(n, d.Lines()); k++ {
		if own := indentation(lineOf(d, k)); len(own) > len(indent) {
			indent = own
		}
	}
	return indent
}

func indentation(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// indented puts indent in front of each line of text that is not blank; text
// that begins with an indentation has its own.
func indented(text, indent string) string {
	lines := strings.Split(text, "\n")
	if indent == "" || indentation(text) != "" {
		return text
	}
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			lines[i] = indent + l
		}
	}
	return strings.Join(lines, "\n")
}

// fits reports whether the new text is indented as line is, which the pattern is
// not: then it was written for the file as it is.
func (c editChange) fits(line string) bool {
	indent := indentation(line)
	if indent == "" || strings.HasPrefix(c.Search, indent) {
		return false
	}
	for l := range strings.Lines(*c.Replace) {
		if strings.TrimSpace(l) != "" && !strings.HasPrefix(l, indent) {
			return false
		}
	}
	return true
}

// find returns the lines that the pattern agrees with.
func (c editChange) find(ctx context.Context, d *textedit.Doc) (first, last int, err error) {
	agreed := func(line string) string {
		if c.Loose {
			return strings.TrimLeft(line, " \t")
		}
		return line
	}
	want := strings.Split(strings.TrimSuffix(strings.ReplaceAll(c.Search, "\r\n", "\n"), "\n"), "\n")
	for i := range want {
		want[i] = agreed(want[i])
	}
	var have []string
	if c.Start <= d.Lines() {
		for l := range strings.Lines(d.Text()[d.Start(c.Start):]) {
			have = append(have, agreed(strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r")))
		}
	}
	found := 0
	for i := 0; i+len(want) <= len(have); i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		if slices.Equal(have[i:i+len(want)], want) {
			if found++; found == c.Occurrence {
				return c.Start + i, c.Start + i + len(want) - 1, nil
			}
		}
	}
	if found > 0 {
		return 0, 0, c.tooFew(found)
	}
	return 0, 0, c.miss(ctx, d)
}

// tooFew is the error where fewer places are found than match_occurrence says.
func (c editChange) tooFew(found int) error {
	if found == 0 {
		return missing(fmt.Sprintf(".search_pattern has no match from line %d on", c.Start))
	}
	return missing(fmt.Sprintf(".match_occurrence is %d, but the matches of search_pattern from line %d on are no more than %d", c.Occurrence, c.Start, found))
}

// miss says what the file has that is like the pattern.
func (c editChange) miss(ctx context.Context, d *textedit.Doc) error {
	plan, err := d.Plan(ctx, []textedit.Edit{{Old: c.Search, Occurrence: 1}}, textedit.Whitespace)
	if err != nil {
		return err // it shows the nearest lines
	}
	at := d.Line(plan.Splices[0].From)
	switch {
	case at < c.Start:
		return missing(fmt.Sprintf(".search_pattern stands in the file at line %d, but not from start_line %d on", at, c.Start))
	case len(plan.Loose) > 0:
		return missing(fmt.Sprintf(".search_pattern agrees with line %d but for white space that counts; correct it%s", at, map[bool]string{false: ", or leave ignore_leading_whitespace at true"}[c.Loose]))
	}
	return missing(fmt.Sprintf(".search_pattern stands in line %d, but is not the whole line; give whole lines, or an expression with use_regex", at))
}
