package textedit

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/textdiff"
)

// Diff returns the unified diff of what s changes, made from the changes and
// the lines around them without looking at the rest. Of UTF-8 it is one that git
// apply accepts; other charsets are shown decoded. The names are those of
// [textdiff.Compare].
func (d *Doc) Diff(ctx context.Context, s []Splice, nameA, nameB string, around int) (textdiff.Diff, error) {
	s = sorted(s)
	text, mark := d.text, 0
	if d.enc == nil {
		text, mark = view(d.raw), d.mark // the mark is part of the first line
	}
	var out textdiff.Diff
	var b strings.Builder
	shift := 0          // of line numbers, by the changes so far
	done, lines := 0, 0 // lines in front of the offset done
	for len(s) > 0 {
		from := back(text, s[0].From+mark, around)
		var part textdiff.Diff
		group := 0
		// The diff may move a change down past lines that repeat it; where that
		// uses up the context, more of the text is looked at.
		for slack := 0; ; slack = 8*slack + 8 {
			for group = 1; group < len(s) && s[group].From+mark <= forth(text, s[group-1].To+mark, 2*around+1+slack); {
				group++
			}
			to := forth(text, s[group-1].To+mark, around+1+slack)
			var err error
			part, err = textdiff.Compare(ctx, []byte(text[from:to]), spliced(text[from:to], s[:group], mark-from), nameA, nameB, textdiff.Options{Context: around})
			if err != nil {
				return out, err
			}
			if to == len(text) || part.Text == "" || settled(part.Text, around) {
				break
			}
		}
		lines += strings.Count(text[done:from], "\n")
		done = from
		writeHunks(&b, part.Text, lines, lines+shift, b.Len() == 0)
		shift += part.Added - part.Removed
		out.Added += part.Added
		out.Removed += part.Removed
		s = s[group:]
	}
	out.Text = b.String()
	return out, nil
}

// spliced is text with s applied, whose offsets are to be raised by shift.
func spliced(text string, s []Splice, shift int) []byte {
	size := len(text)
	for _, p := range s {
		size += len(p.New) - (p.To - p.From)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, p := range s {
		out = append(out, text[at:p.From+shift]...)
		out = append(out, p.New...)
		at = p.To + shift
	}
	return append(out, text[at:]...)
}

// settled reports whether diff ends with n lines that do not change.
func settled(diff string, n int) bool {
	for ; n > 0; n-- {
		i := strings.LastIndexByte(strings.TrimSuffix(diff, "\n"), '\n') + 1
		if diff[i] != ' ' {
			return false
		}
		diff = diff[:i]
	}
	return true
}

// back is where the line begins that is n lines in front of the one at lies in.
func back(text string, at, n int) int {
	at = strings.LastIndexByte(text[:at], '\n') + 1
	for ; n > 0 && at > 0; n-- {
		at = strings.LastIndexByte(text[:at-1], '\n') + 1
	}
	return at
}

// forth is where the line ends that is n-1 lines behind the one at lies in.
func forth(text string, at, n int) int {
	for ; n > 0 && at < len(text); n-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

// writeHunks writes the hunks of diff, whose line numbers are to be raised, and
// its header where wanted.
func writeHunks(b *strings.Builder, diff string, before, after int, header bool) {
	inHunk := false
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "@@ "):
			inHunk = true
			a, rest, _ := strings.Cut(strings.TrimPrefix(line, "@@ -"), " +")
			c, tail, _ := strings.Cut(rest, " @@")
			fmt.Fprintf(b, "@@ -%s +%s @@%s", raise(a, before), raise(c, after), tail)
		case inHunk || header:
			b.WriteString(line)
		}
	}
}

// raise adds n to the first number of "4,7".
func raise(s string, n int) string {
	number, rest, ok := strings.Cut(s, ",")
	line, err := strconv.Atoi(number)
	if err != nil {
		return s
	}
	if !ok {
		return fmt.Sprint(line + n)
	}
	return fmt.Sprintf("%d,%s", line+n, rest)
}
