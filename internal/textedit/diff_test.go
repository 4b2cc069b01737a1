package textedit_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/textdiff"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
)

func lines(s string) (n int) {
	for range strings.Lines(s) {
		n++
	}
	return n
}

// TestDiffsApply has git apply turn old files into new ones by their diffs.
func TestDiffsApply(t *testing.T) {
	dir := t.TempDir()
	var patch strings.Builder
	want := map[string]string{}
	words := []string{"one", "two", "", "\tx", "@@ -1 +1 @@", "--- a", "é", "}"}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		var b strings.Builder
		if rnd.IntN(4) == 0 {
			b.WriteString("\ufeff")
		}
		for range rnd.IntN(120) {
			b.WriteString(words[rnd.IntN(len(words))] + []string{"\n", "\n", "\r\n"}[rnd.IntN(3)])
		}
		if rnd.IntN(3) == 0 {
			b.WriteString("end\xff")
		}
		file := b.String()
		d := parse(t, []byte(file), "")
		text := d.Text()
		var s []textedit.Splice
		for at := rnd.IntN(30); at < len(text) && len(s) < 9; at += rnd.IntN(200) {
			to := min(len(text), at+rnd.IntN(40))
			var put strings.Builder
			for range rnd.IntN(4) {
				put.WriteString(words[rnd.IntN(len(words))])
				if rnd.IntN(2) == 0 {
					put.WriteByte('\n')
				}
			}
			s = append(s, textedit.Splice{From: at, To: to, New: put.String()})
			at = to
		}
		// Splices may divide characters here; diffs are of lines, so only these count.
		out, err := d.Apply(s)
		if err != nil {
			if strings.Contains(err.Error(), "not UTF-8") {
				continue
			}
			t.Fatal(err)
		}
		name := fmt.Sprintf("f%d.txt", seed)
		diff, err := d.Diff(t.Context(), s, "a/"+name, "b/"+name, 3)
		if err != nil {
			t.Fatal(err)
		}
		if (diff.Text == "") != (string(out) == file) {
			t.Fatalf("seed %d: the diff is %q", seed, diff.Text)
		}
		if more := lines(string(out)) - lines(file); diff.Added-diff.Removed != more {
			t.Errorf("seed %d: %d lines more, but +%d -%d", seed, more, diff.Added, diff.Removed)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		patch.WriteString(diff.Text)
		want[name] = string(out)
	}
	cmd := exec.Command("git", "apply", "-p1", "--whitespace=nowarn", "-")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(patch.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%.2000s", err, out)
	}
	for name, content := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != content {
			t.Errorf("%s is %q, %v; want %q", name, got, err, content)
		}
	}
	if len(want) < 200 {
		t.Errorf("only %d files", len(want))
	}
}

// Far from each other, changes make the hunks that a diff of the whole has.
func TestDiffsAreThoseOfTheWhole(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	d := parse(t, []byte(b.String()), "")
	var s []textedit.Splice
	for n := 5; n < 2000; n += 5 + n/3 {
		s = append(s, textedit.Splice{From: d.Start(n), To: d.Start(n + n%3), New: strings.Repeat("new\n", n%4)})
	}
	for around := range 5 {
		got, err := d.Diff(t.Context(), s, "a/x", "b/x", around)
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.Apply(s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := textdiff.Compare(t.Context(), []byte(b.String()), out, "a/x", "b/x", textdiff.Options{Context: around})
		if err != nil || got != want {
			t.Errorf("%d lines of context: %v\n%s\nwant\n%s", around, err, got.Text, want.Text)
		}
	}
}

// Of another charset the diff shows the text.
func TestDiffOfOtherCharsets(t *testing.T) {
	d := parse(t, in(t, "utf-16le", "eins\nzwei\n"), "utf-16le")
	diff, err := d.Diff(t.Context(), []textedit.Splice{{From: 0, To: 4, New: "één"}}, "a/x", "b/x", 0)
	if want := "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-eins\n+één\n"; err != nil || diff.Text != want {
		t.Errorf("%q, %v; want %q", diff.Text, err, want)
	}
}
