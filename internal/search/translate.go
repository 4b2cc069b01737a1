package search

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/dlclark/regexp2/v2"
)

// A translation is an expression of JavaScript as one of Go.
type translation struct {
	re      *regexp.Regexp
	lines   bool
	start   bool
	need    []*Literal
	oneLine bool
}

// What the classes of JavaScript and its dot stand for.
const (
	spaces     = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	terminator = `\n\r\x{2028}\x{2029}`
)

// translate handles the common part of the two languages in which a match is
// the same: literals, classes, groups, alternatives, repetitions, ^, $ and \b.
// It says no wherever that is not certain.
func translate(pattern string, options regexp2.RegexOptions) (t translation, ok bool) {
	fold := options&regexp2.IgnoreCase != 0
	if fold && options&regexp2.Unicode != 0 {
		return t, false
	}
	w := translator{in: pattern, fold: fold, dotAll: options&regexp2.Singleline != 0, multiline: options&regexp2.Multiline != 0}
	if !w.run() {
		return t, false
	}
	tree, err := syntax.Parse(w.out.String(), syntax.Perl)
	if err != nil || !sameLoops(tree) {
		return t, false
	}
	re, err := regexp.Compile(w.out.String())
	if err != nil {
		return t, false
	}
	t = translation{re: re, lines: w.lines, start: w.start}
	for _, text := range required(tree, fold) {
		t.need = append(t.need, NewLiteral(text, !fold))
	}
	t.oneLine = t.need != nil && withinLine(tree)
	return t, true
}

type translator struct {
	in                      string
	fold, dotAll, multiline bool
	out                     strings.Builder
	lines, start            bool
}

// run rewrites the pattern character by character.
func (w *translator) run() bool {
	for i := 0; i < len(w.in); {
		c := w.in[i]
		switch {
		case c >= 0x80:
			return false
		case c == '\\':
			if i+1 == len(w.in) || !w.escape(w.in[i+1]) {
				return false
			}
			i++
		case c == '[':
			n := w.class(w.in[i:])
			if n < 0 {
				return false
			}
			i += n - 1
		case c == '(':
			rest := w.in[i:]
			if strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:") {
				return false
			}
			w.out.WriteByte(c)
		case c == '.':
			if w.dotAll {
				w.out.WriteString(`(?s:.)`)
			} else {
				w.out.WriteString("[^" + terminator + "]")
			}
		case c == '^' || c == '$':
			w.lines, w.start = true, true
			switch {
			case w.multiline && c == '^':
				w.out.WriteString(`(?m:^)`)
			case w.multiline:
				w.out.WriteString(`(?m:$)`)
			case c == '^':
				w.out.WriteString(`\A`)
			default:
				w.out.WriteString(`\z`)
			}
		case c == '{' || c == '}':
			n := repetition(w.in[i:])
			if n < 0 {
				return false
			}
			w.out.WriteString(w.in[i : i+n])
			i += n - 1
		case c == ']':
			return false
		default:
			w.literal(c)
		}
		i++
	}
	return true
}

// literal writes a character that is not special, or one of ?*+|).
func (w *translator) literal(c byte) {
	lower, upper := c|0x20, c&^0x20
	if w.fold && lower >= 'a' && lower <= 'z' {
		w.out.Write([]byte{'[', lower, upper, ']'})
		return
	}
	w.out.WriteByte(c)
}

func (w *translator) escape(c byte) bool {
	switch {
	case c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 't' || c == 'n' || c == 'r' || c == 'f' || c == 'v':
		w.out.WriteByte('\\')
		w.out.WriteByte(c)
	case c == 'b' || c == 'B':
		w.start = true
		w.out.WriteByte('\\')
		w.out.WriteByte(c)
	case c == 's':
		w.out.WriteString("[" + spaces + "]")
	case c == 'S':
		w.out.WriteString("[^" + spaces + "]")
	case strings.IndexByte(`^$\.*+?()[]{}|/-`, c) >= 0:
		w.out.WriteString(regexp.QuoteMeta(string(c)))
	default:
		return false
	}
	return true
}

// class rewrites the class at the beginning of s and returns its length, or -1.
func (w *translator) class(s string) int {
	if w.fold {
		return -1
	}
	w.out.WriteByte('[')
	i := 1
	if i < len(s) && s[i] == '^' {
		w.out.WriteByte('^')
		i++
	}
	for first := i; i < len(s); i++ {
		switch c := s[i]; {
		case c == ']':
			w.out.WriteByte(']')
			if i == first {
				return -1 // the empty class
			}
			return i + 1
		case c >= 0x80 || c == '[' || c == '&' || c == '^':
			return -1
		case c == '\\':
			i++
			if i == len(s) {
				return -1
			}
			switch c := s[i]; {
			case c == 'd' || c == 'w' || c == 't' || c == 'n' || c == 'r' || c == 'f' || c == 'v':
				w.out.WriteByte('\\')
				w.out.WriteByte(c)
			case c == 's':
				w.out.WriteString(spaces)
			case strings.IndexByte(`^$\.*+?()[]{}|/-`, c) >= 0:
				w.out.WriteByte('\\')
				w.out.WriteByte(c)
			default:
				return -1
			}
		default:
			w.out.WriteByte(c)
		}
	}
	return -1
}

// repetition returns the length of {n}, {n,} or {n,m} at the beginning of s.
func repetition(s string) int {
	i := 1
	digits := func() int {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i - from
	}
	if s[0] != '{' || digits() == 0 {
		return -1
	}
	if i < len(s) && s[i] == ',' {
		i++
		digits()
	}
	if i < len(s) && s[i] == '}' {
		return i + 1
	}
	return -1
}

// sameLoops reports whether no repetition is of something that can be empty:
// there the languages differ.
func sameLoops(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		if canBeEmpty(re.Sub[0]) {
			return false
		}
	}
	for _, sub := range re.Sub {
		if !sameLoops(sub) {
			return false
		}
	}
	return true
}

func canBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpPlus, syntax.OpCapture:
		return canBeEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || canBeEmpty(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !canBeEmpty(sub) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if canBeEmpty(sub) {
				return true
			}
		}
		return false
	}
	return true
}

// maxNeeds is how many texts are looked for before the engine is.
const maxNeeds = 8

// required returns texts of at least two bytes of which every match has one, as
// far as is easily seen; where case does not count, in some case. Of several
// such lists it is the one whose shortest text is longest.
func required(re *syntax.Regexp, fold bool) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if text := string(re.Rune); len(text) > 1 && (fold || re.Flags&syntax.FoldCase == 0) {
			return []string{text}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0], fold)
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0], fold)
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			texts := required(sub, fold)
			if all = append(all, texts...); texts == nil || len(all) > maxNeeds {
				return nil
			}
		}
		return all
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if texts := required(sub, fold); shortest(texts) > shortest(best) {
				best = texts
			}
		}
		return best
	}
	return nil
}

// shortest is the length of the shortest of texts, 0 of none.
func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

// withinLine reports whether every match lies within one line, whatever the
// other lines are.
func withinLine(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return !slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return false
			}
		}
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText:
		return false
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !withinLine(sub) })
}
