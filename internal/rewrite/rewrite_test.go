package rewrite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

type scratch struct {
	*testing.T
	dir   string
	roots *roots.Roots
}

func newScratch(t *testing.T) scratch {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	return scratch{t, dir, r}
}

func (s scratch) write(name, content string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o640); err != nil {
		s.Fatal(err)
	}
}

// read returns what a file holds, "-" for one that is not there.
func (s scratch) read(name string) string {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

func (s scratch) at(name string) place.Place {
	s.Helper()
	p, err := s.roots.Resolve(filepath.Join(s.dir, name))
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// file doubles what a file holds.
func (s scratch) file(name string) *File {
	return &File{Place: s.at(name), Name: name, Path: name, Plan: func(_ context.Context, old []byte) ([][]byte, error) {
		return [][]byte{old, old}, nil
	}}
}

func engine() Engine { return Engine{Writer: atomicfile.New(), MaxBytes: 2 << 20} }

func TestRun(t *testing.T) {
	for _, size := range []int{1, 100_000, 600_000} { // in one buffer and in several
		s := newScratch(t)
		var files []*File
		for i := range 3 {
			name := fmt.Sprint("f", i)
			s.write(name, strings.Repeat(fmt.Sprint(i), size))
			files = append(files, s.file(name))
		}
		same := s.file("f0")
		same.Plan = func(context.Context, []byte) ([][]byte, error) { return nil, nil }
		if err := engine().Run(t.Context(), files, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := engine().Run(t.Context(), []*File{same}, Options{}); err != nil || same.Changed || same.Err != nil || same.ETag != files[0].ETag {
			t.Errorf("%v, %+v", err, same)
		}
		for i, f := range files {
			want := strings.Repeat(fmt.Sprint(i), 2*size)
			sum, err := etag.Sum(t.Context(), strings.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			if f.Err != nil || !f.Changed || s.read(f.Name) != want || f.ETag != etag.Of(sum) {
				t.Errorf("%d bytes: %+v", size, f)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, together := range []bool{false, true} {
		s := newScratch(t)
		for _, name := range []string{"good", "tagged", "failing"} {
			s.write(name, name)
		}
		s.write("large", strings.Repeat("x", 2<<20+1))
		good, tagged, failing, large, missing, given := s.file("good"), s.file("tagged"), s.file("failing"), s.file("large"), s.file("missing"), s.file("given")
		tagged.IfMatch = "another"
		own, before := errors.New("cannot be planned"), errors.New("refused before")
		failing.Plan = func(context.Context, []byte) ([][]byte, error) { return nil, own }
		given.Err = before
		if err := engine().Run(t.Context(), []*File{good, tagged, failing, large, missing, given}, Options{Together: together}); err != nil {
			t.Fatal(err)
		}
		for f, want := range map[*File]fault.Code{tagged: fault.PreconditionFailed, large: fault.LimitExceeded, missing: fault.FSNotFound} {
			if code, _ := fault.Of(f.Err); code != want || f.Changed {
				t.Errorf("%s: %v", f.Name, f.Err)
			}
		}
		if !errors.Is(failing.Err, own) || !errors.Is(given.Err, before) {
			t.Errorf("%v, %v", failing.Err, given.Err)
		}
		want := "goodgood"
		if together {
			want = "good"
		}
		if (good.Err != nil) != together || s.read("good") != want || s.read("tagged") != "tagged" {
			t.Errorf("together %t: %v, it holds %q", together, good.Err, s.read("good"))
		}
	}
}

func TestDryRunLocksNothing(t *testing.T) {
	s := newScratch(t)
	s.write("f", "old")
	e := engine()
	_, unlock, err := e.Writer.Lock(t.Context(), s.at("f"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	f := s.file("f")
	if err := e.Run(t.Context(), []*File{f}, Options{DryRun: true}); err != nil || f.Err != nil || !f.Changed || s.read("f") != "old" {
		t.Errorf("%v, %+v", err, f)
	}
}

// TestRollback does all that a Tx can do and takes it back.
func TestRollback(t *testing.T) {
	for what, failed := range map[string]func(string) bool{"all": nil, "some": func(abs string) bool { return filepath.Base(abs) < "d" }} {
		s := newScratch(t)
		for _, name := range []string{"changed", "gone", "from", "x-changed", "meanwhile"} {
			s.write(name, "old "+name)
		}
		tx := &Tx{Writer: atomicfile.New()}
		old := func(name string) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { return "old " + name, nil }
		}
		var writes []*Write
		for _, name := range []string{"changed", "x-changed", "meanwhile", "created"} {
			w := &Write{Job: atomicfile.Job{Place: s.at(name), Content: "new " + name}}
			if name != "created" {
				w.Old = old(name)
			}
			writes = append(writes, w)
		}
		if err := tx.Write(t.Context(), writes, nil); err != nil {
			t.Fatal(err)
		}
		sum, err := etag.Sum(t.Context(), strings.NewReader("old gone"))
		if err != nil {
			t.Fatal(err)
		}
		if code, _ := fault.Of(tx.Remove(t.Context(), s.at("gone"), "another etag", nil, old("gone"), nil)); code != fault.PreconditionFailed {
			t.Errorf("removed by another etag: %s", code)
		}
		gone := s.at("gone")
		like, err := gone.Stat()
		if err == nil {
			err = tx.Remove(t.Context(), gone, etag.Of(sum), nil, old("gone"), like)
		}
		if err == nil {
			err = tx.Move(t.Context(), s.at("from"), s.at("dest"), nil)
		}
		if err == nil {
			err = tx.Chmod(s.at("x-changed"), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := s.read("gone") + s.read("from") + s.read("dest"); got != "--old from" {
			t.Fatal(got)
		}
		s.write("meanwhile", "theirs") // which rolling back must not take
		left := ""
		tx.Rollback(t.Context(), failed, func(abs string, err error) { left += filepath.Base(abs) })
		want := map[string]string{"changed": "old changed", "created": "-", "gone": "old gone", "from": "old from", "dest": "-", "x-changed": "old x-changed", "meanwhile": "theirs"}
		wantLeft := "meanwhile"
		if failed != nil {
			want = map[string]string{"changed": "old changed", "created": "-", "gone": "-", "from": "-", "dest": "old from", "x-changed": "new x-changed", "meanwhile": "theirs"}
			wantLeft = ""
		}
		for name, want := range want {
			if got := s.read(name); got != want {
				t.Errorf("%s: %s holds %q", what, name, got)
			}
		}
		if left != wantLeft {
			t.Errorf("%s: left %q", what, left)
		}
		if failed == nil {
			for _, name := range []string{"gone", "x-changed"} {
				if fi, err := os.Stat(filepath.Join(s.dir, name)); err != nil || fi.Mode().Perm() != 0o640 {
					t.Errorf("%s: %v, %v", name, fi.Mode(), err)
				}
			}
		}
	}
}
