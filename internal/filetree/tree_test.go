package filetree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// scratch is an allowed directory "in" beside "out", which is not allowed.
type scratch struct {
	t     testing.TB
	dir   string
	roots *roots.Roots
}

func newScratch(t testing.TB, denied ...string) scratch {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(top, "in")
	for i, d := range denied {
		denied[i] = strings.ReplaceAll(d, "$DIR", dir)
	}
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir, Denied: denied})
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

// entry is at for the link itself.
func (s scratch) entry(name string) place.Place {
	s.t.Helper()
	p, err := s.at(name).Entry()
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// make creates what each line says: "dir/", "file=content", "link->target",
// and "file@mode=content" or "dir/@mode".
func (s scratch) make(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		var err error
		name, target, isLink := strings.Cut(line, "->")
		name, content, _ := strings.Cut(name, "=")
		name, mode, hasMode := strings.Cut(name, "@")
		perm := fs.FileMode(0o644)
		if hasMode {
			fmt.Sscanf(mode, "%o", &perm)
		}
		full := s.path(name)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(full, 0o755)
		} else {
			err = os.MkdirAll(filepath.Dir(full), 0o755)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		switch {
		case isLink:
			err = os.Symlink(strings.ReplaceAll(target, "$DIR", s.dir), full)
		case !strings.HasSuffix(name, "/"):
			err = os.WriteFile(full, []byte(content), 0o644)
		}
		if err == nil && hasMode {
			err = os.Chmod(full, perm)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// tree describes what is below name in the language of make, sorted.
func (s scratch) tree(name string) []string {
	s.t.Helper()
	var list []string
	err := filepath.WalkDir(s.path(name), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.path(name), path)
		rel = filepath.ToSlash(rel)
		switch {
		case rel == ".":
		case e.IsDir():
			list = append(list, rel+"/")
		case e.Type()&fs.ModeSymlink != 0:
			text, err := os.Readlink(path)
			if err != nil {
				return err
			}
			list = append(list, rel+"->"+strings.ReplaceAll(text, s.dir, "$DIR"))
		case e.Type().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			list = append(list, rel+"="+string(b))
		default:
			list = append(list, rel+" is special")
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s scratch) want(name string, want ...string) {
	s.t.Helper()
	if got := s.tree(name); !slices.Equal(got, want) {
		s.t.Errorf("%s holds\n%q, want\n%q", name, got, want)
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

func TestCopy(t *testing.T) {
	tests := []struct {
		name     string
		make     []string
		src, dst string
		o        Options
		want     []string
		note     string
	}{
		{"file", []string{"a=1"}, "a", "b", Options{}, []string{"a=1", "b=1"}, "Copied to $DIR/b."},
		{"file onto a file", []string{"a=1", "b=old"}, "a", "b", Options{}, []string{"a=1", "b=1"}, "Copied to $DIR/b."},
		{"file into a directory", []string{"a=1", "d/"}, "a", "d", Options{}, []string{"a=1", "d/", "d/a=1"}, "Copied to $DIR/d/a."},
		{"file into missing directories", []string{"a=1"}, "a", "x/y/z", Options{Create: true}, []string{"a=1", "x/", "x/y/", "x/y/z=1"}, "Copied to $DIR/x/y/z."},
		{"link's target", []string{"a=1", "l->a"}, "l", "b", Options{}, []string{"a=1", "b=1", "l->a"}, "Copied to $DIR/b."},
		{"link's target by the link's name", []string{"a=1", "d/", "l->a"}, "l", "d", Options{}, []string{"a=1", "d/", "d/l=1", "l->a"}, "Copied to $DIR/d/l."},
		{"onto a link", []string{"a=1", "b=old", "l->b"}, "a", "l", Options{}, []string{"a=1", "b=1", "l->b"}, "Copied to $DIR/b."},
		{"into a linked directory", []string{"a=1", "d/", "l->d"}, "a", "l", Options{}, []string{"a=1", "d/", "d/a=1", "l->d"}, "Copied to $DIR/d/a."},
		{"file into a directory that is only written as one", []string{"a=1"}, "a", "d/", Options{Into: true}, []string{"a=1", "d/", "d/a=1"}, "Copied to $DIR/d/a."},
		{"tree to a directory that is only written as one", []string{"s/a=1"}, "s", "d/", Options{Into: true}, []string{"d/", "d/a=1", "s/", "s/a=1"}, "Copied to $DIR/d."},
		{"new tree", []string{"s/a=1", "s/d/b=2", "s/e/"}, "s", "n/t", Options{Create: true},
			[]string{"n/", "n/t/", "n/t/a=1", "n/t/d/", "n/t/d/b=2", "n/t/e/", "s/", "s/a=1", "s/d/", "s/d/b=2", "s/e/"}, "Copied to $DIR/n/t. 2 files."},
		{"tree into a directory", []string{"s/a=1", "t/"}, "s", "t", Options{Create: true}, []string{"s/", "s/a=1", "t/", "t/s/", "t/s/a=1"}, "Copied to $DIR/t/s."},
		{"tree over a tree", []string{"s/a=1", "s/d/b=2", "s/n/c=3", "s/l->a", "t/s/a=old", "t/s/d/b=old", "t/s/d/x=kept", "t/s/l=old"}, "s", "t", Options{},
			[]string{"s/", "s/a=1", "s/d/", "s/d/b=2", "s/l->a", "s/n/", "s/n/c=3", "t/", "t/s/", "t/s/a=1", "t/s/d/", "t/s/d/b=2", "t/s/d/x=kept", "t/s/l->a", "t/s/n/", "t/s/n/c=3"}, "Copied to $DIR/t/s. 4 files."},
		{"merging replaces links and does not follow them", []string{"s/a=1", "t/s/a->../../precious", "precious=kept"}, "s", "t", Options{},
			[]string{"precious=kept", "s/", "s/a=1", "t/", "t/s/", "t/s/a=1"}, "Copied to $DIR/t/s."},
		{"temporary files stay", []string{"s/a=1", "s/.conduit-abcdefghijkl.tmp=x"}, "s", "t", Options{},
			[]string{"s/", "s/.conduit-abcdefghijkl.tmp=x", "s/a=1", "t/", "t/a=1"}, "Copied to $DIR/t."},
		{"links in the tree stay links", []string{"s/a=1", "s/d/up->../a", "s/l->d", "s/gone->d/none", "s/abs->$DIR/s/d", "s/round->../s/a", "s/loop->loop"}, "s", "t", Options{},
			[]string{"s/", "s/a=1", "s/abs->$DIR/s/d", "s/d/", "s/d/up->../a", "s/gone->d/none", "s/l->d", "s/loop->loop", "s/round->../s/a",
				"t/", "t/a=1", "t/abs->d", "t/d/", "t/d/up->../a", "t/gone->d/none", "t/l->d", "t/round->a"},
			"Copied to $DIR/t. 6 files. Left out as symbolic links to what is missing, not allowed or a loop: 1."},
		{"links out of the tree become content", []string{"s/f->../x/f", "s/d->../x", "x/f=1", "x/l->f", "x/back->../s"}, "s", "t", Options{},
			[]string{"s/", "s/d->../x", "s/f->../x/f", "t/", "t/d/", "t/d/f=1", "t/d/l->f", "t/f=1", "x/", "x/back->../s", "x/f=1", "x/l->f"},
			"Copied to $DIR/t. 3 files. Left out as symbolic links to what is missing, not allowed or a loop: 1."},
		{"links outside are left out", []string{"s/f->../../out/f", "s/d->../../out", "s/up->..", "s/gone->../none"}, "s", "t", Options{},
			[]string{"s/", "s/d->../../out", "s/f->../../out/f", "s/gone->../none", "s/up->..", "t/"}, "Copied to $DIR/t. Left out as symbolic links to what is missing, not allowed or a loop: 4."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScratch(t)
			s.make(tt.make...)
			r, err := Copy(t.Context(), atomicfile.New(), s.at(tt.src), s.at(tt.dst), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			s.want(".", tt.want...)
			if msg := strings.ReplaceAll(r.Message("Copied"), s.dir, "$DIR"); !strings.HasPrefix(msg, tt.note) {
				t.Errorf("message %q, want %q…", msg, tt.note)
			}
		})
	}
}

func TestCopyRefuses(t *testing.T) {
	tests := []struct {
		name     string
		make     []string
		src, dst string
		o        Options
		code     fault.Code
		words    string
	}{
		{"nothing", nil, "a", "b", Options{}, fault.FSNotFound, "/a"},
		{"onto itself", []string{"a=1"}, "a", "a", Options{}, fault.FSOperation, "same"},
		{"onto itself by a link", []string{"a=1", "l->a"}, "a", "l", Options{}, fault.FSOperation, "same"},
		{"into where it is", []string{"d/a=1"}, "d/a", "d", Options{}, fault.FSOperation, "same"},
		{"tree onto itself", []string{"d/a=1"}, "d", ".", Options{}, fault.FSOperation, "same"},
		{"tree into itself", []string{"d/a=1"}, "d", "d", Options{}, fault.FSOperation, "inside"},
		{"tree deep into itself", []string{"d/a=1", "d/e/"}, "d", "d/e/f/g", Options{}, fault.FSOperation, "inside"},
		{"tree onto a file", []string{"d/a=1", "f=1"}, "d", "f", Options{}, fault.FSIsFile, "is a file"},
		{"file onto a directory", []string{"a=1", "d/a/"}, "a", "d", Options{}, fault.FSIsDirectory, "is a directory"},
		{"file written as a directory", []string{"a=1", "f=1"}, "a", "f/", Options{Into: true}, fault.FSIsFile, "slash"},
		{"exists", []string{"a=1", "b=old"}, "a", "b", Options{Create: true}, fault.FSAlreadyExists, "overwrite is false"},
		{"exists inside", []string{"a=1", "d/a=old"}, "a", "d", Options{Create: true}, fault.FSAlreadyExists, "d/a"},
		{"tree exists inside", []string{"s/a=1", "d/s/"}, "s", "d", Options{Create: true}, fault.FSAlreadyExists, "d/s"},
		{"merging a directory onto a file", []string{"s/x/a=1", "t/s/x=old"}, "s", "t", Options{}, fault.FSIsFile, "t/s/x"},
		{"merging a directory onto a link", []string{"s/x/a=1", "t/s/x->../.."}, "s", "t", Options{}, fault.FSIsFile, "t/s/x"},
		{"merging a file onto a directory", []string{"s/x=1", "t/s/x/"}, "s", "t", Options{}, fault.FSIsDirectory, "t/s/x"},
		{"merging a link onto a directory", []string{"s/x->y", "t/s/x/"}, "s", "t", Options{}, fault.FSIsDirectory, "t/s/x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScratch(t)
			s.make(tt.make...)
			before := s.tree(".")
			_, err := Copy(t.Context(), atomicfile.New(), s.at(tt.src), s.at(tt.dst), tt.o)
			wantCode(t, err, tt.code, tt.words)
			s.want(".", before...)
		})
	}
}

func TestCopyLeavesOutTheDenied(t *testing.T) {
	s := newScratch(t, "*.key", "$DIR/t/private")
	s.make("s/a=1", "s/a.key=2", "s/d/b.key=3", "s/l->a.key", "s/private/c=4")
	r, err := Copy(t.Context(), atomicfile.New(), s.at("s"), s.at("t"), Options{})
	if err != nil || r.Denied != 3 || r.Links != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	s.want("t", "a=1", "d/")
	if msg := r.Message("Copied"); !strings.Contains(msg, "Left out as denied by a rule of this server: 3.") || strings.Contains(msg, ".key") {
		t.Errorf("message = %q", msg)
	}
}

func TestModesAndTimesAreCopied(t *testing.T) {
	s := newScratch(t)
	s.make("s/ro@440=1", "s/x@751=2", "s/d/f=3", "s/closed/f=4", "t/s/x@600=old")
	then := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	if err := os.Chmod(s.path("s/closed"), 0o555); err != nil {
		t.Fatal(err)
	}
	names := []string{"ro", "x", "d/f", "d", "closed/f", "closed", "."}
	for _, name := range names {
		if err := os.Chtimes(s.path("s/"+name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	for dst, merged := range map[string]bool{"new": false, "t": true} {
		r, err := Copy(t.Context(), atomicfile.New(), s.at("s"), s.at(dst), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if merged && name == "." {
				continue // a directory that exists keeps its own
			}
			from, err := os.Stat(s.path("s/" + name))
			if err != nil {
				t.Fatal(err)
			}
			to, err := os.Stat(filepath.Join(r.Into, name))
			if err != nil {
				t.Fatal(err)
			}
			if from.Mode() != to.Mode() || !to.ModTime().Equal(then) {
				t.Errorf("%s: %s is %v %v, want %v %v", dst, name, to.Mode(), to.ModTime(), from.Mode(), then)
			}
		}
		os.Chmod(filepath.Join(r.Into, "closed"), 0o755)
	}
	os.Chmod(s.path("s/closed"), 0o755)
}

func TestSetuidIsNotCopied(t *testing.T) {
	s := newScratch(t)
	s.make("a=1")
	if err := os.Chmod(s.path("a"), 0o755|fs.ModeSetuid|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if _, err := Copy(t.Context(), atomicfile.New(), s.at("a"), s.at("b"), Options{}); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(s.path("b")); err != nil || fi.Mode() != 0o755 {
		t.Errorf("mode = %v, %v", fi.Mode(), err)
	}
}

func TestLargeFilesAreCopied(t *testing.T) {
	s := newScratch(t)
	for _, size := range []int{smallFile - 1, smallFile, smallFile + 1, copyStep, copyStep + 1} {
		text := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		s.make("a=" + text)
		if _, err := Copy(t.Context(), atomicfile.New(), s.at("a"), s.at("b"), Options{}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(s.path("b")); err != nil || string(got) != text {
			t.Errorf("%d bytes: %d copied, %v", size, len(got), err)
		}
	}
}

func TestCancelledCopyLeavesNothing(t *testing.T) {
	s := newScratch(t)
	for n := range 200 {
		s.make(fmt.Sprintf("s/%d/a=1", n))
	}
	s.make("s/0/closed/x=1", "s/0/closed/@500")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Copy(ctx, atomicfile.New(), s.at("s"), s.at("t"), Options{Progress: func(done int64) {
		if done == 50 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if list, err := os.ReadDir(s.dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
	os.Chmod(s.path("s/0/closed"), 0o700)
}

// deep makes a chain of n directories below name.
func (s scratch) deep(name string, n int) {
	s.t.Helper()
	dir, err := os.OpenRoot(s.dir)
	for i := range n {
		if err == nil {
			err = dir.Mkdir(name, 0o755)
		}
		if err == nil {
			var sub *os.Root
			sub, err = dir.OpenRoot(name)
			dir.Close()
			dir, name = sub, "d"
		}
		if err != nil {
			s.t.Fatal(i, err)
		}
	}
	dir.Close()
}

func TestTreesThatAreTooDeep(t *testing.T) {
	s := newScratch(t, "$DIR/s/private", "$DIR/just/private") // so that a move looks into it
	s.deep("s", maxLevels+2)
	for name, do := range map[string]func() error{
		"copy": func() error {
			_, err := Copy(t.Context(), atomicfile.New(), s.at("s"), s.at("t"), Options{})
			return err
		},
		"move": func() error {
			_, err := Move(t.Context(), atomicfile.New(), s.at("s"), s.at("t"), Options{})
			return err
		},
		"delete": func() error {
			_, err := Delete(t.Context(), atomicfile.New(), s.at("s"), true, nil, nil)
			return err
		},
	} {
		wantCode(t, do(), fault.TooDeep, "1000 levels")
		if list, err := os.ReadDir(s.dir); err != nil || len(list) != 1 {
			t.Errorf("%s: left behind: %v, %v", name, list, err)
		}
	}
	s.deep("just", maxLevels+1)
	if r, err := Copy(t.Context(), atomicfile.New(), s.at("just"), s.at("fits"), Options{}); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if n, err := Delete(t.Context(), atomicfile.New(), s.at("just"), true, nil, nil); err != nil || n != maxLevels+1 {
		t.Errorf("%d deleted, %v", n, err)
	}
}

func TestMove(t *testing.T) {
	between := func(*atomicfile.Writer, place.Place, place.Place, Options) (Report, error) {
		return Report{}, syscall.EXDEV
	}
	tests := []struct {
		name     string
		make     []string
		src, dst string
		o        Options
		want     []string
	}{
		{"file", []string{"a=1"}, "a", "b", Options{Create: true}, []string{"b=1"}},
		{"file onto a file", []string{"a=1", "b=old"}, "a", "b", Options{}, []string{"b=1"}},
		{"file into a directory", []string{"a=1", "d/"}, "a", "d", Options{}, []string{"d/", "d/a=1"}},
		{"file into missing directories", []string{"a=1"}, "a", "x/y/z", Options{}, []string{"x/", "x/y/", "x/y/z=1"}},
		{"tree", []string{"s/a=1", "s/d/"}, "s", "t", Options{}, []string{"t/", "t/a=1", "t/d/"}},
		{"tree with links", []string{"s/abs->$DIR/s", "s/out->../../out", "s/loop->loop", "s/in->abs"}, "s", "t", Options{},
			[]string{"t/", "t/abs->$DIR/s", "t/in->abs", "t/loop->loop", "t/out->../../out"}},
		{"tree into a directory", []string{"s/a=1", "d/"}, "s", "d", Options{Create: true}, []string{"d/", "d/s/", "d/s/a=1"}},
		{"link", []string{"a=1", "l->a"}, "l", "m", Options{}, []string{"a=1", "m->a"}},
		{"link to nothing", []string{"l->none", "m=old"}, "l", "m", Options{}, []string{"m->none"}},
		{"link to a directory into a directory", []string{"a/", "d/", "l->a"}, "l", "d", Options{}, []string{"a/", "d/", "d/l->a"}},
		{"onto a link", []string{"a=1", "b=old", "l->b"}, "a", "l", Options{}, []string{"b=1", "l->b"}},
	}
	for _, tt := range tests {
		for how, ren := range map[string]renamer{"": rename, " across devices": between} {
			t.Run(tt.name+how, func(t *testing.T) {
				s := newScratch(t)
				s.make(tt.make...)
				r, err := move(t.Context(), atomicfile.New(), s.entry(tt.src), s.at(tt.dst), tt.o, ren)
				if err != nil {
					t.Fatal(err)
				}
				s.want(".", tt.want...)
				if _, err := os.Lstat(r.Into); err != nil {
					t.Errorf("nothing at %s", r.Into)
				}
			})
		}
	}
}

func TestMoveRefuses(t *testing.T) {
	tests := []struct {
		name     string
		make     []string
		src, dst string
		o        Options
		code     fault.Code
		words    string
	}{
		{"nothing", nil, "a", "b", Options{}, fault.FSNotFound, "/a"},
		{"onto itself", []string{"a=1"}, "a", "a", Options{}, fault.FSOperation, "same"},
		{"into where it is", []string{"d/a=1"}, "d/a", "d", Options{}, fault.FSOperation, "same"},
		{"tree into itself", []string{"d/a=1"}, "d", "d/e", Options{}, fault.FSOperation, "inside"},
		{"link onto its target", []string{"a=1", "l->a"}, "l", "a", Options{}, fault.FSOperation, "link"},
		{"tree onto a file", []string{"d/a=1", "f=1"}, "d", "f", Options{}, fault.FSIsFile, "is a file"},
		{"file onto a directory", []string{"a=1", "d/a/"}, "a", "d", Options{}, fault.FSIsDirectory, "is a directory"},
		{"tree onto a tree", []string{"s/a=1", "d/s/"}, "s", "d", Options{}, fault.FSAlreadyExists, "does not merge"},
		{"exists", []string{"a=1", "b=old"}, "a", "b", Options{Create: true}, fault.FSAlreadyExists, "overwrite is false"},
		{"allowed directory", []string{"d/"}, ".", "d/x", Options{}, fault.FSAccessDenied, "allowed directory"},
		{"denied below", []string{"s/d/a.key=1"}, "s", "t", Options{}, fault.FSAccessDenied, "CONDUIT_DENIED_PATHS"},
		{"denied there", []string{"s/d/private/x=1"}, "s", "t", Options{}, fault.FSAccessDenied, "CONDUIT_DENIED_PATHS"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScratch(t, "*.key", "$DIR/t/*/private")
			s.make(tt.make...)
			before := s.tree(".")
			_, err := Move(t.Context(), atomicfile.New(), s.entry(tt.src), s.at(tt.dst), tt.o)
			wantCode(t, err, tt.code, tt.words)
			if _, msg := fault.Of(err); strings.Contains(msg, "a.key") || strings.Contains(msg, "private") {
				t.Errorf("%q tells of what is denied", msg)
			}
			s.want(".", before...)
		})
	}
}

func TestMoveOfATwin(t *testing.T) {
	s := newScratch(t)
	s.make("a=1")
	if err := os.Link(s.path("a"), s.path("b")); err != nil {
		t.Fatal(err)
	}
	_, err := Move(t.Context(), atomicfile.New(), s.at("a"), s.at("b"), Options{Create: true})
	wantCode(t, err, fault.FSAlreadyExists)
	if _, err := Move(t.Context(), atomicfile.New(), s.at("a"), s.at("b"), Options{}); err != nil {
		t.Fatal(err)
	}
	s.want(".", "b=1")
}

// An allowed directory may lie in another; then a place below it does not tell
// of the directories above.
func TestIntoItselfByAnotherAllowedDirectory(t *testing.T) {
	s := newScratch(t)
	s.make("d/nested/x/", "d/a=1")
	r, _, err := roots.New(roots.Config{Allowed: []string{s.dir, s.path("d/nested")}, Project: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	s.roots = r
	_, err = Copy(t.Context(), atomicfile.New(), s.at("d"), s.at("d/nested/x"), Options{})
	wantCode(t, err, fault.FSOperation, "inside")
	s.want(".", "d/", "d/a=1", "d/nested/", "d/nested/x/")
}

// Where one directory has several spellings, what it is decides.
func TestIntoItselfByAnotherSpelling(t *testing.T) {
	s := newScratch(t)
	s.make("dir/e/", "other/")
	fi, err := os.Lstat(s.path("dir"))
	if err != nil {
		t.Fatal(err)
	}
	from := s.at("dir")
	from.Abs = s.path("DIR")
	if !inside(fi, from, s.at("dir/e/new")) {
		t.Error("dir/e/new is not taken to be inside DIR")
	}
	if inside(fi, from, s.at("other/new")) {
		t.Error("other/new is taken to be inside DIR")
	}
}

func TestVerify(t *testing.T) {
	s := newScratch(t)
	s.make("a=1", "same=1", "other=2")
	for name, want := range map[string]bool{"same": true, "other": false} {
		a, err := os.Open(s.path("a"))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		b, err := os.Open(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := verify(t.Context(), a, b); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A link put in the place of a directory that is being emptied is not followed.
func TestOnlyTheDirectoryMeantIsEmptied(t *testing.T) {
	s := newScratch(t)
	s.make("precious/a=1", "l->precious")
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = (&remover{}).empty(t.Context(), root, "l", s.path("l"), 0)
	wantCode(t, err, fault.FSDeleteFailed, "exchanged")
	s.want("precious", "a=1")
}

func TestMoveThatCannotRemove(t *testing.T) {
	s := newScratch(t)
	s.make("a=1")
	o := Options{Progress: func(int64) { os.Remove(s.path("a")) }}
	_, err := move(t.Context(), atomicfile.New(), s.at("a"), s.at("b"), o, func(*atomicfile.Writer, place.Place, place.Place, Options) (Report, error) {
		return Report{}, syscall.EXDEV
	})
	wantCode(t, err, fault.FSDeleteFailed, "was copied to")
	s.want(".", "b=1")
}

func TestMoveBetweenAllowedDirectories(t *testing.T) {
	a, b := newScratch(t), newScratch(t)
	both, _, err := roots.New(roots.Config{Allowed: []string{a.dir, b.dir}, Project: a.dir})
	if err != nil {
		t.Fatal(err)
	}
	a.make("s/x=1", "f=2")
	a.roots, b.roots = both, both
	for _, name := range []string{"s", "f"} {
		if r, err := Move(t.Context(), atomicfile.New(), a.at(name), b.at("new/"+name), Options{Create: true}); err != nil || r.Files != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	a.want(".")
	b.want(".", "new/", "new/f=2", "new/s/", "new/s/x=1")
}

func TestDelete(t *testing.T) {
	tests := []struct {
		name      string
		make      []string
		at        string
		recursive bool
		n         int64
		want      []string
	}{
		{"file", []string{"a=1", "b=2"}, "a", false, 1, []string{"b=2"}},
		{"file, recursive", []string{"a=1"}, "a", true, 1, nil},
		{"empty directory", []string{"d/"}, "d", false, 1, nil},
		{"link", []string{"a=1", "l->a"}, "l", false, 1, []string{"a=1"}},
		{"link to a directory", []string{"d/a=1", "l->d"}, "l", true, 1, []string{"d/", "d/a=1"}},
		{"link to nothing", []string{"l->none"}, "l", false, 1, nil},
		{"tree", []string{"s/a=1", "s/d/e/f=2", "s/l->../kept", "s/m->../../out", "s/.conduit-abcdefghijkl.tmp=x", "kept/a=1"}, "s", true, 8, []string{"kept/", "kept/a=1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScratch(t)
			if err := os.WriteFile(s.path("../out/precious"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s.make(tt.make...)
			n, err := Delete(t.Context(), atomicfile.New(), s.entry(tt.at), tt.recursive, nil, nil)
			if err != nil || n != tt.n {
				t.Errorf("n = %d, %v; want %d", n, err, tt.n)
			}
			s.want(".", tt.want...)
			if _, err := os.Stat(s.path("../out/precious")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDeleteRefuses(t *testing.T) {
	s := newScratch(t, "*.key")
	s.make("full/a=1", "secret/d/a.key=1", "above/nested/")
	r, _, err := roots.New(roots.Config{Allowed: []string{s.dir, s.path("above/nested")}, Project: s.dir, Denied: []string{"*.key"}})
	if err != nil {
		t.Fatal(err)
	}
	s.roots = r
	before := s.tree(".")
	for _, tt := range []struct {
		at        string
		recursive bool
		code      fault.Code
		words     string
	}{
		{"none", false, fault.FSNotFound, "none"},
		{"full", false, fault.FSDeleteFailed, "recursive"},
		{".", true, fault.FSAccessDenied, "allowed directory"},
		{"above", true, fault.FSAccessDenied, "allowed directory"},
		{"above/nested", true, fault.FSAccessDenied, "allowed directory"},
		{"secret", true, fault.FSAccessDenied, "CONDUIT_DENIED_PATHS"},
	} {
		_, err := Delete(t.Context(), atomicfile.New(), s.entry(tt.at), tt.recursive, nil, nil)
		wantCode(t, err, tt.code, tt.words)
	}
	s.want(".", before...)
}

func TestDeleteReportsAndStops(t *testing.T) {
	s := newScratch(t)
	for n := range 100 {
		s.make(fmt.Sprintf("s/%02d=1", n))
	}
	ctx, cancel := context.WithCancel(t.Context())
	n, err := Delete(ctx, atomicfile.New(), s.at("s"), true, nil, func(done, total int64) {
		if total != 101 {
			t.Errorf("total = %d", total)
		}
		if done == 10 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 10 || len(s.tree("s")) != 90 {
		t.Errorf("%d deleted, %v, %d left", n, err, len(s.tree("s")))
	}
}

func TestMkdir(t *testing.T) {
	s := newScratch(t)
	s.make("f=1", "d/")
	for _, tt := range []struct {
		at        string
		recursive bool
		created   bool
		code      fault.Code
	}{
		{"new", false, true, ""},
		{"new", false, false, ""},
		{"new", true, false, ""},
		{".", false, false, ""},
		{"a/b/c", false, false, fault.FSNotFound},
		{"a/b/c", true, true, ""},
		{"f", false, false, fault.FSIsFile},
		{"f", true, false, fault.FSIsFile},
	} {
		created, err := Mkdir(s.at(tt.at), tt.recursive)
		if tt.code != "" {
			wantCode(t, err, tt.code)
		} else if err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
		if created != tt.created {
			t.Errorf("%+v: created = %v", tt, created)
		}
	}
	s.want(".", "a/", "a/b/", "a/b/c/", "d/", "f=1", "new/")
}

func TestTouch(t *testing.T) {
	s := newScratch(t)
	s.make("f=kept", "d/", "l->f", "dangling->born")
	old := time.Now().Add(-time.Hour)
	for _, tt := range []struct {
		at, stat string
		created  bool
	}{{"f", "f", false}, {"d", "d", false}, {"l", "f", false}, {"x/y/new", "x/y/new", true}, {"dangling", "born", true}, {".", ".", false}} {
		if !tt.created {
			if err := os.Chtimes(s.path(tt.stat), old, old); err != nil {
				t.Fatal(err)
			}
		}
		created, err := Touch(atomicfile.New(), s.at(tt.at))
		if err != nil || created != tt.created {
			t.Errorf("%s: created = %v, %v", tt.at, created, err)
			continue
		}
		if fi, err := os.Lstat(s.path(tt.stat)); err != nil || fi.ModTime().Before(old.Add(30*time.Minute)) {
			t.Errorf("%s: %v, %v", tt.at, fi.ModTime(), err)
		}
	}
	s.want(".", "born=", "d/", "dangling->born", "f=kept", "l->f", "x/", "x/y/", "x/y/new=")
}

func BenchmarkCopyTree(b *testing.B) {
	s := newScratch(b)
	text := strings.Repeat("line of text\n", 400)
	for n := range 2000 {
		s.make(fmt.Sprintf("s/%d/%d=%s", n/40, n, text))
	}
	src, w := s.at("s"), atomicfile.New()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		if _, err := Copy(b.Context(), w, src, s.at(fmt.Sprint("t", n)), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
