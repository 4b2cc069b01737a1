package search

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// Replacements calls yield, in order, for each match of m in text with what
// replaces it, until yield returns false. Of an expression, replacement may
// refer to a match as in JavaScript: $& is all of it, $1 to $99 and $<name> its
// groups, $$ a dollar sign; what refers to no group stays as it is. Of a
// [Literal] it is put as it is.
//
// Matches are those that [Content] finds in that text. The error is
// [ErrGivenUp] or that of ctx.
func Replacements(ctx context.Context, text string, m Matcher, replacement string, yield func(from, to int, text string) bool) error {
	return replacements(ctx, text, m, replacement, fileTime+fileTimeMiB*time.Duration(len(text)>>20), yield)
}

// replacements is Replacements with the time that an expression may take.
func replacements(ctx context.Context, text string, m Matcher, replacement string, left time.Duration, yield func(from, to int, text string) bool) error {
	put := func(*regexp2.Match, string) string { return replacement }
	e, isExpression := m.(*Expression)
	if isExpression {
		put = e.template(replacement)
	}
	space := scans.Get().(*scan)
	defer space.release()
	buf := &space.buf
	for base, start := 0, 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buf[:copy(buf[:], text[base:])]
		last := base+len(b) == len(text)
		limit := len(b)
		if !last {
			limit = boundary(b, len(b)-margin)
		}
		in := ""
		done, end := false, start
		each := func(m *regexp2.Match, from, to int) bool {
			if !last && from >= limit {
				return false
			}
			end = to
			done = !yield(base+from, base+to, put(m, in))
			return !done
		}
		var err error
		if !isExpression {
			err = m.each(b, start, &left, func(from, to int) bool { return each(nil, from, to) })
		} else if from := e.first(b, start); from >= 0 {
			in = string(b)
			_, err = e.eachFull(in, start, &left, each)
		}
		if err != nil || done || last {
			return err
		}
		cut := boundary(b, limit-margin)
		start = max(limit, end) - cut
		base += cut
	}
}

// first is where in b, from start on, a match can begin at the earliest, as far
// as the text that each one has tells; -1 where there is none.
func (e *Expression) first(b []byte, start int) int {
	if e.need == nil {
		return start
	}
	var n needed
	return n.next(e.need, b, start)
}

// template returns what replacement stands for, given a match and the text it is
// in, whose bytes are kept even where they are no characters.
func (e *Expression) template(replacement string) func(m *regexp2.Match, in string) string {
	var parts []func(m *regexp2.Match, in string) string
	groups := 0
	names := map[string]bool{}
	for _, n := range e.full.GetGroupNumbers() {
		groups = max(groups, n)
	}
	for _, n := range e.full.GetGroupNames() {
		if _, err := strconv.Atoi(n); err != nil && n != "" {
			names[n] = true
		}
	}
	literal := func(s string) {
		if s != "" {
			parts = append(parts, func(*regexp2.Match, string) string { return s })
		}
	}
	group := func(find func(*regexp2.Match) *regexp2.Group) {
		parts = append(parts, func(m *regexp2.Match, in string) string {
			if g := find(m); g != nil && len(g.Captures) > 0 {
				from, n := g.ByteRange()
				return in[from : from+n]
			}
			return ""
		})
	}
	for replacement != "" {
		i := strings.IndexByte(replacement, '$')
		if i < 0 || i+1 == len(replacement) {
			break
		}
		literal(replacement[:i])
		rest := replacement[i+1:]
		number, digits := reference(rest, groups)
		switch {
		case rest[0] == '$':
			literal("$")
			rest = rest[1:]
		case rest[0] == '&':
			group(func(m *regexp2.Match) *regexp2.Group { return m.GroupByNumber(0) })
			rest = rest[1:]
		case digits > 0:
			group(func(m *regexp2.Match) *regexp2.Group { return m.GroupByNumber(number) })
			rest = rest[digits:]
		case rest[0] == '<' && len(names) > 0 && strings.Contains(rest, ">"):
			name, after, _ := strings.Cut(rest[1:], ">")
			if names[name] {
				group(func(m *regexp2.Match) *regexp2.Group { return m.GroupByName(name) })
			}
			rest = after
		default:
			literal("$")
		}
		replacement = rest
	}
	literal(replacement)
	return func(m *regexp2.Match, in string) string {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p(m, in))
		}
		return b.String()
	}
}

// reference reads the number of one of so many groups, of one or two digits, at
// the beginning of s, and how many digits it takes; 0 for none.
func reference(s string, groups int) (number, digits int) {
	for n := min(2, len(s)); n > 0; n-- {
		if v, err := strconv.Atoi(s[:n]); err == nil && s[0] >= '0' && s[0] <= '9' && v >= 1 && v <= groups {
			return v, n
		}
	}
	return 0, 0
}
