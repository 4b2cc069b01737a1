package journal

import (
	"bytes"
	"context"

	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A scratch is a directory with a journal beside it.
type scratch struct {
	testing.TB
	dir, state string
	roots      *roots.Roots
	w          *atomicfile.Writer
	j          *Journal
	log        *bytes.Buffer
}

const testMax = 64 << 20

func newScratch(t testing.TB, denied ...string) *scratch {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scratch{TB: t, dir: filepath.Join(base, "in"), state: filepath.Join(base, "state", "journal"), w: atomicfile.New(), log: &bytes.Buffer{}}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if s.roots, _, err = roots.New(roots.Config{Allowed: []string{s.dir}, Home: s.dir, Project: s.dir, Denied: denied, State: []string{s.state}}); err != nil {
		t.Fatal(err)
	}
	s.j = s.journal(testMax)
	return s
}

// journal opens the journal as another server would.
func (s *scratch) journal(max int64) *Journal {
	s.Helper()
	j := New(Settings{Dir: s.state, Max: max}, slog.New(slog.NewTextHandler(s.log, nil)))
	s.Cleanup(func() { j.Close() })
	return j
}

func (s *scratch) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *scratch) at(name string) place.Place {
	s.Helper()
	p, err := s.roots.Resolve(s.path(name))
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// entry is at for the link itself where name is one.
func (s *scratch) entry(name string) place.Place {
	s.Helper()
	p, err := s.at(name).Entry()
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func (s *scratch) write(name, content string, mode fs.FileMode) {
	s.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
	s.ok(os.Chmod(s.path(name), mode))
}

func (s *scratch) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scratch) read(name string) string {
	s.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

// age gives all that is there a modification time of its own, long ago.
func (s *scratch) age() {
	s.Helper()
	n := 0
	var dirs []string
	s.ok(filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		n++
		when := time.Date(2001, 2, 3, 4, 5, n, n*1001, time.UTC)
		if err == nil && d.Type()&fs.ModeSymlink == 0 {
			err = os.Chtimes(path, when, when)
		}
		dirs = append(dirs, path)
		return err
	}))
}

// picture tells all that is in the directory: names, types, modes, times and
// contents. Times of directories that the test does not delete are left out,
// since what happens in them changes them.
func (s *scratch) picture(times ...string) string {
	s.Helper()
	var b strings.Builder
	s.ok(filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.dir, path)
		fi, err := os.Lstat(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%q %v", rel, fi.Mode())
		switch {
		case fi.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %d %.200q", fi.ModTime().UnixNano(), content)
		case fi.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			fmt.Fprintf(&b, " -> %q", target)
		case slices.Contains(times, rel):
			fmt.Fprintf(&b, " %d", fi.ModTime().UnixNano())
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

func (s *scratch) undoer() Undoer {
	return Undoer{Journal: s.j, Writer: s.w, Resolve: s.roots.Resolve}
}

func (s *scratch) undo(id string) Report {
	s.Helper()
	r, err := s.undoer().Undo(s.Context(), id, false)
	if err != nil {
		s.Fatalf("undo %q: %v", id, err)
	}
	return r
}

// change runs do as one change of one part and returns what its result says.
func (s *scratch) change(op string, do func(p *Part)) Mark {
	c := s.j.Begin(op)
	defer c.Done()
	p := c.Part()
	do(p)
	return p.Mark()
}

func (s *scratch) put(p *Part, name, content string, mode atomicfile.Mode) {
	s.Helper()
	job := &atomicfile.Job{Place: s.at(name), Content: content, Mode: mode, Keep: p}
	s.ok(s.w.Run(s.Context(), []*atomicfile.Job{job}, nil))
	s.ok(job.Err)
}

func (s *scratch) delete(p *Part, name string) {
	s.Helper()
	_, err := filetree.Delete(s.Context(), s.w, s.entry(name), true, p, nil)
	s.ok(err)
}

func (s *scratch) move(p *Part, from, to string) {
	s.Helper()
	_, err := filetree.Move(s.Context(), s.w, s.entry(from), s.at(to), filetree.Options{Keep: p})
	s.ok(err)
}

func (s *scratch) copy(p *Part, from, to string) {
	s.Helper()
	_, err := filetree.Copy(s.Context(), s.w, s.at(from), s.at(to), filetree.Options{Keep: p})
	s.ok(err)
}

func wantCode(t testing.TB, err error, code fault.Code, words ...string) {
	t.Helper()
	have, msg := fault.Of(err)
	if err == nil || have != code {
		t.Errorf("err = %v (%s), want %s", err, have, code)
	}
	for _, w := range words {
		if !strings.Contains(msg, w) {
			t.Errorf("%q does not say %q", msg, w)
		}
	}
}

// operations are the ways in which something is destroyed, or made.
var operations = []struct {
	name   string
	do     func(s *scratch, p *Part)
	times  []string // directories whose times come back
	parted bool     // redoing it parts a hard link from its twin
}{
	{"put over", func(s *scratch, p *Part) { s.put(p, "a", "new content", atomicfile.Overwrite) }, nil, false},
	{"put over twice", func(s *scratch, p *Part) {
		s.put(p, "a", "first", atomicfile.Overwrite)
		s.put(p, "a", "second", atomicfile.Overwrite)
	}, nil, false},
	{"put new", func(s *scratch, p *Part) { s.put(p, "new", "new", atomicfile.Overwrite) }, nil, false},
	{"put new with parents", func(s *scratch, p *Part) { s.put(p, "x/y/z/new", "new", atomicfile.Overwrite) }, nil, false},
	{"put empty over", func(s *scratch, p *Part) { s.put(p, "a", "", atomicfile.Overwrite) }, nil, false},
	{"put over empty", func(s *scratch, p *Part) { s.put(p, "empty", "x", atomicfile.Overwrite) }, nil, false},
	{"put over special mode", func(s *scratch, p *Part) { s.put(p, "special", "x", atomicfile.Overwrite) }, nil, false},
	{"put over a hard link", func(s *scratch, p *Part) { s.put(p, "twin1", "parted", atomicfile.Overwrite) }, nil, false},
	{"put through a link", func(s *scratch, p *Part) { s.put(p, "l", "through", atomicfile.Overwrite) }, nil, false},
	{"append", func(s *scratch, p *Part) { s.put(p, "a", "more", atomicfile.Append) }, nil, false},
	{"append twice", func(s *scratch, p *Part) {
		s.put(p, "a", "more", atomicfile.Append)
		s.put(p, "a", "and more", atomicfile.Append)
	}, nil, false},
	{"append to a hard link", func(s *scratch, p *Part) { s.put(p, "twin1", "more", atomicfile.Append) }, nil, true},
	{"append, then put over", func(s *scratch, p *Part) {
		s.put(p, "a", "more", atomicfile.Append)
		s.put(p, "a", "all new", atomicfile.Overwrite)
	}, nil, false},
	{"put over, then append", func(s *scratch, p *Part) {
		s.put(p, "a", "all new", atomicfile.Overwrite)
		s.put(p, "a", "more", atomicfile.Append)
	}, nil, false},
	{"append, then delete", func(s *scratch, p *Part) {
		s.put(p, "a", "more", atomicfile.Append)
		s.delete(p, "a")
	}, nil, false},
	{"put new, then delete", func(s *scratch, p *Part) {
		s.put(p, "new", "new", atomicfile.Overwrite)
		s.delete(p, "new")
		s.put(p, "a", "over", atomicfile.Overwrite)
	}, nil, false},
	{"delete, then put", func(s *scratch, p *Part) {
		s.delete(p, "a")
		s.put(p, "a", "again", atomicfile.Overwrite)
	}, nil, false},
	{"delete a file", func(s *scratch, p *Part) { s.delete(p, "a") }, nil, false},
	{"delete a link", func(s *scratch, p *Part) { s.delete(p, "l") }, nil, false},
	{"delete a hard link", func(s *scratch, p *Part) { s.delete(p, "twin1") }, nil, false},
	{"delete an empty directory", func(s *scratch, p *Part) {
		_, err := filetree.Delete(s.Context(), s.w, s.entry("d/hollow"), false, p, nil)
		s.ok(err)
	}, []string{"d/hollow"}, false},
	{"delete a tree", func(s *scratch, p *Part) { s.delete(p, "d") }, []string{"d", "d/sub", "d/sub/deep", "d/hollow", "d/closed"}, false},
	{"delete part, then the tree", func(s *scratch, p *Part) {
		s.delete(p, "d/sub/f")
		s.delete(p, "d/sub/deep")
		s.delete(p, "d")
	}, []string{"d/hollow", "d/sub/deep"}, false},
	{"move", func(s *scratch, p *Part) { s.move(p, "a", "b2") }, nil, false},
	{"move with parents", func(s *scratch, p *Part) { s.move(p, "a", "p/q/b2") }, nil, false},
	{"move over", func(s *scratch, p *Part) { s.move(p, "a", "b") }, nil, false},
	{"move into", func(s *scratch, p *Part) { s.move(p, "a", "d") }, nil, false},
	{"move over a hard link", func(s *scratch, p *Part) { s.move(p, "a", "twin1") }, nil, false},
	{"move a hard link to its twin", func(s *scratch, p *Part) { s.move(p, "twin1", "twin2") }, nil, false},
	{"move a link over", func(s *scratch, p *Part) { s.move(p, "l", "a") }, nil, false},
	{"move a directory", func(s *scratch, p *Part) { s.move(p, "d", "e") }, []string{"d/sub"}, false},
	{"move on and on", func(s *scratch, p *Part) {
		s.move(p, "a", "a1")
		s.move(p, "a1", "b")
		s.move(p, "b", "c")
	}, nil, false},
	{"move round", func(s *scratch, p *Part) {
		s.move(p, "a", "t")
		s.move(p, "b", "a")
		s.move(p, "t", "b")
	}, nil, false},
	{"move, then put over", func(s *scratch, p *Part) {
		s.move(p, "a", "b")
		s.put(p, "b", "changed after", atomicfile.Overwrite)
	}, nil, false},
	{"copy", func(s *scratch, p *Part) { s.copy(p, "a", "new") }, nil, false},
	{"copy over", func(s *scratch, p *Part) { s.copy(p, "a", "b") }, nil, false},
	{"copy a tree", func(s *scratch, p *Part) { s.copy(p, "d", "n/e") }, nil, false},
	{"copy a tree over another", func(s *scratch, p *Part) { s.copy(p, "d", "into") }, nil, false},
}

// fill puts something of every kind into the directory.
func (s *scratch) fill() {
	s.write("a", "old content of a\n", 0o640)
	s.write("b", "b, and longer than a is", 0o755)
	s.write("empty", "", 0o600)
	s.write("special", "setgid", 0o644|fs.ModeSetgid)
	s.write("twin1", "twins", 0o644)
	s.ok(os.Link(s.path("twin1"), s.path("twin2")))
	s.ok(os.Symlink("target", s.path("l")))
	s.write("target", "what the link is for", 0o600)
	s.write("d/f1", "one", 0o644)
	s.write("d/f2", "two", 0o400)
	s.write("d/sub/f", "three", 0o644)
	s.write("d/sub/same", "three", 0o755)
	s.write("d/sub/deep/f", strings.Repeat("four", 100_000), 0o644)
	s.ok(os.Symlink("f1", s.path("d/link")))
	s.ok(os.Symlink("nowhere", s.path("d/sub/dangling")))
	s.ok(os.Link(s.path("d/f1"), s.path("d/f1 again")))
	s.ok(os.Mkdir(s.path("d/hollow"), 0o750))
	s.write("d/closed/f", "in a directory", 0o444)
	s.ok(os.Chmod(s.path("d/closed"), 0o700))
	s.write("into/d/f1", "there before", 0o600)
	s.write("into/d/mine", "stays", 0o600)
	s.age()
}

func TestUndoAndRedo(t *testing.T) {
	for _, how := range []string{"", " by copying"} {
		for _, op := range operations {
			t.Run(op.name+how, func(t *testing.T) {
				t.Parallel()
				s := newScratch(t)
				if how != "" {
					s.j.unlinked = true
				}
				s.fill()
				before := s.picture(op.times...)
				mark := s.change("test", func(p *Part) { op.do(s, p) })
				after := s.picture()
				if mark.ChangeID == "" || mark.Undo != nil {
					t.Fatalf("mark is %+v", mark)
				}
				r := s.undo("")
				if got := s.picture(op.times...); got != before {
					t.Errorf("after undo\n%s\nwant\n%s", got, before)
				}
				if r.Undone != mark.ChangeID || r.ChangeID == "" || r.ChangeID == mark.ChangeID || len(r.Files) == 0 {
					t.Errorf("report is %+v", r)
				}
				again := s.undo(r.ChangeID)
				if op.parted { // what is redone is the one file alone
					return
				}
				if got := s.picture(); got != after {
					t.Errorf("after redo\n%s\nwant\n%s", got, after)
				}
				s.undo(again.ChangeID)
				if got := s.picture(op.times...); got != before {
					t.Errorf("after undoing the redo\n%s\nwant\n%s", got, before)
				}
				_, err := s.undoer().Undo(t.Context(), mark.ChangeID, false)
				wantCode(t, err, fault.PreconditionFailed, "undone already", r.ChangeID)
			})
		}
	}
}

var ctx = context.Background()
