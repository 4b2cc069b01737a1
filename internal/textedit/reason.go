package textedit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Reason is why edits cannot be made: [*Miss], [*Count], [*NoLine],
// [*Backwards], [*Overlap] or [*Several]. [Vocabulary.Word] says it to a caller.
type Reason interface {
	error
	words(v Vocabulary) string
}

// A Field is one that holds a line number.
type Field uint8

const (
	FirstLine Field = iota
	LastLine
	AtLine
)

// A Miss is an old text that is not in the file.
type Miss struct {
	Edit       int
	Brief      bool   // nothing like it was looked for
	Anyhow     bool   // nor is it with other white space
	Charset    bool   // the file is not UTF-8, which may be why
	Near       []Near // what is most like it, the most first
	Incomplete bool   // not all of the file was looked at for that
}

// A Near is a run of lines that is like an old text.
type Near struct {
	First, Last int
	Percent     int    // how much they have in common
	Blank       bool   // they differ in white space alone
	Compared    string // both, with what only one has marked
}

// A Count is an old text that is found more or less often than asked for.
type Count struct {
	Edit       int
	Expect     int // as in [Edit], where there are not so many
	Occurrence int // as in [Edit], where there are fewer
	Found      int
	Lines      []int // of the first places
}

// A NoLine is a line number that the file has not.
type NoLine struct {
	Edit  int
	Field Field
	Line  int // as given
	Lines int // that the file has
}

// Backwards is a range of lines that ends before it begins.
type Backwards struct{ Edit, First, Last int }

// An Overlap is two edits that speak of one part of the text.
type Overlap struct {
	Edits [2]int
	Lines [2][2]int // first and last of each
}

// Several is more than one edit that cannot be made.
type Several struct {
	First  error // a Reason
	Others []int
}

// A Vocabulary is what a caller calls edits and their fields.
type Vocabulary struct {
	Edit func(i int) string // such as "edits[2]"
	Old  string             // the field of the old text
	At   string             // that of the line to insert at
}

// Word turns a Reason into ERR_INVALID_PARAMETER with a message in the words of
// v. Other errors are returned as they are.
func (v Vocabulary) Word(err error) error {
	var r Reason
	if errors.As(err, &r) {
		return fault.New(fault.InvalidParameter, "%s", r.words(v))
	}
	return err
}

// field is what a line number is called.
func (v Vocabulary) field(f Field) string {
	return [...]string{FirstLine: "start_line", LastLine: "end_line", AtLine: v.At}[f]
}

func (m *Miss) words(v Vocabulary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s is not in the file", v.Edit(m.Edit), v.Old)
	if m.Brief {
		return b.String()
	}
	if m.Anyhow {
		b.WriteString(", not even with other white space")
	}
	b.WriteByte('.')
	if m.Charset {
		b.WriteString(" The file is not UTF-8: name its charset, such as windows-1252.")
	}
	if len(m.Near) == 0 {
		b.WriteString(" Nothing in it is like that; read the file again.")
		return b.String()
	}
	fmt.Fprintf(&b, " Most like it, with [-what only %s has-] and {+what only the file has+}:", v.Old)
	for _, n := range m.Near {
		blank := ""
		if n.Blank {
			blank = ", and only in white space not"
		}
		fmt.Fprintf(&b, "\n%s, %d %% alike%s:%s", span([2]int{n.First, n.Last}), n.Percent, blank, n.Compared)
	}
	if m.Incomplete {
		b.WriteString("\n(Not all of the file was looked at, since that takes too long.)")
	}
	return b.String()
}

func (c *Count) words(v Vocabulary) string {
	times := "once, at line"
	if c.Found > 1 {
		times = fmt.Sprintf("%d times, at lines", c.Found)
	}
	where := strings.ReplaceAll(strings.Trim(fmt.Sprint(c.Lines), "[]"), " ", ", ")
	if n := c.Found - len(c.Lines); n > 0 {
		where += fmt.Sprintf(" and %d more", n)
	}
	name := v.Edit(c.Edit)
	switch {
	case c.Expect > 0:
		return fmt.Sprintf("%s.%s was expected %d times, but stands in the file %s %s; correct expect_count, or include more of the text around it", name, v.Old, c.Expect, times, where)
	case c.Occurrence != 0:
		return fmt.Sprintf("%s.occurrence is %d, but %s stands in the file %s %s", name, c.Occurrence, v.Old, times, where)
	}
	return fmt.Sprintf("%s.%s stands in the file %s %s; include more of the text around it, or name one by occurrence (1 to %d), or replace all with expect_count %d", name, v.Old, times, where, c.Found, c.Found)
}

func (n *NoLine) words(v Vocabulary) string {
	return fmt.Sprintf("%s.%s is %d, but the lines of the file end at %d; read it again before editing by line numbers", v.Edit(n.Edit), v.field(n.Field), n.Line, n.Lines)
}

func (b *Backwards) words(v Vocabulary) string {
	return fmt.Sprintf("%s: start_line %d lies after end_line %d", v.Edit(b.Edit), b.First, b.Last)
}

func (o *Overlap) words(v Vocabulary) string {
	return fmt.Sprintf("%s (%s) and %s (%s) overlap; join them into one edit. Every edit speaks of the file as it is before the call",
		v.Edit(o.Edits[0]), span(o.Lines[0]), v.Edit(o.Edits[1]), span(o.Lines[1]))
}

func (s *Several) words(v Vocabulary) string {
	var others []string
	for _, i := range s.Others[:min(len(s.Others), 10)] {
		others = append(others, v.Edit(i))
	}
	more := ""
	if n := len(s.Others) - len(others); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	_, first := fault.Of(v.Word(s.First))
	return fmt.Sprintf("%s\nThe same call fails for %s%s too.", first, strings.Join(others, ", "), more)
}

// span names lines.
func span(lines [2]int) string {
	if lines[0] == lines[1] {
		return fmt.Sprintf("line %d", lines[0])
	}
	return fmt.Sprintf("lines %d-%d", lines[0], lines[1])
}

// plain is for logs and tests.
var plain = Vocabulary{Edit: func(i int) string { return fmt.Sprintf("edit %d", i) }, Old: "old text", At: "line"}

func (m *Miss) Error() string      { return m.words(plain) }
func (c *Count) Error() string     { return c.words(plain) }
func (n *NoLine) Error() string    { return n.words(plain) }
func (b *Backwards) Error() string { return b.words(plain) }
func (o *Overlap) Error() string   { return o.words(plain) }
func (s *Several) Error() string   { return s.words(plain) }
