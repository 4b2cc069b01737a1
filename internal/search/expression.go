package search

import (
	"bytes"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// An Expression is a JavaScript regular expression.
type Expression struct {
	full   *regexp2.Regexp
	linear *regexp.Regexp // means the same and takes linear time; nil where there is none
	lines  bool           // linear has ^ or $
	start  bool           // linear depends on what is in front of a position
	need   []*Literal     // every match has one of them in it; nil where none are known
	within bool           // a match depends on nothing but the line it is in; need is known

	slow atomic.Bool // full has run out of time once, so linear is used
}

// maxStack bounds the memory of one attempt: 4 Mi integers.
const maxStack = 4 << 20

// NewExpression compiles a pattern written as such, or as /pattern/flags with
// flags out of i, m, s, g, u and y (g and y change nothing here). Where multiline
// is set, ^ and $ match at line ends without the flag m. The error is the one of
// the engine, to be shown to the caller.
func NewExpression(pattern string, multiline bool) (*Expression, error) {
	body, flags := split(pattern)
	return compile(body, flags, multiline)
}

// NewFolded is [NewExpression] with the flag i.
func NewFolded(pattern string, multiline bool) (*Expression, error) {
	body, flags := split(pattern)
	return compile(body, flags+"i", multiline)
}

func compile(body, flags string, multiline bool) (*Expression, error) {
	options := regexp2.ECMAScript
	for _, f := range flags {
		switch f {
		case 'i':
			options |= regexp2.IgnoreCase
		case 's':
			options |= regexp2.Singleline
		case 'u':
			options |= regexp2.Unicode
		case 'm':
			multiline = true
		}
	}
	if multiline {
		options |= regexp2.Multiline
	}
	full, err := regexp2.Compile(body, options, regexp2.OptionMaxBacktrackingStackSize(maxStack), regexp2.OptionMaxCachedRuneBufferLength(window))
	if err != nil {
		return nil, err
	}
	full.MatchTimeout = attemptTime
	e := &Expression{full: full}
	if t, ok := translate(body, options); ok {
		e.linear, e.lines, e.start, e.need, e.within = t.re, t.lines, t.start, t.need, t.oneLine
	}
	return e, nil
}

// split takes /pattern/flags apart. Anything else is a pattern as it stands, a
// path with slashes in it too.
func split(pattern string) (body, flags string) {
	end := strings.LastIndexByte(pattern, '/')
	if end < 2 || pattern[0] != '/' || strings.Trim(pattern[end+1:], "gimsuy") != "" {
		return pattern, ""
	}
	body, flags = pattern[1:end], pattern[end+1:]
	class := false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return pattern, ""
			}
		}
	}
	return body, flags
}

// Match reports whether s has a match. The error is [ErrGivenUp].
func (e *Expression) Match(s string) (found bool, err error) {
	left := fileTime
	err = e.each([]byte(s), 0, &left, func(int, int) bool {
		found = true
		return false
	})
	return found, err
}

func (e *Expression) each(b []byte, start int, left *time.Duration, yield func(from, to int) bool) error {
	if e.need == nil {
		return e.eachIn(b, start, left, yield)
	}
	var known needed
	more := true
	for more && start < len(b) {
		at := known.next(e.need, b, start)
		switch {
		case at < 0:
			return nil
		case !e.within:
			return e.eachIn(b, start, left, yield)
		}
		begin, end := bytes.LastIndexByte(b[:at], '\n')+1, len(b)
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			end = at + i
		}
		err := e.eachIn(b[begin:end], max(start-begin, 0), left, func(from, to int) bool {
			more = yield(begin+from, begin+to)
			return more
		})
		if err != nil {
			return err
		}
		start = end + 1
	}
	return nil
}

// needed are the places where each of some texts comes next, as far as is known.
type needed struct {
	at    [maxNeeds]int
	begun bool
}

// next is where in b, from start on, the first of texts is; -1 for nowhere.
func (n *needed) next(texts []*Literal, b []byte, start int) int {
	first := len(b)
	for i, t := range texts {
		if !n.begun || n.at[i] < start {
			if n.at[i], _ = t.next(b, start); n.at[i] < 0 {
				n.at[i] = len(b)
			}
		}
		first = min(first, n.at[i])
	}
	if n.begun = true; first == len(b) {
		return -1
	}
	return first
}

// eachIn looks for matches with an engine.
func (e *Expression) eachIn(b []byte, start int, left *time.Duration, yield func(from, to int) bool) error {
	if !e.slow.Load() {
		next, err := e.eachFull(string(b), start, left, func(_ *regexp2.Match, from, to int) bool { return yield(from, to) })
		if err == nil || e.linear == nil {
			return err
		}
		e.slow.Store(true)
		start = next
	}
	return e.eachLinear(b, start, left, yield)
}

// eachFull returns how far it came.
func (e *Expression) eachFull(s string, start int, left *time.Duration, yield func(m *regexp2.Match, from, to int) bool) (int, error) {
	next := start
	begun := time.Now()
	m, err := e.full.FindStringMatchStartingAt(s, start)
	for {
		took := time.Since(begun)
		switch {
		case err != nil && e.linear != nil:
			return next, ErrGivenUp // not charged: the linear engine goes on
		case err != nil:
			*left -= took
			return next, ErrGivenUp
		}
		if *left -= took; m == nil {
			return next, nil
		}
		from, n := m.ByteRange()
		if !yield(m, from, from+n) {
			return next, nil
		}
		if *left < 0 {
			return next, ErrGivenUp
		}
		next = from + n
		begun = time.Now()
		m, err = e.full.FindNextMatch(m)
	}
}

func (e *Expression) eachLinear(b []byte, start int, left *time.Duration, yield func(from, to int) bool) error {
	if *left < 0 {
		return ErrGivenUp
	}
	if e.start && start > 0 && b[start-1] != '\n' || e.lines && hasOtherLineEnds(b[start:]) {
		return ErrGivenUp
	}
	begun := time.Now()
	found := e.linear.FindAllIndex(b[start:], -1)
	*left -= time.Since(begun)
	for _, at := range found {
		if !yield(start+at[0], start+at[1]) {
			return nil
		}
	}
	return nil
}

// hasOtherLineEnds reports whether b has a line end of JavaScript other than
// "\n", where the linear engine's ^ and $ do not match.
func hasOtherLineEnds(b []byte) bool {
	return bytes.IndexByte(b, '\r') >= 0 || bytes.Contains(b, []byte("\u2028")) || bytes.Contains(b, []byte("\u2029"))
}
