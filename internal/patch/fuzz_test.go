package patch

import (
	"strings"
	"testing"
	"time"
)

// FuzzPatch reads anything as a patch and applies what it reads to anything:
// neither panics nor takes long, the changes are in order, and what the diff of
// them says leads from the old text to the new one.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
		"diff --git a/f b/g\nsimilarity index 50%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+b\r\n+c\n",
		"diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nnew file mode 100755\n--- /dev/null\n+++ \"b/\\303\\244\"\n@@ -0,0 +1 @@\n+a\n",
		"```diff\n--- f\n+++ f\n@@ -9,9 +9,9 @@\n a\n\n-b\n+B\n```\n",
		"--- f\t1970-01-01 00:00:00 +0000\n+++ f\n@@ -0,0 +1 @@\n+a\n-- \n2.1\n",
		"--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n",
		"--- a/f\n+++ b/" + strings.Repeat("f", 5000) + "\n@@ -2 +2 @@\n-\n+x\n",
		"diff --git a/f b/f\nold mode 100644\nnew mode 100755\ndiff --git a/x y b/x y\nGIT binary patch\n",
	} {
		f.Add(s, "a\nb\nc\n")
		f.Add(s, "\ufeffa\r\nb\r\nc")
		f.Add(s, "")
	}
	f.Add("--- a/f\n+++ b/f\n@@ -1 +1,3 @@\n++\n\n+\n", mark)
	f.Add("--- f\n+++ f\n@@ -1,0 +2 @@\n+b\n@@ -0,0 +1 @@\n+c\n@@ -0,0 +1 @@\n+d\n", mark+"a")
	f.Fuzz(func(t *testing.T, text, content string) {
		begun := time.Now()
		files, err := Parse(text, StripAuto)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("reading %d bytes took %v", len(text), took)
		}
		if (err == nil) != (len(files) > 0) {
			t.Fatalf("%d files, error %v", len(files), err)
		}
		for _, file := range files {
			if file.Name() == "" || file.Line < 1 {
				t.Fatalf("%+v has no name or line", file)
			}
			a, err := Apply(t.Context(), content, file)
			if err != nil {
				if len(err.Error()) > 2500 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
				continue
			}
			at := 0
			for _, s := range a.Splices {
				if s.From < at || s.To < s.From || s.To > len(content) {
					t.Fatalf("splice %+v after %d of %d", s, at, len(content))
				}
				at = s.To
			}
			got := a.Text()
			checkDiff(t, file, a, content, got)
		}
	})
}

// checkDiff applies the diff of what was done to the old text.
func checkDiff(t *testing.T, file *File, a *Applied, before, after string) {
	hunks := a.Diff()
	if hunks == "" && before != after { // a line removed here and added there may show
		t.Fatalf("the diff is %q from %q to %q", hunks, before, after)
	}
	if hunks == "" {
		return
	}
	again, err := Parse("--- a/f\n+++ b/f\n"+hunks, StripAuto)
	if err != nil || len(again) != 1 {
		t.Fatalf("the diff cannot be read: %v\n%s", err, hunks)
	}
	b, err := Apply(t.Context(), before, again[0])
	if err != nil {
		t.Fatalf("the diff cannot be applied: %v\n%s", err, hunks)
	}
	if b.Text() != after || len(b.Notes) > 0 {
		t.Fatalf("the diff leads to %q, want %q (%q)\n%s", b.Text(), after, b.Notes, hunks)
	}
	added, removed := a.Changed()
	if strings.Count("\n"+hunks, "\n+") != added || strings.Count("\n"+hunks, "\n-") != removed {
		t.Errorf("%d added and %d removed in\n%s", added, removed, hunks)
	}
}

func FuzzName(f *testing.F) {
	f.Add("a b")
	f.Add(".")
	f.Add("\"\\\t\x01é")
	f.Fuzz(func(t *testing.T, name string) {
		if q := quote(name); q != name {
			if got, rest, ok := unquote(q); !ok || rest != "" || got != name {
				t.Errorf("%q becomes %q and then %q", name, q, got)
			}
		}
		unquote(name)
		headerName(name)
		twoNames(name)
		if c := "/" + clean(name) + "/"; strings.Contains(c, "/./") && !strings.Contains(c, "/../") {
			t.Errorf("%q becomes %q", name, c)
		}
	})
}
