package textedit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

type E = textedit.Edit

// edited is the text after edits.
func edited(t testing.TB, text string, m textedit.Matching, edits ...E) (string, textedit.Plan, error) {
	t.Helper()
	d := parse(t, []byte(text), "")
	p, err := d.Plan(t.Context(), edits, m)
	if err != nil {
		return "", p, err
	}
	out, err := d.Apply(p.Splices)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), p, nil
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		what, text string
		edits      []E
		want       string
	}{
		{"a word", "one two three", []E{{Old: "two", New: "2"}}, "one 2 three"},
		{"deleted", "one two three", []E{{Old: " two"}}, "one three"},
		{"several lines", "a\nb\nc\n", []E{{Old: "a\nb", New: "A\nB"}}, "A\nB\nc\n"},
		{"LF finds CRLF", "a\r\nb\r\nc\r\n", []E{{Old: "a\nb\n", New: "A\nB\n"}}, "A\r\nB\r\nc\r\n"},
		{"CRLF finds LF", "a\nb\nc\n", []E{{Old: "a\r\nb", New: "A\r\nB\r\nC"}}, "A\nB\nC\nc\n"},
		{"each line keeps its end", "a\r\nb\nc\r\nd\n", []E{{Old: "a\nb\nc\nd", New: "A\nb\nC\nd"}}, "A\r\nb\nC\r\nd\n"},
		{"lines that stay keep theirs when others go", "a\r\nb\nc\r\nd\n", []E{{Old: "a\nb\nc\nd", New: "x\nb\nd"}}, "x\r\nb\nd\n"},
		{"also where they move", "a\r\nb\r\nc\nd\r\ne", []E{{Old: "a\nb\nc\nd\ne", New: "x\nc\ny"}}, "x\r\nc\ny"},
		{"more lines get the end of those they replace", "a\r\nb\r\nc\n", []E{{Old: "b", New: "1\n2\n3"}}, "a\r\n1\r\n2\r\n3\r\nc\n"},
		{"the neighbour's end in the last line", "a\r\nb", []E{{Old: "b", New: "1\n2"}}, "a\r\n1\r\n2"},
		{"a line end before and after", "a\r\nb\r\n", []E{{Old: "\nb\n", New: "\nB\n"}}, "a\r\nB\r\n"},
		{"line ends alone", "a\r\n\r\n\r\nb\n", []E{{Old: "\n\n\n", New: "\n"}}, "a\r\nb\n"},
		{"the end of a file without its line end", "a\nb", []E{{Old: "b\n", New: "c\n"}}, "a\nc"},
		{"the same, more lines", "a\r\nb\r\nc", []E{{Old: "b\nc\n", New: "x\ny\nz\n"}}, "a\r\nx\r\ny\r\nz"},
		{"that begins with a line end", "a\r\nb", []E{{Old: "\nb\n", New: "\nc\n"}}, "a\r\nc"},
		{"an occurrence", "x x x", []E{{Old: "x", New: "y", Occurrence: 2}}, "x y x"},
		{"the last but one", "x x x", []E{{Old: "x", New: "y", Occurrence: -2}}, "x y x"},
		{"all of them", "x x x", []E{{Old: "x", New: "yy", Expect: 3}}, "yy yy yy"},
		{"one of as many as expected", "x x x", []E{{Old: "x", New: "y", Expect: 3, Occurrence: 3}}, "x x y"},
		{"matches do not overlap", "aaa", []E{{Old: "aa", New: "b"}}, "ba"},
		{"a dollar sign is one", "price", []E{{Old: "price", New: "$1 $& $$"}}, "$1 $& $$"},
		{"on the numbering before the call", "1\n2\n3\n4\n", []E{{First: 4, New: "four"}, {First: 1, Last: 2}, {At: 3, New: "new"}}, "new\n3\nfour\n"},
		{"lines", "1\r\n2\r\n3\r\n", []E{{First: 2, Last: 3, New: "a\nb\nc"}}, "1\r\na\r\nb\r\nc\r\n"},
		{"lines, with a line end at the end", "1\n2\n3\n", []E{{First: 2, New: "a\n"}}, "1\na\n3\n"},
		{"the last line", "1\n2\n3", []E{{First: -1, New: "a"}}, "1\n2\na"},
		{"the last line gets an end", "1\n2", []E{{First: -1, New: "a\n"}}, "1\na\n"},
		{"the last line goes", "1\n2\n3", []E{{First: -1}}, "1\n2\n"},
		{"everything goes", "1\n2\n3", []E{{First: 1, Last: -1}}, ""},
		{"an empty line in place of one", "1\n2\n3\n", []E{{First: 2, New: "\n"}}, "1\n\n3\n"},
		{"in front", "1\r\n2\n", []E{{At: 1, New: "a\nb"}}, "a\r\nb\r\n1\r\n2\n"},
		{"after", "1\n2\r\n", []E{{At: 2, After: true, New: "a"}}, "1\n2\r\na\r\n"},
		{"after, by the line before", "1\r\n2\n", []E{{At: 1, After: true, New: "a"}}, "1\r\na\r\n2\n"},
		{"at the end", "1\n2\n", []E{{At: 3, New: "a"}}, "1\n2\na\n"},
		{"at the end without a line end", "1\r\n2", []E{{At: -1, After: true, New: "a"}}, "1\r\n2\r\na"},
		{"at the end, with one from now on", "1\n2", []E{{At: 3, New: "a\n"}}, "1\n2\na\n"},
		{"twice at the end", "1", []E{{At: 1, After: true, New: "a"}, {At: 2, New: "b"}}, "1\na\nb"},
		{"at the end of what is replaced", "1\n2", []E{{At: -1, After: true, New: "a"}, {First: 2, New: "x\n"}}, "1\nx\na"},
		{"at the end of what is deleted", "1\n2", []E{{At: -1, After: true, New: "a"}, {First: 2}}, "1\na"},
		{"into nothing", "", []E{{At: 1, New: "a"}}, "a\n"},
		{"beside an edit", "1\n2\n3\n", []E{{First: 2, New: "x"}, {At: 3, New: "b"}, {At: 2, New: "a"}}, "1\na\nx\nb\n3\n"},
		{"an old Macintosh's line ends are characters", "a\rb\rc", []E{{Old: "b", New: "x\ny"}}, "a\rx\ny\rc"},
	} {
		got, p, err := edited(t, c.text, textedit.Auto, c.edits...)
		if err != nil || got != c.want || len(p.Loose) > 0 {
			t.Errorf("%s: %q, %v, %v; want %q", c.what, got, p.Loose, err, c.want)
		}
	}
}

func TestWhitespace(t *testing.T) {
	for _, c := range []struct {
		what, text, old, new string
		m                    textedit.Matching
		want                 string
	}{
		{"less indented", "func f() {\n\tif a {\n\t\tb()\n\t}\n}\n", "if a {\n    b()\n}", "if a {\n    b()\n    c()\n    if d {\n        e()\n    }\n}", textedit.Auto,
			"func f() {\n\tif a {\n\t\tb()\n\t\tc()\n\t\tif d {\n\t\t\te()\n\t\t}\n\t}\n}\n"},
		{"two spaces for four", "class A:\n    def f(self):\n        return 1\n", "  def f(self):\n    return 1\n", "  def f(self):\n    if x:\n      return 2\n    return 1\n", textedit.Auto,
			"class A:\n    def f(self):\n        if x:\n            return 2\n        return 1\n"},
		{"tabs for spaces", "a:\n  b:\n    c\n", "\tb:\n\t\tc", "\tb:\n\t\tc\n\t\t\td", textedit.Auto, "a:\n  b:\n    c\n      d\n"},
		{"one level alone", "if x {\n\tfoo()\n\tbar()\n}\n", "    foo()\n    bar()", "    foo()\n    if y {\n        baz()\n    }\n    bar()", textedit.Auto,
			"if x {\n\tfoo()\n\tif y {\n\t\tbaz()\n\t}\n\tbar()\n}\n"},
		{"outdented", "\tif x {\n\t\tfoo()\n\t\tbar()\n\t}\n", "    foo()\n    bar()\n", "    foo()\n}\nbar()\n", textedit.Auto, "\tif x {\n\t\tfoo()\n\t}\n\tbar()\n\t}\n"},
		{"white space at line ends stays where lines stay", "a  \nb\t\nc\n", "a\nb", "a\nx\nb", textedit.Auto, "a  \nx\nb\t\nc\n"},
		{"and in files of Windows", "  a \r\n  b\r\nc", "a\nb", "a\nx\nb", textedit.Auto, "  a \r\n  x\r\n  b\r\nc"},
		{"empty lines agree whatever is in them", "x\n  a\n   \n  b\n", "a\n\nb", "a\n\nc", textedit.Auto, "x\n  a\n   \n  c\n"},
		{"deleted with its line end", "x\n  a\n  b\ny\n", "a\nb\n", "", textedit.Auto, "x\ny\n"},
		{"a line end goes, too", "x\n  a\n  b\ny\n", "a\nb\n", "c", textedit.Auto, "x\n  cy\n"},
		{"deleted without it", "x\n  a\n  b\ny\n", "a\nb", "", textedit.Auto, "x\n\ny\n"},
		{"one line where that is asked for", "x\n\tfoo( a )\ny\n", "  foo( a )", "  bar()", textedit.Whitespace, "x\n\tbar()\ny\n"},
		{"the end of a file without its line end", "x\n  a\n  b", "a\nb\n", "a\nc\n", textedit.Auto, "x\n  a\n  c"},
		{"the file's step from the lines around", "if x:\n  foo()\n  bar()\n", "    foo()\n    bar()", "    foo()\n    if y:\n        baz()\n    bar()", textedit.Auto,
			"if x:\n  foo()\n  if y:\n    baz()\n  bar()\n"},
		{"the file's own step of three", "{\n   odd()\n   even()\n}\n", "odd()\neven()", "odd()\n  more()\neven()", textedit.Auto, "{\n   odd()\n      more()\n   even()\n}\n"},
	} {
		got, p, err := edited(t, c.text, c.m, E{Old: c.old, New: c.new})
		if err != nil || got != c.want || !slices.Equal(p.Loose, []int{0}) {
			t.Errorf("%s:\n%q, %v, %v; want\n%q", c.what, got, p.Loose, err, c.want)
		}
	}
}

// Many texts are looked for in one pass, with the same outcome.
func TestManyEdits(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		var text, want strings.Builder
		var edits []E
		var loose []int
		for i := range 400 {
			name := fmt.Sprintf("name%05d", i*7)
			fmt.Fprintf(&text, "  the %s stands here%s\tand the same words follow on each%s", name, end, end)
			switch {
			case i%4 == 1:
				edits = append(edits, E{Old: "the " + name, New: "THE " + name})
				fmt.Fprintf(&want, "  THE %s stands here%s\tand the same words follow on each%s", name, end, end)
			case i%4 == 2:
				edits = append(edits, E{Old: "the " + name + " stands here\n\tand the same", New: "one\n\tthe same"})
				fmt.Fprintf(&want, "  one%s\tthe same words follow on each%s", end, end)
			case i%4 == 3:
				loose = append(loose, len(edits))
				edits = append(edits, E{Old: "the " + name + " stands here\n  and the same words follow on each\n", New: ""})
			default:
				fmt.Fprintf(&want, "  the %s stands here%s\tand the same words follow on each%s", name, end, end)
			}
		}
		edits = append(edits, E{Old: "e", New: "e", Occurrence: 1}, E{Old: "words follow", New: "words follow", Occurrence: 1})
		got, p, err := edited(t, text.String(), textedit.Auto, edits...)
		if err != nil || got != want.String() || !slices.Equal(p.Loose, loose) {
			t.Errorf("%q: %v; %d of %d found loosely; the text differs: %t", end, err, len(p.Loose), len(loose), got != want.String())
		}
	}
	// A key that is everywhere is looked for by itself.
	text := strings.Repeat("abcdefgh ijkl\n", 5000) + "abcdefgh wxyz\n"
	edits := []E{{Old: "abcdefgh wxyz", New: "x"}}
	for i := range 10 {
		edits = append(edits, E{Old: "abcdefgh ijkl", New: "y", Expect: 5000, Occurrence: i + 1})
	}
	got, _, err := edited(t, text, textedit.Auto, edits...)
	if want := strings.Repeat("y\n", 10) + strings.Repeat("abcdefgh ijkl\n", 4990) + "x\n"; err != nil || got != want {
		t.Errorf("%v; %.100q", err, got)
	}
}

var words = textedit.Vocabulary{Edit: func(i int) string { return fmt.Sprintf("edits[%d]", i) }, Old: "old_text", At: "insert_at_line"}

func TestPlanRefuses(t *testing.T) {
	lines := strings.Repeat("x\n", 20)
	for _, c := range []struct {
		what, text string
		m          textedit.Matching
		edits      []E
		say        string
	}{
		{"behind the end", "a\n", 0, []E{{First: 2, New: "x"}}, "edits[0].start_line is 2, but the lines of the file end at 1"},
		{"in front of the beginning", "a\n", 0, []E{{First: -2, New: "x"}}, "start_line is -2"},
		{"far behind the end", "a\n", 0, []E{{At: 3, New: "x"}}, "insert_at_line is 3"},
		{"backwards", "a\nb\n", 0, []E{{First: 2, Last: 1}}, "start_line 2 lies after end_line 1"},
		{"twice", "x\ny\nx\n", 0, []E{{Old: "x"}}, "stands in the file 2 times, at lines 1, 3; include more of the text around it, or name one by occurrence (1 to 2), or replace all with expect_count 2"},
		{"often", lines, 0, []E{{Old: "x"}}, "20 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 10 more;"},
		{"more often than expected", lines, 0, []E{{Old: "x", Expect: 2}}, "was expected 2 times, but stands in the file 20 times"},
		{"less often than expected", "x", 0, []E{{Old: "x", Expect: 2}}, "was expected 2 times, but stands in the file once, at line 1"},
		{"no such occurrence", "x\nx", 0, []E{{Old: "x", Occurrence: 3}}, "occurrence is 3, but old_text stands in the file 2 times, at lines 1, 2"},
		{"no such occurrence from the end", "x\nx", 0, []E{{Old: "x", Occurrence: -3}}, "occurrence is -3"},
		{"twice with other white space", "\ta\n\tb\n a\n b\n", 0, []E{{Old: "a\nb", New: "x"}}, "2 times, at lines 1, 3"},
		{"white space where it counts", "\ta\n\tb\n", textedit.Exact, []E{{Old: "a\nb", New: "x"}}, "edits[0].old_text is not in the file. Most like it, with [-what only old_text has-] and {+what only the file has+}:\nlines 1-2, 60 % alike, and only in white space not:"},
		{"one line with other white space", "\ta  b\n", 0, []E{{Old: "a b"}}, "not in the file. Most like it"},
		{"a line end more than the file has", "a\n", 0, []E{{Old: "a\n\n"}}, "not in the file"},
		{"nothing like it", "abc\n", 0, []E{{Old: "wxyz"}}, "Nothing in it is like that"},
		{"overlap", "1\n2\n3\n4\n", 0, []E{{First: 3, Last: 4, New: "x"}, {First: 1, Last: 3, New: "y"}}, "edits[0] (lines 3-4) and edits[1] (lines 1-3) overlap"},
		{"insertion inside", "1\n2\n3\n", 0, []E{{At: 2, New: "x"}, {First: 1, Last: 2, New: "y"}}, "edits[0] (line 2) and edits[1] (lines 1-2) overlap"},
		{"texts that overlap", "abc", 0, []E{{Old: "ab"}, {Old: "bc"}}, "edits[0] (line 1) and edits[1] (line 1) overlap"},
		{"others fail too", "abc", 0, []E{{Old: "abc", New: "x"}, {Old: "klm"}, {Old: "c", New: "x"}, {Old: "opq"}}, "The same call fails for edits[3] too."},
		{"not UTF-8", "caf\xe9\n", 0, []E{{Old: "café"}}, "name its charset"},
	} {
		_, _, err := edited(t, c.text, c.m, c.edits...)
		code, message := fault.Of(words.Word(err))
		if code != fault.InvalidParameter || !strings.Contains(message, c.say) {
			t.Errorf("%s: %s %q, want one that says %q", c.what, code, message, c.say)
		}
	}
}

func TestMissesShowWhatIsThere(t *testing.T) {
	text := "func add(a, b int) int {\n\treturn a + b\n}\n\nfunc sub(a, b int) int {\n\treturn a - b\n}\n\nfunc mul(a, b int) int {\n\treturn a * b\n}\n"
	for _, c := range []struct {
		what, old string
		says      []string
	}{
		{"a part of a line", "add(a, b int64)", []string{"line 1, 86 % alike: add(a, b int[-64)-]{+) int {+}"}},
		{"several lines", "func sub(x, y int) int {\n\treturn x - y\n}", []string{"lines 5-7, ", "\n  line 5: func sub([-x-]{+a+}, [-y-]{+b+} int) int {", "\n  line 6: \\treturn [-x-]{+a+} - [-y-]{+b+}"}},
		{"in order of likeness", "\treturn a  *  b", []string{"line 10, 85 % alike, and only in white space not: \\treturn a [- * -]{+*+} b", "line 2, "}},
	} {
		_, _, err := edited(t, text, textedit.Exact, E{Old: c.old})
		_, message := fault.Of(words.Word(err))
		for _, say := range c.says {
			if !strings.Contains(message, say) {
				t.Errorf("%s: it does not say %q:\n%s", c.what, say, message)
			}
		}
		if len(message) > 1536 {
			t.Errorf("%s: %d bytes", c.what, len(message))
		}
	}
	long := strings.Repeat("abcdefghij klmnop\tqrst日本\r\n", 400)
	_, _, err := edited(t, long, textedit.Exact, E{Old: strings.Repeat("abcdefghij KLMNOP\tqrst日本\n", 200)})
	if _, message := fault.Of(words.Word(err)); len(message) > 1536 || !strings.Contains(message, "[-KLMNOP-]{+klmnop+}") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

// Callers say a reason with their own names.
func TestReasonsInOtherWords(t *testing.T) {
	words := textedit.Vocabulary{Edit: func(i int) string { return fmt.Sprintf("blocks[%d]", i) }, Old: "search", At: "start_line"}
	for _, c := range []struct {
		edits  []E
		reason textedit.Reason
		say    string
	}{
		{[]E{{Old: "a lime of text"}}, &textedit.Miss{}, "blocks[0].search is not in the file. Most like it, with [-what only search has-] and"},
		{[]E{{Old: "text", New: "x"}, {Old: "a", Occurrence: 3}}, &textedit.Count{}, "blocks[1].occurrence is 3, but search stands in the file 2 times, at lines 1, 2"},
		{[]E{{At: 9, New: "x"}}, &textedit.NoLine{}, "blocks[0].start_line is 9, but the lines of the file end at 2"},
		{[]E{{First: 2, Last: 1}}, &textedit.Backwards{}, "blocks[0]: start_line 2 lies after"},
		{[]E{{First: 1, Last: 2}, {First: 2}}, &textedit.Overlap{}, "blocks[0] (lines 1-2) and blocks[1] (line 2) overlap"},
		{[]E{{Old: "xyz"}, {Old: "uvw"}}, &textedit.Several{}, "The same call fails for blocks[1] too."},
	} {
		_, _, err := edited(t, "a line of text\na\n", textedit.Exact, c.edits...)
		if got, want := fmt.Sprintf("%T", err), fmt.Sprintf("%T", c.reason); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		code, message := fault.Of(words.Word(err))
		if code != fault.InvalidParameter || !strings.Contains(message, c.say) {
			t.Errorf("%s %q, want one that says %q", code, message, c.say)
		}
	}
	if err := words.Word(context.Canceled); err != context.Canceled {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := parse(t, []byte("a"), "").Plan(ctx, []E{{Old: "a"}}, 0); err != context.Canceled {
		t.Errorf("%v, want that of the context", err)
	}
}

// An image is a text with LF and the ends of its lines, "" for any.
type image struct {
	text string
	ends []string
}

func imageOf(text string) image {
	var m image
	for line := range strings.Lines(text) {
		bare, ended := strings.CutSuffix(line, "\n")
		end := "\n"
		if ended && strings.HasSuffix(bare, "\r") {
			bare, end = bare[:len(bare)-1], "\r\n"
		}
		m.text += bare
		if ended {
			m.text += "\n"
			m.ends = append(m.ends, end)
		}
	}
	return m
}

func (m image) splice(from, to int, text string) image {
	before, gone := strings.Count(m.text[:from], "\n"), strings.Count(m.text[from:to], "\n")
	ends := slices.Clone(m.ends[:before])
	ends = append(ends, make([]string, strings.Count(text, "\n"))...)
	return image{m.text[:from] + text + m.text[to:], append(ends, m.ends[before+gone:]...)}
}

// TestAgainstNaive compares with edits made one by one, from the bottom to the
// top, on a text with LF alone: the result is that text, and each line end
// outside of the edits is what it was.
func TestAgainstNaive(t *testing.T) {
	words := []string{"a", "b", "foo(", "  ", "é", "日", "\t", "}", "x y", ""}
	for seed := range uint64(6000) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		phrase := func(n int) string {
			var b strings.Builder
			for range 1 + rnd.IntN(n) {
				b.WriteString(words[rnd.IntN(len(words))])
				if rnd.IntN(3) == 0 {
					b.WriteByte('\n')
				}
			}
			return b.String()
		}
		style := rnd.IntN(3)
		ending := func() string { return []string{"\n", "\r\n", []string{"\n", "\r\n"}[rnd.IntN(2)]}[style] }
		var b strings.Builder
		for i := range rnd.IntN(12) {
			fmt.Fprintf(&b, "%d%s%s", i, strings.ReplaceAll(phrase(3), "\n", ""), ending())
		}
		if rnd.IntN(2) == 0 {
			b.WriteString("last")
		}
		file := b.String()
		m := imageOf(file)
		lines := strings.SplitAfter(m.text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		start := func(n int) int { return len(strings.Join(lines[:n-1], "")) }
		type cut struct {
			from, to int
			text     string
		}
		var edits []E
		var cuts []cut
		for range 1 + rnd.IntN(4) {
			var e E
			var c cut
			switch rnd.IntN(3) {
			case 0:
				if len(m.text) == 0 {
					continue
				}
				from := rnd.IntN(len(m.text))
				to := from + 1 + rnd.IntN(min(40, len(m.text)-from))
				old := m.text[from:to]
				if strings.Index(m.text, old) != strings.LastIndex(m.text, old) || !strings.HasPrefix(strings.ToValidUTF8(old, ""), old) {
					continue
				}
				e = E{Old: old, New: phrase(5)}
				c = cut{from, to, e.New}
			case 1:
				if len(lines) == 0 {
					continue
				}
				e = E{First: 1 + rnd.IntN(len(lines))}
				e.Last = e.First + rnd.IntN(len(lines)-e.First+1)
				if rnd.IntN(4) > 0 {
					e.New = phrase(5)
				}
				c = cut{start(e.First), start(e.Last + 1), e.New}
				if e.New != "" && !strings.HasSuffix(e.New, "\n") && strings.HasSuffix(lines[e.Last-1], "\n") {
					c.text += "\n"
				}
				if rnd.IntN(2) == 0 {
					e.First -= len(lines) + 1
				}
			default:
				e = E{At: 1 + rnd.IntN(len(lines)+1), New: phrase(5), After: rnd.IntN(2) == 0}
				if e.New == "" {
					continue
				}
				n := e.At
				if e.After && n <= len(lines) {
					n++
				}
				c = cut{start(n), start(n), e.New}
				switch {
				case n == len(lines)+1 && m.text != "" && !strings.HasSuffix(m.text, "\n"):
					c.text = "\n" + c.text
				case !strings.HasSuffix(c.text, "\n"):
					c.text += "\n"
				}
			}
			if !slices.ContainsFunc(cuts, func(o cut) bool { return c.from <= o.to && o.from <= c.to }) {
				edits, cuts = append(edits, e), append(cuts, c)
			}
		}
		if len(edits) == 0 {
			continue
		}
		got, _, err := edited(t, file, textedit.Exact, edits...)
		slices.SortFunc(cuts, func(a, b cut) int { return b.from - a.from })
		want := m
		for _, c := range cuts {
			want = want.splice(c.from, c.to, c.text)
		}
		have := imageOf(got)
		if err != nil || have.text != want.text {
			t.Fatalf("seed %d: %+v on %q gives\n%q, %v; want\n%q", seed, edits, file, have.text, err, want.text)
		}
		for i, end := range want.ends {
			if end != "" && have.ends[i] != end || style == 1 && have.ends[i] != "\r\n" && len(m.ends) > 0 || style == 0 && have.ends[i] != "\n" {
				t.Fatalf("seed %d: %+v on %q gives %q: line %d ends in %q, want %q", seed, edits, file, got, i+1, have.ends[i], end)
			}
		}
	}
}
