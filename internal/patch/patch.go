// Package patch reads unified diffs as git diff and diff -u write them, finds
// the places of their hunks in files that may have changed since, and carries
// them out on disk.
package patch

import "fmt"

// An Action is what a patch does to a file.
type Action string

const (
	Modify Action = "modified"
	Create Action = "created"
	Delete Action = "deleted"
	Rename Action = "renamed"
	Copy   Action = "copied"
)

// Modes that git tells of files.
const (
	regular    = 0o100644
	executable = 0o100755
)

// A File is the part of a patch that is about one file.
type File struct {
	Action Action
	Old    string // slash-separated name before, "" for Create
	New    string // and after, "" for Delete

	// OldMode and NewMode are those of git, such as 0o100755, and 0 where the
	// patch tells none.
	OldMode, NewMode uint32

	Hunks  []*Hunk
	Binary bool     // the patch says that it differs, but not in lines
	Line   int      // where it begins in the text of the patch, from 1
	Notes  []string // what had to be put right in it

	git bool // it has the header that git writes
}

// Name is the name of the file that results, of a deleted one its last.
func (f *File) Name() string {
	if f.Action == Delete {
		return f.Old
	}
	return f.New
}

// A Hunk replaces lines in one place of a file.
type Hunk struct {
	Header             string // as written, without the line end
	OldStart, NewStart int    // line numbers from 1; of an empty side the line before
	Lines              []Line
	Line               int // where its header is in the text of the patch, from 1

	crlf bool // its header ends in CRLF
}

// A Line is one line of a hunk.
type Line struct {
	Op   byte   // ' ' on both sides, '-' on the old one, '+' on the new one
	Text string // without the newline, a carriage return before it included
	Open bool   // no newline at its end
}

// counts is how many lines each side of h has.
func (h *Hunk) counts() (before, after int) {
	for _, l := range h.Lines {
		if l.Op != '+' {
			before++
		}
		if l.Op != '-' {
			after++
		}
	}
	return before, after
}

// side returns the lines of h without those marked with op.
func (h *Hunk) side(without byte) []Line {
	list := make([]Line, 0, len(h.Lines))
	for _, l := range h.Lines {
		if l.Op != without {
			list = append(list, l)
		}
	}
	return list
}

// context is how many unchanged lines h begins and ends with.
func (h *Hunk) context() (leading, trailing int) {
	for leading < len(h.Lines) && h.Lines[leading].Op == ' ' {
		leading++
	}
	for trailing < len(h.Lines)-leading && h.Lines[len(h.Lines)-1-trailing].Op == ' ' {
		trailing++
	}
	return leading, trailing
}

// lines is a number of lines in words.
func lines(n int) string {
	if n == 1 || n == -1 {
		return fmt.Sprintf("%d line", n)
	}
	return fmt.Sprintf("%d lines", n)
}
