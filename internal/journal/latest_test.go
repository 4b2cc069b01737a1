package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A bare undo takes back the last change or none: not an older one where the
// last was not kept.
func TestOnlyTheLastIsUndone(t *testing.T) {
	s := newScratch(t)
	const max = 1 << 20
	s.j = s.journal(max)
	s.write("small", "old", 0o600)
	s.write("large", strings.Repeat("x", max), 0o600)
	first := s.change("first", func(p *Part) { s.put(p, "small", "new", atomicfile.Overwrite) })
	if m := s.change("second", func(p *Part) { s.put(p, "large", "new", atomicfile.Overwrite) }); !unkept(m) {
		t.Fatalf("%+v", m)
	}
	_, err := s.undoer().Undo(t.Context(), "", false)
	wantCode(t, err, fault.FSOperation, "by second, was not kept")
	if got := s.read("small"); got != "new" {
		t.Errorf("it holds %q", got)
	}
	s.change("third", func(p *Part) {}) // changes nothing
	_, err = s.undoer().Undo(t.Context(), "", false)
	wantCode(t, err, fault.FSOperation, "by second, was not kept")
	s.undo(first.ChangeID)
	if got := s.read("small"); got != "old" {
		t.Errorf("it holds %q", got)
	}
}

// What another server has changed is undone by its id alone.
func TestChangesOfOthersNeedTheirID(t *testing.T) {
	s := newScratch(t)
	s.write("a", "old", 0o600)
	mine := s.j
	theirs := s.change("theirs", func(p *Part) { s.put(p, "a", "new", atomicfile.Overwrite) })
	s.j = s.journal(testMax)
	_, err := s.undoer().Undo(t.Context(), "", false)
	wantCode(t, err, fault.FSNotFound, "change_id "+theirs.ChangeID)
	own := s.change("own", func(p *Part) { s.put(p, "b", "b", atomicfile.Overwrite) })
	s.j, mine = mine, s.j
	s.undo("")
	if _, err := os.Lstat(s.path("b")); err != nil || s.read("a") != "old" {
		t.Errorf("%v; it holds %q", err, s.read("a"))
	}
	s.j = mine
	if r := s.undo(""); r.Undone != own.ChangeID {
		t.Errorf("undone: %+v", r)
	}
}

// After an undo that did not come to its end the next one goes on with it.
func TestAnInterruptedUndoGoesOn(t *testing.T) {
	for _, session := range []string{"this", "the next"} {
		s := newScratch(t)
		for _, name := range []string{"a", "b"} {
			s.write(name, "old "+name, 0o600)
		}
		m := s.change("test", func(p *Part) {
			s.put(p, "b", "new b", atomicfile.Overwrite)
			s.put(p, "a", "new a", atomicfile.Overwrite)
		})
		u := s.undoer()
		u.before = func(a act) error {
			if filepath.Base(a.path) == "a" {
				return nil
			}
			s.write("a", "theirs", 0o600) // so that what was undone cannot be taken back
			return errors.New("interrupted")
		}
		if _, err := u.Undo(t.Context(), "", false); err == nil || s.read("b") != "new b" {
			t.Fatalf("%v; b holds %q", err, s.read("b"))
		}
		s.write("a", "old a", 0o600)
		id := ""
		if session != "this" {
			s.j = s.journal(testMax)
			_, err := s.undoer().Undo(t.Context(), "", false)
			wantCode(t, err, fault.FSNotFound, "change_id "+m.ChangeID)
			id = m.ChangeID
		}
		if r := s.undo(id); r.Undone != m.ChangeID || s.read("a") != "old a" || s.read("b") != "old b" {
			t.Errorf("%s session: %+v; they hold %q and %q", session, r, s.read("a"), s.read("b"))
		}
	}
}
