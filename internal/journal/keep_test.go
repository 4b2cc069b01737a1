package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func unkept(m Mark) bool { return m.ChangeID == "" && m.Undo != nil && !*m.Undo }

// kept returns the names of all that the journal keeps, records left out.
func (s *scratch) kept() []string {
	s.Helper()
	var names []string
	s.ok(filepath.WalkDir(filepath.Join(s.state, changesDir), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was ever kept
		}
		if err == nil && !d.IsDir() && d.Name() != recordName {
			names = append(names, d.Name())
		}
		return err
	}))
	return names
}

func TestWhatIsTooLargeIsNotKept(t *testing.T) {
	s := newScratch(t)
	const max = 1 << 20
	s.j = s.journal(max)
	s.write("fits", strings.Repeat("x", max/10), 0o600)
	s.write("large", strings.Repeat("x", max/10+1), 0o600)
	s.write("many/a", strings.Repeat("x", max/20), 0o600)
	s.write("many/b", strings.Repeat("x", max/20), 0o600)
	s.write("many/c", "xx", 0o600)

	c := s.j.Begin("test")
	fits, large, many := c.Part(), c.Part(), c.Part()
	s.put(fits, "fits", "new", atomicfile.Overwrite)
	s.put(large, "large", "new", atomicfile.Overwrite)
	s.delete(many, "many")
	c.Done()
	if m := fits.Mark(); m.ChangeID == "" {
		t.Errorf("what fits: %+v", m)
	}
	if m := large.Mark(); !unkept(m) {
		t.Errorf("what is too large: %+v", m)
	}
	if m := many.Mark(); !unkept(m) {
		t.Errorf("what is too large together: %+v", m)
	}
	if n := len(s.kept()); n != 1 {
		t.Errorf("%d files are kept", n)
	}
	r := s.undo("")
	if len(r.Files) != 1 || r.Files[0].Path != s.path("fits") || !r.Lost || s.read("large") != "new" {
		t.Errorf("undo: %+v", r)
	}

	// An appended file is kept as its size, however large.
	if m := s.change("test", func(p *Part) { s.put(p, "large", "more", atomicfile.Append) }); m.ChangeID == "" {
		t.Errorf("append: %+v", m)
	}
	s.undo("")
	if s.read("large") != "new" {
		t.Errorf("large holds %q", s.read("large"))
	}
}

func TestPruning(t *testing.T) {
	s := newScratch(t)
	const max = 1 << 20
	s.j = s.journal(max)
	var ids []string
	for n := range 40 {
		s.write("f", strings.Repeat(fmt.Sprint(n%10), 90_000), 0o600)
		ids = append(ids, s.change("test", func(p *Part) { s.put(p, "f", "new", atomicfile.Overwrite) }).ChangeID)
	}
	left, err := s.j.list()
	s.ok(err)
	if len(left) < 5 || len(left) > 12 {
		t.Errorf("%d changes are left", len(left))
	}
	for i, id := range left {
		if id != ids[len(ids)-len(left)+i] {
			t.Fatalf("left are %v of %v", left, ids)
		}
	}
	if len(s.kept()) != len(left) {
		t.Errorf("%d files for %d changes", len(s.kept()), len(left))
	}
	_, err = s.undoer().Undo(t.Context(), ids[0], false)
	wantCode(t, err, fault.FSNotFound, ids[0], "CONDUIT_JOURNAL_MAX_BYTES")
	s.undo("")
	if s.read("f") != strings.Repeat("9", 90_000) {
		t.Error("the last change was not undone")
	}
	// A change under way is never dropped, old as it may be.
	c := s.j.Begin("test")
	p := c.Part()
	s.write("g", "old", 0o600)
	s.put(p, "g", "new", atomicfile.Overwrite)
	for range 20 {
		s.write("f", strings.Repeat("x", 90_000), 0o600)
		s.change("test", func(p *Part) { s.put(p, "f", "new", atomicfile.Overwrite) })
	}
	c.Done()
	s.undo(p.Mark().ChangeID)
	if s.read("g") != "old" {
		t.Errorf("g holds %q", s.read("g"))
	}
}

// A server that starts leaves alone what another has under way.
func TestChangeUnderWay(t *testing.T) {
	s := newScratch(t)
	s.fill()
	before := s.picture()
	c := s.j.Begin("test")
	p := c.Part()
	s.put(p, "a", "new", atomicfile.Overwrite)
	id := p.Mark().ChangeID
	own := s.j
	s.j = s.journal(testMax)
	_, err := s.undoer().Undo(t.Context(), id, false)
	wantCode(t, err, fault.PreconditionFailed, "under way")
	_, err = s.undoer().Undo(t.Context(), "", false)
	wantCode(t, err, fault.FSNotFound)
	if a, err := own.load(id); err != nil || a.done {
		t.Errorf("the other server ended it: %+v, %v", a, err)
	}
	s.put(p, "b", "new", atomicfile.Overwrite)
	c.Done()
	s.undo(id)
	if got := s.picture(); got != before {
		t.Errorf("after undo\n%s\nwant\n%s", got, before)
	}
}

// The record of a part that is given up says so before what it had kept goes.
func TestGivenUp(t *testing.T) {
	s := newScratch(t)
	s.j = s.journal(1 << 20)
	s.write("a", "old", 0o600)
	s.write("large", strings.Repeat("x", 1<<20), 0o600)
	c := s.j.Begin("test")
	defer c.Done()
	p := c.Part()
	s.put(p, "a", "new", atomicfile.Overwrite)
	id := p.Mark().ChangeID
	if n := len(s.kept()); n != 1 {
		t.Errorf("%d files are kept", n)
	}
	d, err := s.w.Open(s.at("large").Parent(), false)
	s.ok(err)
	defer d.Close()
	d.BackUp(t.Context(), p, "large", atomicfile.Replaced)
	if a, err := s.j.load(id); err != nil || len(a.steps) != 0 || len(s.kept()) != 0 {
		t.Errorf("%+v, %v; kept %v", a.steps, err, s.kept())
	}
}

func TestDeniedIsNeverKept(t *testing.T) {
	s := newScratch(t, "*.key")
	s.write("a.key", "secret", 0o600)
	at := s.at("a") // the guard gives no place for the denied file itself
	at = at.Parent().Child("a.key")
	m := s.change("test", func(p *Part) {
		d, err := s.w.Open(at.Parent(), false)
		s.ok(err)
		defer d.Close()
		d.BackUp(t.Context(), p, "a.key", atomicfile.Replaced)
		p.Expect(at.Abs, nil, nil)
	})
	if !unkept(m) || len(s.kept()) != 0 {
		t.Errorf("mark %+v, kept %v", m, s.kept())
	}
}

func TestUnusableDirectory(t *testing.T) {
	s := newScratch(t)
	s.j.Close()
	s.ok(os.RemoveAll(filepath.Dir(s.state)))
	s.ok(os.WriteFile(filepath.Dir(s.state), nil, 0o600))
	s.j = s.journal(testMax)
	s.write("a", "old", 0o600)
	for range 3 {
		if m := s.change("test", func(p *Part) { s.put(p, "a", "new", atomicfile.Overwrite) }); !unkept(m) || s.read("a") != "new" {
			t.Errorf("mark %+v, a holds %q", m, s.read("a"))
		}
	}
	if n := strings.Count(s.log.String(), "level=WARN"); n != 1 || !strings.Contains(s.log.String(), s.state) {
		t.Errorf("log: %s", s.log)
	}
	_, err := s.undoer().Undo(t.Context(), "", false)
	wantCode(t, err, fault.FSOperation, "cannot be written")
	if list, err := s.undoer().Recent(5); err != nil || len(list) > 0 {
		t.Errorf("recent: %v, %v", list, err)
	}
}

// A directory that goes away under a server is an unusable one.
func TestDirectoryGone(t *testing.T) {
	s := newScratch(t)
	s.write("a", "older", 0o600)
	s.change("test", func(p *Part) { s.put(p, "a", "old", atomicfile.Overwrite) })
	s.ok(os.RemoveAll(s.state))
	if m := s.change("test", func(p *Part) { s.put(p, "a", "new", atomicfile.Overwrite) }); !unkept(m) || s.read("a") != "new" {
		t.Errorf("mark %+v, a holds %q", m, s.read("a"))
	}
	if n := strings.Count(s.log.String(), "level=WARN"); n != 1 {
		t.Errorf("log: %s", s.log)
	}
}

// The directory is made with the first change that destroys or makes something,
// and not by looking for changes.
func TestNothingIsMadeBeforeTheFirstChange(t *testing.T) {
	s := newScratch(t)
	if list, err := s.undoer().Recent(5); err != nil || len(list) > 0 {
		t.Errorf("recent: %v, %v", list, err)
	}
	for _, id := range []string{"", s.j.newID()} {
		_, err := s.undoer().Undo(t.Context(), id, false)
		wantCode(t, err, fault.FSNotFound)
	}
	s.change("test", func(p *Part) {})
	if _, err := os.Lstat(filepath.Dir(s.state)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", filepath.Dir(s.state), err)
	}
	s.change("test", func(p *Part) { s.put(p, "a", "new", atomicfile.Overwrite) })
	s.j = s.journal(testMax) // another server, which has changed nothing yet
	list, err := s.undoer().Recent(5)
	if err != nil || len(list) != 1 {
		t.Fatalf("recent: %v, %v", list, err)
	}
	s.undo(list[0].ID)
	if _, err := os.Lstat(s.path("a")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestSwitchedOff(t *testing.T) {
	s := newScratch(t)
	for _, settings := range []Settings{{Max: testMax}} {
		s.j = New(settings, slog.New(slog.NewTextHandler(s.log, nil)))
		s.write("a", "old", 0o600)
		if m := s.change("test", func(p *Part) { s.put(p, "a", "new", atomicfile.Overwrite); s.delete(p, "a") }); m != (Mark{}) {
			t.Errorf("%+v: mark is %+v", settings, m)
		}
		_, err := s.undoer().Undo(t.Context(), "", false)
		wantCode(t, err, fault.FSOperation, "switched off")
	}
	if s.log.Len() > 0 {
		t.Errorf("log: %s", s.log)
	}
}

func TestModes(t *testing.T) {
	s := newScratch(t)
	s.ok(os.MkdirAll(s.state, 0o755))
	s.write("a", "old", 0o644)
	s.change("test", func(p *Part) { s.put(p, "a", "new", atomicfile.Overwrite) })
	n := 0
	s.ok(filepath.WalkDir(s.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		switch {
		case d.IsDir():
			want = 0o700
		case d.Name() != recordName:
			want = 0o644 // that of the file, to be given back
		}
		if n++; fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		return nil
	}))
	if n != 6 { // the directory, changes, open, the change, its record, a
		t.Errorf("%d entries", n)
	}
}

func TestChangedByOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(s *scratch, p *Part)
		meddle func(s *scratch)
		at     string
	}{
		"overwritten":      {func(s *scratch, p *Part) { s.put(p, "a", "new", atomicfile.Overwrite) }, func(s *scratch) { s.write("a", "theirs", 0o600) }, "a"},
		"created":          {func(s *scratch, p *Part) { s.put(p, "n", "new", atomicfile.Overwrite) }, func(s *scratch) { s.write("n", "theirs", 0o600) }, "n"},
		"deleted":          {func(s *scratch, p *Part) { s.delete(p, "a") }, func(s *scratch) { s.write("a", "theirs", 0o600) }, "a"},
		"deleted in tree":  {func(s *scratch, p *Part) { s.delete(p, "d") }, func(s *scratch) { s.write("d/sub/f", "theirs", 0o600) }, "d/sub/f"},
		"moved":            {func(s *scratch, p *Part) { s.move(p, "a", "m") }, func(s *scratch) { s.write("m", "theirs, and longer", 0o600) }, "m"},
		"moved and remade": {func(s *scratch, p *Part) { s.move(p, "a", "m") }, func(s *scratch) { s.write("a", "theirs", 0o600) }, "m"},
		"copied tree":      {func(s *scratch, p *Part) { s.copy(p, "d", "n") }, func(s *scratch) { s.write("n/sub/more", "theirs", 0o600) }, "n"},
		"appended":         {func(s *scratch, p *Part) { s.put(p, "a", "more", atomicfile.Append) }, func(s *scratch) { s.write("a", "theirs", 0o600) }, "a"},
		"removed":          {func(s *scratch, p *Part) { s.put(p, "a", "new", atomicfile.Overwrite) }, func(s *scratch) { os.Remove(s.path("a")) }, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScratch(t)
			s.fill()
			s.change("test", func(p *Part) {
				tt.do(s, p)
				s.put(p, "b", "new", atomicfile.Overwrite)
			})
			tt.meddle(s)
			after := s.picture()
			_, err := s.undoer().Undo(t.Context(), "", false)
			wantCode(t, err, fault.PreconditionFailed, "nothing was undone", s.path(tt.at)+";")
			if got := s.picture(); got != after {
				t.Errorf("it changed\n%s\nto\n%s", after, got)
			}
		})
	}
}

// Who only touches a file, or writes the same again, does not keep it from being
// undone.
func TestTouchedByOthers(t *testing.T) {
	s := newScratch(t)
	s.fill()
	before := s.picture()
	s.change("test", func(p *Part) {
		s.put(p, "a", "new", atomicfile.Overwrite)
		s.put(p, "x/y/n", "new", atomicfile.Overwrite)
	})
	s.ok(os.Remove(s.path("a")))
	s.write("a", "new", 0o600)
	s.write("x/mine", "kept", 0o600)
	r := s.undo("")
	if s.read("x/mine") != "kept" || len(r.Files) != 2 {
		t.Errorf("%+v", r)
	}
	s.ok(os.RemoveAll(s.path("x")))
	if got := s.picture(); got != before {
		t.Errorf("after undo\n%s\nwant\n%s", got, before)
	}
}

// What a program that still has the file open writes to it after it was
// overwritten is not taken for the old content.
func TestKeptContentWrittenTo(t *testing.T) {
	s := newScratch(t)
	s.write("a", "old", 0o600)
	f, err := os.OpenFile(s.path("a"), os.O_WRONLY|os.O_APPEND, 0)
	s.ok(err)
	defer f.Close()
	s.change("test", func(p *Part) { s.put(p, "a", "new", atomicfile.Overwrite) })
	_, err = f.WriteString(" and more")
	s.ok(err)
	_, err = s.undoer().Undo(t.Context(), "", false)
	wantCode(t, err, fault.FSOperation, s.path("a"), "still had the file open")
	if s.read("a") != "new" {
		t.Errorf("a holds %q", s.read("a"))
	}
}

// An undo that fails midway is taken back.
func TestUndoThatFails(t *testing.T) {
	s := newScratch(t)
	s.fill()
	s.change("test", func(p *Part) {
		s.delete(p, "d/sub")
		s.put(p, "a", "new", atomicfile.Overwrite)
		s.put(p, "b", "new", atomicfile.Overwrite)
	})
	after := s.picture()
	u := s.undoer()
	calls := 0
	u.before = func(a act) error {
		if calls++; calls == 3 {
			return fault.New(fault.FSWriteFailed, "the disk is full")
		}
		return nil
	}
	_, err := u.Undo(t.Context(), "", false)
	wantCode(t, err, fault.FSWriteFailed, "the disk is full")
	if got := s.picture(); got != after {
		t.Errorf("it left\n%s\nwant\n%s", got, after)
	}
}

func TestFailedStepsAreForgotten(t *testing.T) {
	s := newScratch(t)
	s.fill()
	if m := s.change("test", func(p *Part) {
		_, err := filetree.Delete(t.Context(), s.w, s.entry("d"), false, p, nil)
		wantCode(t, err, fault.FSDeleteFailed)
		job := &atomicfile.Job{Place: s.at("a"), Content: "new", IfMatch: "no such etag", Keep: p}
		s.ok(s.w.Run(t.Context(), []*atomicfile.Job{job}, nil))
		wantCode(t, job.Err, fault.PreconditionFailed)
		_, err = filetree.Move(t.Context(), s.w, s.at("a"), s.at("into/d"), filetree.Options{Create: true, Keep: p})
		s.ok(err)
		_, err = filetree.Move(t.Context(), s.w, s.at("b"), s.at("into/d/a"), filetree.Options{Create: true, Keep: p})
		wantCode(t, err, fault.FSAlreadyExists)
		s.move(p, "into/d/a", "a")
	}); m.ChangeID == "" {
		t.Errorf("mark is %+v", m)
	}
	if m := s.change("test", func(p *Part) {
		_, err := filetree.Delete(t.Context(), s.w, s.entry("d"), false, p, nil)
		wantCode(t, err, fault.FSDeleteFailed)
	}); m != (Mark{}) {
		t.Errorf("mark of a change that failed is %+v", m)
	}
}

func TestNamesThatAreNotUTF8(t *testing.T) {
	s := newScratch(t)
	s.write("d/\xff/a\xfe", "odd", 0o640)
	s.ok(os.Symlink("a\xfe", s.path("d/\xff/l")))
	before := s.picture()
	s.change("test", func(p *Part) { s.delete(p, "d") })
	s.undo("")
	if got := s.picture(); got != before {
		t.Errorf("after undo\n%s\nwant\n%s", got, before)
	}
}

func TestRecent(t *testing.T) {
	s := newScratch(t)
	s.fill()
	first := s.change("write.put", func(p *Part) {
		s.put(p, "a", "new", atomicfile.Overwrite)
		s.put(p, "x/n", "new", atomicfile.Overwrite)
	})
	second := s.change("write.delete", func(p *Part) { s.delete(p, "d") })
	third := s.change("write.move", func(p *Part) { s.move(p, "b", "c") })
	undo := s.undo("")
	list, err := s.undoer().Recent(10)
	s.ok(err)
	if len(list) != 4 {
		t.Fatalf("%+v", list)
	}
	for i, want := range []struct {
		id, op string
		files  []RecentFile
		undone string
	}{
		{undo.ChangeID, "edit.undo", []RecentFile{{Path: s.path("b"), From: s.path("c"), Kind: "moved"}}, ""},
		{third.ChangeID, "write.move", []RecentFile{{Path: s.path("c"), From: s.path("b"), Kind: "moved"}}, undo.ChangeID},
		{second.ChangeID, "write.delete", []RecentFile{{Path: s.path("d"), Kind: "deleted"}}, ""},
		{first.ChangeID, "write.put", []RecentFile{{Path: s.path("a"), Kind: "changed"}, {Path: s.path("x/n"), Kind: "created"}}, ""},
	} {
		r := list[i]
		if r.ID != want.id || r.Op != want.op || fmt.Sprint(r.Files) != fmt.Sprint(want.files) || r.Undone != want.undone || r.Undoable != (want.undone == "") {
			t.Errorf("%d: %+v, want %+v", i, r, want)
		}
	}
	if list[3].Bytes != int64(len("old content of a\n")) || list[2].Bytes < 400_000 {
		t.Errorf("bytes: %d, %d", list[3].Bytes, list[2].Bytes)
	}
	if list, err := s.undoer().Recent(1); err != nil || len(list) != 1 || list[0].ID != undo.ChangeID {
		t.Errorf("%v, %v", list, err)
	}
	u := newScratch(t).undoer()
	u.Journal = s.j
	if list, err := u.Recent(10); err != nil || len(list) != 0 {
		t.Errorf("for who may use other directories: %v, %v", list, err)
	}
}
