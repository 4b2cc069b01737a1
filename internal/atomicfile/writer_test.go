package atomicfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// scratch is an allowed directory in which paths can be placed.
type scratch struct {
	t     testing.TB
	dir   string
	roots *roots.Roots
}

func newScratch(t testing.TB) scratch {
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

func (s scratch) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s scratch) at(name string) place.Place {
	s.t.Helper()
	p, err := s.roots.Resolve(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s scratch) write(name, content string, perm fs.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(s.path(name), perm); err != nil {
		s.t.Fatal(err)
	}
}

func (s scratch) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

func (s scratch) mode(name string) fs.FileMode {
	s.t.Helper()
	fi, err := os.Lstat(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return fi.Mode()
}

// names fails the test where the directory holds anything but want.
func (s scratch) names(dir string, want ...string) {
	s.t.Helper()
	list, err := os.ReadDir(s.path(dir))
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("directory %q holds %q, want %q", dir, got, want)
	}
}

func content(text string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	}
}

func wantCode(t *testing.T, err error, want fault.Code, words ...string) {
	t.Helper()
	code, msg := fault.Of(err)
	if err == nil || code != want {
		t.Errorf("code = %s (%v), want %s", code, err, want)
	}
	for _, w := range words {
		if !strings.Contains(msg, w) {
			t.Errorf("message %q lacks %q", msg, w)
		}
	}
}

func TestTempNames(t *testing.T) {
	for range 1000 {
		if name := TempName(); !IsTemp(name) {
			t.Fatalf("IsTemp(%q) is false", name)
		}
	}
	for _, name := range []string{"", ".conduit-.tmp", ".conduit-abcdefghijkl", ".conduit-abcdefghijk1.tmp", ".conduit-abcdefghijklm.tmp", "x.conduit-abcdefghijkl.tmp"} {
		if IsTemp(name) {
			t.Errorf("IsTemp(%q) is true", name)
		}
	}
}

func TestWrite(t *testing.T) {
	s := newScratch(t)
	w := New()
	r, err := w.Write(t.Context(), s.at("a/b/new.txt"), Options{}, content("first"))
	if err != nil || !r.Created || s.read("a/b/new.txt") != "first" {
		t.Fatalf("new file: %+v, %v, %q", r, err, s.read("a/b/new.txt"))
	}
	if got, want := s.mode("a/b/new.txt"), umasked(t); got != want {
		t.Errorf("mode of a new file = %v, want %v", got, want)
	}
	r, err = w.Write(t.Context(), s.at("a/b/new.txt"), Options{}, content("2nd"))
	if err != nil || r != (Report{}) || s.read("a/b/new.txt") != "2nd" {
		t.Errorf("overwritten: %+v, %v, %q", r, err, s.read("a/b/new.txt"))
	}
	s.names("a/b", "new.txt")
}

// umasked is the mode that the system gives a file created with 0666.
func umasked(t *testing.T) fs.FileMode {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return fi.Mode()
}

func TestWriteThroughLinks(t *testing.T) {
	s := newScratch(t)
	s.write("target", "old", 0o600)
	for name, to := range map[string]string{"link": "target", "dangling": "born"} {
		if err := os.Symlink(to, s.path(name)); err != nil {
			t.Fatal(err)
		}
		if _, err := New().Write(t.Context(), s.at(name), Options{}, content("new")); err != nil {
			t.Fatal(err)
		}
		if s.read(to) != "new" || s.mode(name)&fs.ModeSymlink == 0 {
			t.Errorf("%s: target holds %q, link is %v", name, s.read(to), s.mode(name))
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	s := newScratch(t)
	s.write("file", "old", 0o600)
	if err := os.Mkdir(s.path("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	tests := []struct {
		name string
		at   string
		o    Options
		fill func(*os.File) error
		want fault.Code
		word string
	}{
		{"directory", "dir", Options{}, content("x"), fault.FSIsDirectory, "is a directory"},
		{"allowed directory", ".", Options{}, content("x"), fault.FSIsDirectory, "is a directory"},
		{"create", "file", Options{Mode: Create}, content("x"), fault.FSAlreadyExists, "already exists"},
		{"match", "file", Options{IfMatch: "AAAAAAAAAAAAAAAAAAAAAA"}, content("x"), fault.PreconditionFailed, etagOf("old")},
		{"match of nothing", "none", Options{IfMatch: etagOf("")}, content("x"), fault.PreconditionFailed, "does not exist"},
		{"match of nothing nowhere", "no/where/none", Options{IfMatch: etagOf("")}, content("x"), fault.PreconditionFailed, "does not exist"},
		{"long name", strings.Repeat("x", 300), Options{}, content("x"), fault.FSBadPathInput, "too long"},
		{"failing", "file", Options{}, func(*os.File) error { return broken }, fault.FSWriteFailed, "was not written"},
		{"failing with a code", "file", Options{}, func(*os.File) error { return fault.New(fault.LimitExceeded, "enough") }, fault.LimitExceeded, "enough"},
		{"full disk", "file", Options{}, func(f *os.File) error {
			return &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}, fault.FSWriteFailed, "no space"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := place.Place{}
			if tt.name == "long name" { // which resolving refuses already
				p = s.at(".").Child(tt.at)
			} else {
				p = s.at(tt.at)
			}
			_, err := New().Write(t.Context(), p, tt.o, tt.fill)
			wantCode(t, err, tt.want, tt.word)
			if strings.Contains(err.Error(), tempPrefix) {
				t.Errorf("%q names the temporary file", err)
			}
			s.names(".", "dir", "file")
			if s.read("file") != "old" {
				t.Errorf("file holds %q", s.read("file"))
			}
		})
	}
}

func etagOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return etag.Of(sum[:])
}

func TestModesAreKept(t *testing.T) {
	s := newScratch(t)
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o444, 0o640 | fs.ModeSetgid} {
		s.write("f", "old", mode)
		if _, err := New().Write(t.Context(), s.at("f"), Options{}, content("new")); err != nil {
			t.Fatal(err)
		}
		if s.mode("f") != mode || s.read("f") != "new" {
			t.Errorf("mode = %v with %q, want %v", s.mode("f"), s.read("f"), mode)
		}
		os.Remove(s.path("f"))
	}
}

func TestLike(t *testing.T) {
	s := newScratch(t)
	s.write("model", "", 0o751)
	then := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	if err := os.Chtimes(s.path("model"), then, then); err != nil {
		t.Fatal(err)
	}
	like, err := os.Lstat(s.path("model"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("old", "old", 0o600)
	for _, name := range []string{"old", "new"} {
		if _, err := New().Write(t.Context(), s.at(name), Options{Like: like}, content("x")); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Lstat(s.path(name))
		if err != nil || fi.Mode() != 0o751 || !fi.ModTime().Equal(then) {
			t.Errorf("%s: %v %v %v", name, fi.Mode(), fi.ModTime(), err)
		}
	}
}

func TestHardLinksPart(t *testing.T) {
	s := newScratch(t)
	s.write("a", "old", 0o600)
	if err := os.Link(s.path("a"), s.path("b")); err != nil {
		t.Fatal(err)
	}
	r, err := New().Write(t.Context(), s.at("a"), Options{}, content("new"))
	if err != nil || !r.Parted || !strings.Contains(r.Note(), "hard links") {
		t.Errorf("%+v, %v", r, err)
	}
	if s.read("a") != "new" || s.read("b") != "old" {
		t.Errorf("a holds %q, b %q", s.read("a"), s.read("b"))
	}
}

// The system refuses to replace a file on which another is mounted; only the
// answer can be had without privileges.
func TestInPlaceWhereRenameIsRefused(t *testing.T) {
	for _, refusal := range []error{syscall.EBUSY, syscall.EXDEV, syscall.EPERM, syscall.EACCES} {
		s := newScratch(t)
		s.write("f", "a longer old content", 0o640)
		if err := os.Link(s.path("f"), s.path("twin")); err != nil {
			t.Fatal(err)
		}
		w := New()
		w.rename = func(*Dir, string, *Dir, string, bool) error { return refusal }
		r, err := w.Write(t.Context(), s.at("f"), Options{IfMatch: etagOf("a longer old content")}, content("new"))
		if err != nil || r != (Report{InPlace: true}) || !strings.Contains(r.Note(), "in place") {
			t.Errorf("%v: %+v, %v", refusal, r, err)
		}
		if s.read("f") != "new" || s.read("twin") != "new" || s.mode("f") != 0o640 {
			t.Errorf("%v: f holds %q, its twin %q, mode %v", refusal, s.read("f"), s.read("twin"), s.mode("f"))
		}
		s.names(".", "f", "twin")
		if _, err := w.Write(t.Context(), s.at("new"), Options{}, content("new")); err == nil {
			t.Errorf("%v: a new file was written", refusal)
		}
		s.names(".", "f", "twin")
	}
}

func TestOtherRenameFailures(t *testing.T) {
	s := newScratch(t)
	s.write("f", "old", 0o600)
	w := New()
	w.rename = func(*Dir, string, *Dir, string, bool) error { return syscall.EIO }
	_, err := w.Write(t.Context(), s.at("f"), Options{}, content("new"))
	wantCode(t, err, fault.FSWriteFailed, s.path("f"))
	if s.read("f") != "old" {
		t.Errorf("f holds %q", s.read("f"))
	}
	s.names(".", "f")
}

func TestCancelledWritesLeaveNothing(t *testing.T) {
	s := newScratch(t)
	s.write("f", "old", 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := New().Write(ctx, s.at("f"), Options{}, func(f *os.File) error {
		cancel()
		return content("new")(f)
	})
	if !errors.Is(err, context.Canceled) || s.read("f") != "old" {
		t.Errorf("err = %v, f holds %q", err, s.read("f"))
	}
	s.names(".", "f")
}

func TestPanickingFillLeavesNothing(t *testing.T) {
	s := newScratch(t)
	func() {
		defer func() { recover() }()
		New().Write(t.Context(), s.at("f"), Options{}, func(*os.File) error { panic("overboard") })
		t.Error("the panic was swallowed")
	}()
	s.names(".")
}

func TestOneOfManyWins(t *testing.T) {
	for name, o := range map[string]Options{"create": {Mode: Create}, "match": {IfMatch: etagOf("old")}} {
		t.Run(name, func(t *testing.T) {
			s := newScratch(t)
			w, p := New(), s.at("f")
			w.rename = func(from *Dir, old string, to *Dir, new string, replace bool) error {
				runtime.Gosched() // gives the others a chance to come between check and rename
				return rename(from, old, to, new, replace)
			}
			for range 50 {
				os.Remove(s.path("f"))
				if o.IfMatch != "" {
					s.write("f", "old", 0o600)
				}
				var won atomic.Int32
				var start, wg sync.WaitGroup
				start.Add(1)
				for range 8 {
					wg.Go(func() {
						start.Wait()
						if _, err := w.Write(t.Context(), p, o, content("new")); err == nil {
							won.Add(1)
						}
					})
				}
				start.Done()
				wg.Wait()
				if won.Load() != 1 || s.read("f") != "new" {
					t.Fatalf("%d won, f holds %q", won.Load(), s.read("f"))
				}
				s.names(".", "f")
			}
		})
	}
}

func TestLinkAnew(t *testing.T) {
	s := newScratch(t)
	w := New()
	d, err := w.Open(s.at("."), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s.write("a", "a", 0o600)
	s.write("b", "b", 0o600)
	if err := linkAnew(d, "a", d, "b"); !errors.Is(err, fs.ErrExist) || s.read("b") != "b" {
		t.Errorf("onto a file: %v, %q", err, s.read("b"))
	}
	if err := linkAnew(d, "a", d, "c"); err != nil || s.read("c") != "a" {
		t.Errorf("to a free name: %v", err)
	}
	if err := os.Mkdir(s.path("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := linkAnew(d, "dir", d, "moved"); err != nil || !s.mode("moved").IsDir() {
		t.Errorf("directory: %v", err)
	}
	s.names(".", "b", "c", "moved")
}

func TestSweep(t *testing.T) {
	s := newScratch(t)
	old := time.Now().Add(-2 * time.Hour)
	age := func(name string) {
		t.Helper()
		if err := os.Chtimes(s.path(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	left, fresh, dir, later := TempName(), TempName(), TempName(), TempName()
	s.write(left, "", 0o600)
	s.write(fresh, "", 0o600)
	s.write("f.tmp", "", 0o600)
	if err := os.Mkdir(s.path(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	age(left)
	age(dir)
	age("f.tmp")
	w := New()
	w.Run(t.Context(), []*Job{{Place: s.at("f")}}, nil)
	want := []string{fresh, dir, "f", "f.tmp"}
	slices.Sort(want)
	s.names(".", want...)

	s.write(later, "", 0o600)
	age(later)
	w.Run(t.Context(), []*Job{{Place: s.at("f")}}, nil)
	want = append(want, later)
	slices.Sort(want)
	s.names(".", want...) // only the first write looks
	New().Run(t.Context(), []*Job{{Place: s.at("f")}}, nil)
	want = []string{fresh, dir, "f", "f.tmp"}
	slices.Sort(want)
	s.names(".", want...)
}

func TestFailed(t *testing.T) {
	p := place.Place{Abs: "dir/file"}
	for _, tt := range []struct {
		err  error
		want fault.Code
	}{
		{syscall.ENOSPC, fault.FSWriteFailed},
		{syscall.EIO, fault.FSWriteFailed},
		{syscall.EACCES, fault.FSAccessDenied},
		{syscall.EROFS, fault.FSAccessDenied},
		{syscall.ENOENT, fault.FSNotFound},
		{syscall.EISDIR, fault.FSIsDirectory},
		{syscall.ENOTDIR, fault.FSPathResolution},
		{syscall.ELOOP, fault.FSPathResolution},
		{syscall.ENAMETOOLONG, fault.FSBadPathInput},
		{errors.New("odd"), fault.FSWriteFailed},
	} {
		for _, err := range []error{
			tt.err,
			&fs.PathError{Op: "openat", Path: TempName(), Err: tt.err},
			&os.LinkError{Op: "renameat", Old: TempName(), New: "file", Err: tt.err},
		} {
			got := Failed(p, err)
			wantCode(t, got, tt.want, "dir/file")
			if _, msg := fault.Of(got); strings.Contains(msg, tempPrefix) {
				t.Errorf("%q names the temporary file", msg)
			}
		}
	}
	if err := Failed(p, nil); err != nil {
		t.Errorf("Failed(nil) = %v", err)
	}
	coded := fault.New(fault.LimitExceeded, "enough")
	if err := Failed(p, coded); err != coded {
		t.Errorf("Failed(%v) = %v", coded, err)
	}
}
