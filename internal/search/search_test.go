package search

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
)

func file(t testing.TB, name, content string) *os.File {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func expression(t testing.TB, pattern string) *Expression {
	t.Helper()
	e, err := NewExpression(pattern, true)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// patient is expression without limits of time, which are for the fast builds of
// servers and not for the race detector.
func patient(t testing.TB, pattern string) *Expression {
	t.Helper()
	e := expression(t, pattern)
	e.full.MatchTimeout = time.Hour
	return e
}

// inFile searches an open file.
func inFile(ctx context.Context, f *os.File, name string, m Matcher, o Options) (bool, []Line, error) {
	fi, err := f.Stat()
	if err != nil {
		return false, nil, err
	}
	return Content(ctx, f, fi.Size(), name, m, o)
}

// scanAll searches text without a limit of time.
func scanAll(t testing.TB, text string, m Matcher, most int) []Line {
	t.Helper()
	s := scans.Get().(*scan)
	defer s.release()
	s.m, s.o, s.text, s.left = m, Options{Max: most}, strings.NewReader(text), time.Hour
	if err := s.run(t.Context()); err != nil {
		t.Error(err)
	}
	return s.lines
}

// show makes "line:column:text" of lines.
func show(lines []Line) string {
	var parts []string
	for _, l := range lines {
		parts = append(parts, fmt.Sprintf("%d:%d:%s", l.Line, l.Column, l.Text))
	}
	return strings.Join(parts, " ")
}

func utf16Of(s string, order binary.AppendByteOrder) string {
	var b []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func TestFile(t *testing.T) {
	long := strings.Repeat("é", 700) + "needle" + strings.Repeat("ü", 700)
	for _, test := range []struct {
		name, content string
		m             Matcher
		want          string
	}{
		{"literal", "a\nbc needle\nneedle needle\n", NewLiteral("needle", true), "2:4:bc needle 3:1:needle needle"},
		{"case", "NEEDLE\nNeedLe", NewLiteral("needle", false), "1:1:NEEDLE 2:1:NeedLe"},
		{"case counts", "NEEDLE\nneedle", NewLiteral("needle", true), "2:1:needle"},
		{"unicode case", "ÄRGER Straße ΣΊΣΥΦΟΣ", NewLiteral("ärger straße σίσυφοσ", false), "1:1:ÄRGER Straße ΣΊΣΥΦΟΣ"},
		{"lengths of cases", "\u212a\u017fx", NewLiteral("ksx", false), "1:1:\u212a\u017fx"},
		{"columns are characters", "ééé needle", NewLiteral("needle", true), "1:5:ééé needle"},
		{"CRLF", "one\r\nneedle\r\n", NewLiteral("needle", true), "2:1:needle"},
		{"CRLF expression", "one\r\nneedle\r\n", expression(t, "^needle$"), "2:1:needle"},
		{"long line", long, NewLiteral("needle", true), "1:701:…" + strings.Repeat("é", 100) + "needle" + strings.Repeat("ü", 394) + "…"},
		{"mark", "\xef\xbb\xbfneedle", expression(t, "^needle"), "1:1:needle"},
		{"utf-16le", utf16Of("é\n😀 needle", binary.LittleEndian), NewLiteral("NEEDLE", false), "2:3:😀 needle"},
		{"utf-16be", utf16Of("é\nneedle\n", binary.BigEndian), expression(t, `n..dle`), "2:1:needle"},
		{"binary", "needle\x00", NewLiteral("needle", true), ""},
		{"binary by type", "%PDF-1.4\nneedle", NewLiteral("needle", true), ""},
		{"zero far behind", strings.Repeat("x\n", 5000) + "needle\x00", NewLiteral("needle", true), "5001:1:needle\x00"},
		{"latin-1", "caf\xe9 needle", NewLiteral("needle", true), "1:6:caf\uFFFD needle"},
		{"anchors at line ends", "a\nb\na", expression(t, "^a$"), "1:1:a 3:1:a"},
		{"flags", "TODO", expression(t, "/todo/gi"), "1:1:TODO"},
		{"case of expressions", "TODO", expression(t, "todo"), ""},
		{"over line ends", "a\nb\nc\n", expression(t, `a\nb`), "1:1:a"},
		{"dot", "a\nb", expression(t, `a.b`), ""},
		{"dot with s", "a\nb", expression(t, `/a.b/s`), "1:1:a"},
		{"look behind", "xb ab", expression(t, `(?<=a)b`), "1:5:xb ab"},
		{"back reference", "abab", expression(t, `(ab)\1`), "1:1:abab"},
		{"empty file", "", NewLiteral("x", true), ""},
	} {
		found, lines, err := inFile(t.Context(), file(t, "f", test.content), "f", test.m, Options{Max: 100})
		if got := show(lines); err != nil || got != test.want || found != (test.want != "") {
			t.Errorf("%s: %v %q, %v; want %q", test.name, found, got, err, test.want)
		}
		found, lines, err = inFile(t.Context(), file(t, "f", test.content), "f", test.m, Options{})
		if err != nil || lines != nil || found != (test.want != "") {
			t.Errorf("%s: asked only whether: %v, %v, %v", test.name, found, lines, err)
		}
	}
}

func TestContext(t *testing.T) {
	f := file(t, "f", "1\r\n2\r\n3\r\n4\r\n5\r\n")
	for _, test := range []struct {
		find, before, after string
	}{{"1", "", "2 3"}, {"3", "1 2", "4 5"}, {"5", "3 4", ""}} {
		_, lines, err := inFile(t.Context(), f, "f", NewLiteral(test.find, true), Options{Max: 1, Context: 2})
		if err != nil || len(lines) != 1 {
			t.Fatal(lines, err)
		}
		if b, a := strings.Join(lines[0].Before, " "), strings.Join(lines[0].After, " "); b != test.before || a != test.after {
			t.Errorf("%s: before %q, after %q", test.find, b, a)
		}
	}
}

// TestAgainstNaive compares with a reference that holds everything in memory, on
// texts of several windows.
func TestAgainstNaive(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := []string{"alpha", "Beta", "gamma", "NEEDLE", "needle", "né\u017fdle", "\u212aelvin", "kelvin", "x1y22", "a.b"}
	for round := range 3 {
		var b strings.Builder
		for b.Len() < round*longtest.Count(600_000, 900_000)+1000 {
			b.WriteString(words[rnd.IntN(len(words)-5*(rnd.IntN(2)))])
			switch n := rnd.IntN(12 + 400*(round%2)*rnd.IntN(50)); n {
			case 0, 1:
				b.WriteByte('\n')
			case 2:
				b.WriteString("\n\n")
			default:
				b.WriteByte(' ')
			}
		}
		text := b.String()
		for _, test := range []struct {
			name string
			m    Matcher
			ref  string
		}{
			{"exact", NewLiteral("needle", true), `needle`},
			{"folded", NewLiteral("kelvin n", false), `(?i)kelvin n`},
			{"folded unicode", NewLiteral("NÉSDLE", false), `(?i)NÉSDLE`},
			{"expression", patient(t, `x\d+y\d{2} [a-g]+$`), `(?m)x\d+y\d{2} [a-g]+$`},
			{"words", patient(t, `\bBeta\b\s+\bgamma\b`), `\bBeta\b\s+\bgamma\b`},
		} {
			want := naive(text, regexp.MustCompile(test.ref))
			var got []string
			for _, l := range scanAll(t, text, test.m, 1<<30) {
				got = append(got, fmt.Sprintf("%d:%d", l.Line, l.Column))
			}
			if !slices.Equal(got, want) {
				t.Errorf("round %d, %s: %d lines, want %d", round, test.name, len(got), len(want))
			}
		}
	}
}

func naive(text string, re *regexp.Regexp) []string {
	var list []string
	last, line, counted := 0, 1, 0
	for _, at := range re.FindAllStringIndex(text, -1) {
		line += strings.Count(text[counted:at[0]], "\n")
		counted = at[0]
		if line == last {
			continue
		}
		last = line
		begin := strings.LastIndexByte(text[:at[0]], '\n') + 1
		list = append(list, fmt.Sprintf("%d:%d", line, utf8.RuneCountInString(text[begin:at[0]])+1))
	}
	return list
}

// TestWindows: where one window ends and the next begins makes no difference.
func TestWindows(t *testing.T) {
	size := 3 * window
	places := []int{window - margin - 3, window - 3, size - 6, margin - 3, window, 2*window - 2*margin - 3, 2*window - 3}
	for i, at := range places[:longtest.Count(3, len(places))] {
		text := strings.Repeat("x", at) + "Needle" + strings.Repeat("x", size-at-6)
		matchers := []Matcher{NewLiteral("Needle", true), NewLiteral("needle", false), patient(t, "Ne+dle"), patient(t, "(?<=x|^)Needle")}
		if i > 0 {
			matchers = matchers[:longtest.Count(3, 4)] // the last one is slow
		}
		for _, m := range matchers {
			lines := scanAll(t, text, m, 10)
			if len(lines) != 1 || lines[0].Line != 1 || lines[0].Column != at+1 || !strings.Contains(lines[0].Text, "xNeedle") {
				t.Errorf("%T at %d: %v", m, at, show(lines))
			}
		}
	}
	size = longtest.Count(window+2*margin, size)
	for _, test := range []struct{ pattern, unit, want string }{
		{`w$`, "w", fmt.Sprint(size)},
		{`(?<!a)b`, "ab", ""},
		{`(?<!a)b`, "ba", "1"},
	} {
		text := strings.Repeat(test.unit, size/len(test.unit))
		if test.want == "" {
			text = "x" + text
		}
		got := ""
		if lines := scanAll(t, text, patient(t, test.pattern), 1); len(lines) > 0 {
			got = fmt.Sprint(lines[0].Column)
		}
		if got != test.want {
			t.Errorf("%s in %q…: column %q, want %q", test.pattern, text[:4], got, test.want)
		}
	}
}

// TestMatchOverTheLimit: what a match covers is not searched again, though it
// reaches into the part that is left to the next window.
func TestMatchOverTheLimit(t *testing.T) {
	at := window - margin - 1
	text := strings.Repeat("x", at) + "b\nb\nb" + strings.Repeat("x", window)
	for _, m := range []Matcher{NewLiteral("b\nb", true), patient(t, `b\nb`)} {
		if lines := scanAll(t, text, m, 10); len(lines) != 1 {
			t.Errorf("%T: %v", m, show(lines))
		}
	}
}

// TestTranslation: where an expression has a linear form, both engines agree.
func TestTranslation(t *testing.T) {
	texts := []string{"", "aab", "foo\nbar\n", "x = 12; y=345", "TODO: fix_me (now)", "a\u2028b", "tab\there", "été K\u212a", "aXbXc", "\n\n", "aaaa aaaa", "[x]{y}"}
	linear := 0
	for _, p := range []string{"a", "a+b", "(a+)+$", "^foo$", "^", "$", `\bbar\b`, `\B`, `\d+`, `\D+`, `\w+\s*=\s*\d+`, `[a-z]+`, `[^a-z]+`, `[\s\d]+`, `[^\s]+`, `.`, `.*`,
		`.+?`, `/A+/i`, `/todo/i`, `a|aa`, `aa|a`, `(?:a|b)+`, `a{2}`, `a{2,}`, `a{1,3}?`, `a??`, `\.`, `\[x\]`, `\{y\}`, `/a.b/s`, `(a|ab)(c|bcd)?`, `\S+`, `(a*)*`, `(|a)*`, `(?=a)`, `(a)\1`, `[^]`, `[]`,
		`(\w+\s?)*:$`, `/k/i`, `\/`, `a\-b`, `[\]]`, `[-x]`, `[x-]`, `X.?`} {
		e := expression(t, p)
		if e.linear == nil {
			continue
		}
		linear++
		for _, text := range texts {
			if e.lines && hasOtherLineEnds([]byte(text)) {
				continue
			}
			collect := func(each func(yield func(from, to int) bool)) (list [][2]int) {
				each(func(from, to int) bool {
					if from < to { // the languages differ in where empty ones may stand
						list = append(list, [2]int{from, to})
					}
					return true
				})
				return list
			}
			left := time.Minute
			full := collect(func(y func(int, int) bool) {
				e.eachFull(text, 0, &left, func(_ *regexp2.Match, from, to int) bool { return y(from, to) })
			})
			lin := collect(func(y func(int, int) bool) { e.eachLinear([]byte(text), 0, &left, y) })
			if !slices.Equal(full, lin) {
				t.Errorf("%s on %q: %v, linear %v", p, text, full, lin)
			}
		}
	}
	if linear < 30 {
		t.Errorf("only %d expressions have a linear form", linear)
	}
}

func TestNoLinearForm(t *testing.T) {
	for _, p := range []string{`(a*)*`, `(|a)+`, `(?=a)b`, `(?<!a)b`, `(a)\1`, `\u0061`, `[^]`, `é`, `/[a-z]/i`, `\cA`, `(?<n>a)`, `a{,2}`, `]`} {
		if e := expression(t, p); e.linear != nil {
			t.Errorf("%s has a linear form", p)
		}
	}
}

func TestSplit(t *testing.T) {
	for pattern, want := range map[string][2]string{
		"abc": {"abc", ""}, "/abc/": {"abc", ""}, "/abc/gi": {"abc", "gi"}, "/usr/bin": {"/usr/bin", ""}, "/usr/lib/is": {"/usr/lib/is", ""},
		`/a\/b/i`: {`a\/b`, "i"}, "/[/]/m": {"[/]", "m"}, "/": {"/", ""}, "//": {"//", ""}, "a/i": {"a/i", ""},
	} {
		if body, flags := split(pattern); body != want[0] || flags != want[1] {
			t.Errorf("split(%q) = %q, %q", pattern, body, flags)
		}
	}
}

// One that is not given up does not end while anybody waits.
func TestCatastrophicExpressions(t *testing.T) {
	content := strings.Repeat("a", 50) + "b" + strings.Repeat(" word", 30) + "\n"
	f := file(t, "f", content)
	for pattern, want := range map[string]error{
		`(a+)+$`:          nil, // has a linear form
		`(\w+\s?)*:$`:     nil,
		`(?=(a+))(a+)+c$`: ErrGivenUp,
		`(?!x)(a|aa)+$`:   ErrGivenUp,
	} {
		e := expression(t, pattern)
		found, _, err := inFile(t.Context(), f, "f", e, Options{Max: 1})
		if found || (want == nil) != (err == nil) {
			t.Errorf("%s: %v, %v; want %v", pattern, found, err, want)
		}
	}
}

func TestInvalid(t *testing.T) {
	for _, p := range []string{"(", "[", "a**", `x*+`, "(?<n"} {
		if _, err := NewExpression(p, true); err == nil {
			t.Errorf("%s was accepted", p)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := inFile(ctx, file(t, "f", "x"), "f", NewLiteral("x", true), Options{}); err != context.Canceled {
		t.Errorf("err = %v", err)
	}
}
