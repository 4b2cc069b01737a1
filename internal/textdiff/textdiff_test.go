package textdiff_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/internal/textdiff"
)

func diff(t testing.TB, a, b string, o textdiff.Options) textdiff.Diff {
	t.Helper()
	d, err := textdiff.Compare(t.Context(), []byte(a), []byte(b), "a/f", "b/f", o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestUnified(t *testing.T) {
	const noEnd = "\\ No newline at end of file\n"
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for _, c := range []struct {
		what, a, b string
		context    int
		want       string
	}{
		{"equal", ten, ten, 3, ""},
		{"both empty", "", "", 3, ""},
		{"one line", "a\n", "b\n", 3, "@@ -1 +1 @@\n-a\n+b\n"},
		{"from empty", "", "a\nb\n", 3, "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"to empty", "a\n", "", 3, "@@ -1 +0,0 @@\n-a\n"},
		{"in the middle", ten, strings.Replace(ten, "5\n", "five\n", 1), 3, "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"at the beginning", ten, "0\n" + ten, 2, "@@ -1,2 +1,3 @@\n+0\n 1\n 2\n"},
		{"at the end", ten, ten + "11\n", 1, "@@ -10 +10,2 @@\n 10\n+11\n"},
		{"without context", ten, strings.Replace(ten, "5\n", "", 1), 0, "@@ -5 +4,0 @@\n-5\n"},
		{"two hunks", ten, strings.NewReplacer("2\n", "", "9\n", "nine\n").Replace(ten), 2,
			"@@ -1,4 +1,3 @@\n 1\n-2\n 3\n 4\n@@ -7,4 +6,4 @@\n 7\n 8\n-9\n+nine\n 10\n"},
		{"near enough for one", ten, strings.NewReplacer("2\n", "", "9\n", "nine\n").Replace(ten), 3,
			"@@ -1,10 +1,9 @@\n 1\n-2\n 3\n 4\n 5\n 6\n 7\n 8\n-9\n+nine\n 10\n"},
		{"first without an end", "a\nb", "a\nb\n", 3, "@@ -1,2 +1,2 @@\n a\n-b\n" + noEnd + "+b\n"},
		{"second without an end", "a\nb\n", "a\nb", 3, "@@ -1,2 +1,2 @@\n a\n-b\n+b\n" + noEnd},
		{"both without an end", "a\nb", "A\nb", 3, "@@ -1,2 +1,2 @@\n-a\n+A\n b\n" + noEnd},
		{"ends changed", "b", "c", 3, "@@ -1 +1 @@\n-b\n" + noEnd + "+c\n" + noEnd},
		{"CRLF", "a\r\nb\r\n", "a\r\nb\n", 3, "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n"},
		{"an addition is moved down", "x {\n}\ny\nz\n", "x {\n}\nn {\n}\ny\nZ\n", 0, "@@ -2,0 +3,2 @@\n+n {\n+}\n@@ -4 +6 @@\n-z\n+Z\n"},
		{"the last one too", "k\nx {\n}\n", "K\nx {\n}\nx {\n}\n", 0, "@@ -1 +1 @@\n-k\n+K\n@@ -3,0 +4,2 @@\n+x {\n+}\n"},
		{"a removal is moved down", "x {\n}\nx {\n}\ny\nz\n", "x {\n}\ny\nZ\n", 0, "@@ -3,2 +2,0 @@\n-x {\n-}\n@@ -6 +4 @@\n-z\n+Z\n"},
		{"changes that meet are one", "n\nb\nc\ny\n", "N\nb\nb\nC\ny\n", 0, "@@ -1 +1 @@\n-n\n+N\n@@ -3 +3,2 @@\n-c\n+b\n+C\n"},
	} {
		d := diff(t, c.a, c.b, textdiff.Options{Context: c.context})
		want := c.want
		if want != "" {
			want = "--- a/f\n+++ b/f\n" + want
		}
		if d.Text != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, d.Text, want)
		}
		if added, removed := count(d.Text); d.Added != added || d.Removed != removed {
			t.Errorf("%s: +%d -%d, want +%d -%d", c.what, d.Added, d.Removed, added, removed)
		}
		if got := apply(t, c.a, d.Text); got != c.b {
			t.Errorf("%s: applied it gives %q, want %q", c.what, got, c.b)
		}
	}
}

// No change that only adds or removes lines could stand further down.
func TestChangesStandLow(t *testing.T) {
	for seed := range uint64(2000) {
		m := newMaker(seed)
		text := m.text(60, 8)
		a, b := text, m.edit(text, 0.2, 8)
		d := diff(t, strings.Join(a, ""), strings.Join(b, ""), textdiff.Options{})
		for line := range strings.Lines(d.Text) {
			if !strings.HasPrefix(line, "@@ ") {
				continue
			}
			h, side, at := hunk(t, line), 0, []string(nil)
			switch {
			case h[1] == 0:
				side, at = 2, b
			case h[3] == 0:
				at = a
			}
			if first, after := h[side], h[side]+h[side+1]; after < len(at) && at[first] == at[after] {
				t.Fatalf("seed %d: %q could stand a line lower", seed, line)
			}
		}
	}
}

// count returns how many lines a diff adds and removes.
func count(diff string) (added, removed int) {
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	return added, removed
}

// apply is a reader of diffs that forgives nothing.
func apply(t testing.TB, a, diff string) string {
	t.Helper()
	if diff == "" {
		return a
	}
	lines := strings.SplitAfter(diff, "\n")
	if len(lines) < 4 || !strings.HasPrefix(lines[0], "--- ") || !strings.HasPrefix(lines[1], "+++ ") || lines[len(lines)-1] != "" {
		t.Fatalf("no diff: %q", diff)
	}
	lines = lines[2 : len(lines)-1]
	from := strings.SplitAfter(a, "\n")
	if from[len(from)-1] == "" {
		from = from[:len(from)-1]
	}
	at, written := 0, 0
	var b strings.Builder
	for len(lines) > 0 {
		h := hunk(t, lines[0])
		lines = lines[1:]
		for ; at < h[0]; at++ {
			b.WriteString(from[at])
			written++
		}
		if at != h[0] || written != h[2] {
			t.Fatalf("a hunk from %d to %d, applied at %d to %d", h[0], h[2], at, written)
		}
		for h[1] > 0 || h[3] > 0 {
			mark, line := lines[0][0], lines[0][1:]
			lines = lines[1:]
			if len(lines) > 0 && lines[0][0] == '\\' {
				line, lines = strings.TrimSuffix(line, "\n"), lines[1:]
			}
			if mark == ' ' || mark == '-' {
				if from[at] != line {
					t.Fatalf("line %d is %q, the diff has %q", at+1, from[at], line)
				}
				at++
				h[1]--
			}
			if mark == ' ' || mark == '+' {
				b.WriteString(line)
				written++
				h[3]--
			}
		}
		if h[1] < 0 || h[3] < 0 {
			t.Fatal("a hunk holds more lines than it says")
		}
	}
	return b.String() + strings.Join(from[at:], "")
}

// hunk reads the head of a hunk: where it begins in the first text, counted from
// 0, and how many of its lines it holds; then the same of the second.
func hunk(t testing.TB, line string) (h [4]int) {
	t.Helper()
	sides := strings.Fields(line)
	if len(sides) != 4 || sides[0] != "@@" || sides[1][0] != '-' || sides[2][0] != '+' || sides[3] != "@@" {
		t.Fatalf("no hunk: %q", line)
	}
	for i, side := range sides[1:3] {
		first, n, some := strings.Cut(side[1:], ",")
		if !some {
			n = "1"
		}
		for j, s := range []string{first, n} {
			v, err := strconv.Atoi(s)
			if err != nil {
				t.Fatalf("no hunk: %q", line)
			}
			h[2*i+j] = v
		}
		if h[2*i+1] > 0 {
			h[2*i]--
		}
	}
	return h
}

// A maker makes texts from a seed.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 1))} }

// line returns one of few lines where kinds is small.
func (m maker) line(kinds int) string {
	n := m.IntN(kinds)
	return strings.Repeat("\t", n%4) + strings.Repeat("word ", n%5) + strconv.Itoa(n) + "\n"
}

func (m maker) text(lines, kinds int) []string {
	text := make([]string, lines)
	for i := range text {
		text[i] = m.line(kinds)
	}
	return text
}

// edit returns text after changes to about share of its lines.
func (m maker) edit(text []string, share float64, kinds int) []string {
	var out []string
	for _, line := range text {
		if m.Float64() >= share {
			out = append(out, line)
			continue
		}
		switch m.IntN(4) {
		case 0: // removed
		case 1:
			out = append(out, m.line(kinds))
		case 2:
			out = append(out, line, m.line(kinds))
		case 3:
			out = append(out, strings.TrimSuffix(line, "\n")+"\r\n")
		}
	}
	return out
}

// end joins lines, now and then without the last line end.
func (m maker) end(lines []string) string {
	text := strings.Join(lines, "")
	if m.IntN(3) == 0 {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

// pair returns two versions of a text.
func (m maker) pair() (a, b string) {
	kinds := []int{2, 10, 100, 1 << 30}[m.IntN(4)]
	text := m.text(m.IntN([]int{3, 30, 300}[m.IntN(3)]), kinds)
	share := []float64{0.01, 0.1, 0.5, 1}[m.IntN(4)]
	return m.end(text), m.end(m.edit(text, share, kinds))
}

func TestDiffTurnsOneTextIntoTheOther(t *testing.T) {
	for seed := range uint64(3000) {
		m := newMaker(seed)
		a, b := m.pair()
		o := textdiff.Options{Context: m.IntN(5)}
		d := diff(t, a, b, o)
		if got := apply(t, a, d.Text); got != b {
			t.Fatalf("seed %d: the diff of\n%q and\n%q gives\n%q", seed, a, b, got)
		}
		if added, removed := count(d.Text); !strings.Contains(a+b, "--") && (d.Added != added || d.Removed != removed) {
			t.Fatalf("seed %d: +%d -%d, want +%d -%d", seed, d.Added, d.Removed, added, removed)
		}
	}
}

// Another implementation of the search finds no smaller diff.
func TestDiffIsSmallest(t *testing.T) {
	other := diffmatchpatch.New()
	other.DiffTimeout = 0
	for seed := range uint64(500) {
		m := newMaker(seed)
		a, b := m.pair()
		d := diff(t, a, b, textdiff.Options{})
		from, to, _ := other.DiffLinesToRunes(a, b)
		edits := 0
		for _, part := range other.DiffMainRunes(from, to, false) {
			if part.Type != diffmatchpatch.DiffEqual {
				edits += len([]rune(part.Text))
			}
		}
		if d.Added+d.Removed != edits {
			t.Errorf("seed %d: %d lines changed, want %d", seed, d.Added+d.Removed, edits)
		}
	}
}

// tools apply the diff on standard input to the working directory.
func tools() [][]string {
	list := [][]string{{"git", "apply", "--whitespace=nowarn", "-"}}
	if _, err := exec.LookPath("patch"); err == nil {
		list = append(list, []string{"patch", "-p1", "--binary", "--quiet"})
	}
	return list
}

func command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_DIR="+filepath.Join(dir, "none"))
	return cmd
}

func TestToolsApplyIt(t *testing.T) {
	names := []string{"plain.txt", "sub/dir/f.go", "with space.txt", "ünï.txt", `back\slash "quoted"`, "tab\there", "line\nbreak", "-dash", "a => b"}
	for _, tool := range tools() {
		dir := t.TempDir()
		var patch strings.Builder
		want := map[string]string{}
		for seed := range uint64(150) {
			m := newMaker(seed)
			a, b := m.pair()
			name := fmt.Sprintf("%d/%s", seed, names[seed%uint64(len(names))])
			nameA, nameB := "a/"+name, "b/"+name
			switch seed % 10 {
			case 5:
				a, b = "", a
			case 6:
				b = ""
			case 7:
				a, b, nameA = "", b+"x", textdiff.DevNull
			case 8:
				a, b, nameB = a+"x", "", textdiff.DevNull
			}
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if nameA != textdiff.DevNull {
				if err := os.WriteFile(path, []byte(a), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			text, err := textdiff.Unified(t.Context(), []byte(a), []byte(b), nameA, nameB, textdiff.Options{Context: 1 + m.IntN(4)})
			if err != nil {
				t.Fatal(err)
			}
			patch.WriteString(text)
			if want[path] = b; nameB == textdiff.DevNull {
				want[path] = "none"
			}
		}
		cmd := command(t.Context(), dir, tool...)
		cmd.Stdin = strings.NewReader(patch.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", tool, err, out)
		}
		for path, text := range want {
			got, err := os.ReadFile(path)
			switch {
			case text == "none" && !errors.Is(err, os.ErrNotExist):
				t.Errorf("%v: %s is there after its deletion (%v)", tool, path, err)
			case text != "none" && (err != nil || string(got) != text):
				t.Errorf("%v: %s is %q (%v), want %q", tool, path, got, err, text)
			}
		}
	}
}

// Realistic edits of long texts take about as many lines as GNU diff takes.
func TestAsSmallAsDiff(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		lines, kinds int
		share        float64
	}{{20_000, 1 << 30, 0.01}, {20_000, 1 << 30, 0.3}, {40_000, 500, 0.01}, {20_000, 500, 0.3}, {60_000, 5000, 0.1}} {
		m := newMaker(uint64(c.lines + c.kinds))
		text := m.text(c.lines, c.kinds)
		a, b := strings.Join(text, ""), strings.Join(m.edit(text, c.share, c.kinds), "")
		for name, content := range map[string]string{"a": a, "b": b} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := command(t.Context(), dir, "diff", "-u", "a", "b").Output()
		if status, ok := errors.AsType[*exec.ExitError](err); !ok || status.ExitCode() != 1 {
			t.Fatal(err)
		}
		added, removed := count(string(out))
		d := diff(t, a, b, textdiff.Options{Context: 3})
		if got, want := d.Added+d.Removed, added+removed; float64(got) > 1.01*float64(want) {
			t.Errorf("%+v: %d lines changed, diff has %d", c, got, want)
		}
		if apply(t, a, d.Text) != b {
			t.Errorf("%+v: the diff is wrong", c)
		}
	}
}

func TestIgnoreWhitespace(t *testing.T) {
	for _, c := range []struct{ what, a, b, want string }{
		{"indented", "a\nb\n", "\ta\n  b\n", ""},
		{"spaces inside", "f(a, b)\n", "f( a,b )\n", ""},
		{"CRLF", "a\r\nb\r\n", "a\nb\n", ""},
		{"the last line end", "a\nb", "a\nb\n", ""},
		{"a blank line is a line", "a\nb\n", "a\n\t\nb\n", "@@ -1,2 +1,3 @@\n a\n+\t\n b\n"},
		{"nothing but space", "", " ", "@@ -0,0 +1 @@\n+ \n\\ No newline at end of file\n"},
		{"context is that of the first", "if x {\n\ty\n}\n", "if  x {\ny\nz\n}\n", "@@ -1,3 +1,4 @@\n if x {\n \ty\n+z\n }\n"},
	} {
		d := diff(t, c.a, c.b, textdiff.Options{Context: 3, IgnoreWhitespace: true})
		want := c.want
		if want != "" {
			want = "--- a/f\n+++ b/f\n" + want
		}
		if d.Text != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, d.Text, want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"a/plain.go":          "a/plain.go",
		"a/with space":        "a/with space\t",
		"a/日本":                "a/日本",
		"a/\x01\x7f\n\"\\":    `"a/\001\177\n\"\\"`,
		"a/\a\b\t\v\f\r \x1b": "\"a/\\a\\b\\t\\v\\f\\r \\033\"\t",
		"a/caf\xe9":           `"a/caf\351"`,
		"a/\uFFFD":            "a/\uFFFD",
	} {
		text, err := textdiff.Unified(t.Context(), nil, []byte("x\n"), textdiff.DevNull, name, textdiff.Options{})
		if err != nil || text != "--- /dev/null\n+++ "+want+"\n@@ -0,0 +1 @@\n+x\n" {
			t.Errorf("%q: %q, %v", name, text, err)
		}
	}
}

// Texts of many lines, of millions where tests are long, are compared whatever
// they hold.
func TestManyLines(t *testing.T) {
	lines := longtest.Count(150_000, 1_200_000)
	numbers := func(step, offset int) []byte {
		var b []byte
		for i := range lines {
			b = append(strconv.AppendInt(b, int64(i*step+offset), 36), '\n')
		}
		return b
	}
	m := newMaker(1)
	few := func() []byte {
		b := make([]byte, 2*lines)
		for i := range b {
			b[i] = '\n'
			if i%2 == 0 {
				b[i] = 'a' + byte(m.IntN(4))
			}
		}
		return b
	}
	same := bytes.Repeat([]byte("x\n"), lines)
	moved := append([]byte("y\n"), append(same[:lines:lines], "z\ny\n"...)...)
	reversed := numbers(-1, lines)
	for _, c := range []struct {
		what           string
		a, b           []byte
		added, removed int // -1: any number
	}{
		{"all different", numbers(2, 0), numbers(2, 1), lines, lines},
		{"distinct, half of them common", numbers(1, 0), numbers(2, 0), lines / 2, lines / 2},
		{"shifted", numbers(1, 0), numbers(1, lines/2), lines / 2, lines / 2},
		{"turned round", numbers(1, 1), reversed, -1, -1},
		{"all the same", same, same[:lines], 0, lines / 2},
		{"all the same between others", append([]byte("z\ny\n"), same...), moved, -1, -1},
		{"random", few(), few(), -1, -1},
	} {
		o := textdiff.Options{Timeout: time.Hour}
		if c.added < 0 {
			o.Timeout = time.Second
		}
		d, err := textdiff.Compare(t.Context(), c.a, c.b, "a", "b", o)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if c.added >= 0 && (d.Added != c.added || d.Removed != c.removed) {
			t.Errorf("%s: +%d -%d, want +%d -%d", c.what, d.Added, d.Removed, c.added, c.removed)
		}
		if apply(t, string(c.a), d.Text) != string(c.b) {
			t.Errorf("%s: the diff is wrong", c.what)
		}
	}
}

// What is found when the time is up is valid, and better than nothing.
func TestTimeout(t *testing.T) {
	m := newMaker(7)
	a, b := strings.Join(m.text(50_000, 20), ""), strings.Join(m.text(50_000, 20), "")
	d := diff(t, a, b, textdiff.Options{Timeout: time.Nanosecond})
	if apply(t, a, d.Text) != b {
		t.Error("the diff is wrong")
	}
	if d.Removed == 50_000 || d.Removed < 5_000 {
		t.Errorf("%d of 50000 lines are removed", d.Removed)
	}
}

// asked is cancelled while it is asked for its error for the 100th time, in the
// midst of the search; it counts how often that is known and asked again.
type asked struct {
	context.Context
	cancel       func()
	times, after int
}

func (a *asked) Err() error {
	if a.Context.Err() != nil {
		a.after++
	}
	if a.times++; a.times == 100 {
		a.cancel()
	}
	return a.Context.Err()
}

func TestCancel(t *testing.T) {
	inner, cancel := context.WithCancel(t.Context())
	ctx := &asked{Context: inner, cancel: cancel}
	m := newMaker(7)
	a, b := strings.Join(m.text(100_000, 20), ""), strings.Join(m.text(100_000, 20), "")
	_, err := textdiff.Compare(ctx, []byte(a), []byte(b), "a", "b", textdiff.Options{Timeout: time.Hour})
	if !errors.Is(err, context.Canceled) || ctx.after > 1 {
		t.Errorf("%v, after it was asked %d times more", err, ctx.after)
	}
	if _, err := textdiff.Compare(ctx, nil, nil, "a", "b", textdiff.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("texts that are equal: %v", err)
	}
	if _, err := textdiff.Compare(ctx, nil, []byte("a"), "a", "b", textdiff.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("short texts: %v", err)
	}
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nc"), 3)
	f.Add([]byte("\r\n \n\n"), []byte("\n\n"), 0)
	f.Add([]byte("{\n}\n{\n}\n"), []byte("{\n{\n}\n}\n"), 1)
	f.Fuzz(func(t *testing.T, a, b []byte, n int) {
		o := textdiff.Options{Context: n & 7}
		d := diff(t, string(a), string(b), o)
		if got := apply(t, string(a), d.Text); got != string(b) {
			t.Errorf("the diff gives %q", got)
		}
		o.IgnoreWhitespace = true
		if w := diff(t, string(a), string(b), o); w.Added+w.Removed > d.Added+d.Removed {
			t.Errorf("%d lines changed without white space, %d with it", w.Added+w.Removed, d.Added+d.Removed)
		}
	})
}

func BenchmarkDiff(b *testing.B) {
	for _, c := range []struct {
		what         string
		lines, kinds int
		share        float64
	}{
		{"1MB/1%/distinct", 43_000, 1 << 30, 0.01},
		{"1MB/30%/distinct", 43_000, 1 << 30, 0.3},
		{"1MB/1%/repetitive", 66_000, 500, 0.01},
		{"1MB/30%/repetitive", 66_000, 500, 0.3},
		{"10MB/1%/distinct", 430_000, 1 << 30, 0.01},
		{"10MB/1%/repetitive", 660_000, 500, 0.01},
		{"10MB/30%/repetitive", 660_000, 500, 0.3},
	} {
		m := newMaker(1)
		text := m.text(c.lines, c.kinds)
		from, to := []byte(strings.Join(text, "")), []byte(strings.Join(m.edit(text, c.share, c.kinds), ""))
		b.Run(c.what, func(b *testing.B) {
			b.SetBytes(int64(len(from)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := textdiff.Compare(b.Context(), from, to, "a", "b", textdiff.Options{Context: 3}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
