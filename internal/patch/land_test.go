package patch_test

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/patch"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// every does everything that a patch can do: f is changed and made executable,
// g and y deleted, h renamed and changed, n created, c copied.
const every = `diff --git a/f b/f
old mode 100644
new mode 100755
--- a/f
+++ b/f
@@ -1 +1 @@
-f
+F
diff --git a/g b/g
deleted file mode 100644
--- a/g
+++ /dev/null
@@ -1 +0,0 @@
-g
diff --git a/y b/y
deleted file mode 100644
--- a/y
+++ /dev/null
@@ -1 +0,0 @@
-y
diff --git a/h b/i
rename from h
rename to i
--- a/h
+++ b/i
@@ -1 +1 @@
-h
+H
diff --git a/n b/n
new file mode 100755
--- /dev/null
+++ b/n
@@ -0,0 +1 @@
+n
diff --git a/z b/c
copy from z
copy to c
diff --git a/z b/z
--- a/z
+++ b/z
@@ -1 +1 @@
-z
+Z
`

var (
	everyBefore = tree{"f": {text: "f\n"}, "g": {text: "g\n"}, "h": {text: "h\n"}, "y": {text: "y\n"}, "z": {text: "z\n"}}
	everyAfter  = tree{"f": {"F\n", true}, "i": {text: "H\n"}, "n": {"n\n", true}, "c": {text: "z\n"}, "z": {text: "Z\n"}}
)

func code(err error) fault.Code {
	c, _ := fault.Of(err)
	return c
}

func TestLand(t *testing.T) {
	dir := t.TempDir()
	everyBefore.write(t, dir)
	if _, _, err := apply(t, dir, every); err != nil {
		t.Fatal(err)
	}
	if d := same(readTree(t, dir), everyAfter); d != "" {
		t.Error(d)
	}
}

// A file that changes between plan and landing is left alone, and so is all
// that hangs together with it.
func TestLandPutsBack(t *testing.T) {
	stamp := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, name := range []string{"f", "g", "i", "n", "c", "y", "z"} {
		for _, together := range []bool{true, false} {
			dir := t.TempDir()
			everyBefore.write(t, dir)
			if err := os.Chmod(filepath.Join(dir, "g"), 0o640); err != nil {
				t.Fatal(err)
			}
			for old := range everyBefore {
				if err := os.Chtimes(filepath.Join(dir, old), stamp, stamp); err != nil {
					t.Fatal(err)
				}
			}
			p, err := plan(t, dir, every, patch.Options{Together: together})
			if err != nil {
				t.Fatal(err)
			}
			tree{name: {text: "meanwhile\n"}}.write(t, dir)
			if err := p.Land(t.Context(), atomicfile.New(), nil); err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(everyBefore)
			want[name] = file{text: "meanwhile\n"}
			failed := 0
			for _, s := range p.Steps {
				if s.Err != nil {
					failed++
					if c := code(s.Err); c != fault.PreconditionFailed && c != fault.FSAlreadyExists {
						t.Errorf("%s: %v", name, s.Err)
					}
				} else if together {
					t.Errorf("%s: %s is said to be patched", name, s.Name())
				}
			}
			got := readTree(t, dir)
			if together {
				if d := same(got, want); d != "" {
					t.Errorf("%s changed, all or nothing: %s", name, d)
				}
				for old := range everyBefore {
					fi, err := os.Stat(filepath.Join(dir, old))
					if err != nil || old != name && !fi.ModTime().Equal(stamp) {
						t.Errorf("%s changed: %s is of %v, %v", name, old, fi.ModTime(), err)
					}
				}
				if fi, err := os.Stat(filepath.Join(dir, "g")); err != nil || name != "g" && fi.Mode() != 0o640 {
					t.Errorf("%s changed: the mode of g is %v", name, fi.Mode())
				}
				continue
			}
			if want := map[string]int{"c": 2, "z": 2}[name]; failed != max(want, 1) {
				t.Errorf("%s changed, each by itself: %d steps failed", name, failed)
			}
			if got[name] != (file{text: "meanwhile\n"}) {
				t.Errorf("%s changed, and is %v", name, got[name])
			}
		}
	}
}

func TestLandCancelled(t *testing.T) {
	dir := t.TempDir()
	everyBefore.write(t, dir)
	p, err := plan(t, dir, every, patch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	// The first file that is written ends the call.
	if err := p.Land(ctx, atomicfile.New(), func(int64, int64) { cancel() }); err == nil {
		t.Error("a cancelled landing says that all is well")
	}
	if d := same(readTree(t, dir), everyBefore); d != "" {
		t.Error(d)
	}
}

// What is not named by the patch, and what a rename keeps, stays as it is.
func TestLandKeepsModes(t *testing.T) {
	dir := t.TempDir()
	tree{"a": {text: "1\n"}, "b": {text: "2\n"}}.write(t, dir)
	for name, mode := range map[string]fs.FileMode{"a": 0o750, "b": 0o604} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := apply(t, dir, "diff --git a/a b/c/d\nold mode 100755\nnew mode 100644\nrename from a\nrename to c/d\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-2\n+3\n"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"c/d": 0o640, "b": 0o604} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, fi, err, want)
		}
	}
}

func TestLandManyFiles(t *testing.T) {
	dir := t.TempDir()
	before, after := tree{}, tree{}
	var text strings.Builder
	for i := range 300 {
		name := "d" + digits(i%7) + "/" + digits(i) + "f"
		before[name], after[name] = file{text: "1\n"}, file{text: "2\n"}
		text.WriteString("--- a/" + name + "\n+++ b/" + name + "\n@@ -1 +1 @@\n-1\n+2\n")
	}
	before.write(t, dir)
	p, err := plan(t, dir, text.String(), patch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var last atomic.Int64
	if err := p.Land(t.Context(), atomicfile.New(), func(done, _ int64) { last.Add(done) }); err != nil {
		t.Fatal(err)
	}
	if d := same(readTree(t, dir), after); d != "" {
		t.Error(d)
	}
	for _, s := range p.Steps {
		if s.Err != nil || len(s.ETag) != 22 {
			t.Errorf("%s: %v, etag %q", s.Name(), s.Err, s.ETag)
		}
	}
	if last.Load() != 300*301/2 {
		t.Errorf("progress told adds up to %d", last.Load())
	}
}

// Parts without end for one large file are refused before they take hours.
func TestTooManyParts(t *testing.T) {
	dir := t.TempDir()
	tree{"f": {text: "a\n" + strings.Repeat("x", 97) + "\n"}}.write(t, dir)
	text := strings.Repeat("--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n--- f\n+++ f\n@@ -1 +1 @@\n-b\n+a\n", 21)
	p, err := plan(t, dir, text, patch.Options{MaxBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Steps[40].Err; code(err) != fault.LimitExceeded {
		t.Errorf("%v, want %s", err, fault.LimitExceeded)
	}
}
