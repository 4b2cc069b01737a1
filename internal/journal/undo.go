package journal

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// What undoing does to a path.
const (
	Restored  = "restored"   // it has its old content again
	Removed   = "removed"    // it had not been there
	Recreated = "recreated"  // it had been deleted
	MovedBack = "moved back" // it had been moved
)

// A File is a path that undoing a change changes, or would.
type File struct {
	Path   string
	From   string // where a path that is moved back was moved to
	Action string
	ETag   string // of a file that now exists, where its content is known
	Files  int    // of a directory that is recreated, how many files and links come with it
}

// A Report says what undoing a change came to, or would come to.
type Report struct {
	Mark             // of the undo, itself a change
	Undone string    // the change
	Op     string    // id of the op that made it
	Time   time.Time // when
	Files  []File    // by path; what lies in a directory that is recreated is left out
	Lost   bool      // parts of the change had not been kept and stay
}

// An Undoer undoes changes of a journal.
type Undoer struct {
	Journal *Journal
	Writer  *atomicfile.Writer
	// Resolve is that of the guard by which paths are judged.
	Resolve func(path string) (place.Place, error)
	// Show, which may be nil, is called before anything is done for each file
	// that comes, goes or gets other content, where neither side is larger than
	// 64 KiB; a side that is not there is nil.
	Show func(p place.Place, now, then []byte) error

	before func(a act) error // in tests: called before each act
}

// Undo undoes the change id, where id is "" the last one of this process, and no
// other. What was overwritten or deleted is there again byte for byte, what was
// created is gone, and what was moved is back. All of it is checked before
// anything is done: a path that may not be used fails with the guard's
// error, one that somebody has changed since with ERR_PRECONDITION_FAILED. With
// dry set that is all. The undo is a change of its own and can be undone.
func (u Undoer) Undo(ctx context.Context, id string, dry bool) (r Report, err error) {
	j := u.Journal
	if _, ok := made(id); !ok && id != "" {
		return r, fault.New(fault.InvalidParameter, "%.40q is no change_id; take one from a result or from list with info_type recent_changes, or leave it out for the last change", id)
	}
	if j.off {
		return r, fault.New(fault.FSOperation, "the journal is switched off, so nothing can be undone; CONDUIT_JOURNAL_DIR names its directory")
	}
	if err := j.use(false); errors.Is(err, fs.ErrNotExist) && id != "" {
		return r, unknown(id, err)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, unwritable(err)
	}
	if id == "" {
		if id, err = u.latest(); err != nil {
			return r, err
		}
	}
	unlock, err := j.lock(id)
	switch {
	case errors.Is(err, filelock.ErrLocked):
		return r, fault.New(fault.PreconditionFailed, "the change %s is under way or being undone; try again once that has ended", id)
	case err != nil:
		return r, unwritable(err)
	}
	defer unlock()
	a, err := j.load(id)
	if err != nil {
		return r, unknown(id, err)
	}
	switch {
	case a.undone == nobody:
		return r, fault.New(fault.PreconditionFailed, "the change %s has been undone already, and that was not kept", id)
	case a.undone != "":
		return r, fault.New(fault.PreconditionFailed, "the change %s has been undone already, by %s; undo that one to have it back", id, a.undone)
	case len(a.steps) == 0:
		return r, fault.New(fault.FSOperation, "nothing of the change %s was kept, so it cannot be undone", id)
	}
	dir, err := j.changes.OpenRoot(id)
	if err != nil {
		return r, err
	}
	defer dir.Close()
	run := &undoing{Undoer: u, a: a, dir: dir, parents: map[string]place.Place{}, seen: map[string]state{}}
	if err := run.check(ctx); err != nil {
		return r, err
	}
	r = Report{Undone: id, Op: a.op, Time: a.time, Files: run.files(), Lost: len(a.void) > 0}
	if err := run.show(ctx); err != nil {
		return r, err
	}
	if dry {
		return r, nil
	}
	r.Mark, err = run.apply(ctx)
	return r, err
}

func unknown(id string, err error) error {
	return fault.Hide(fault.FSNotFound, err, "there is no change %s in the journal; old ones are dropped (CONDUIT_JOURNAL_MAX_BYTES)", id)
}

func unwritable(err error) error {
	return fault.Hide(fault.FSOperation, err, "the journal cannot be written, so nothing can be undone; the server's log says why")
}

// latest returns the last change of this process, or the reason why it cannot be
// undone. Of an undo that was interrupted it is what was being undone.
func (u Undoer) latest() (string, error) {
	j := u.Journal
	j.mu.Lock()
	own := j.own
	j.mu.Unlock()
	switch {
	case own == nil:
		return "", u.ofOthers()
	case own.id == "":
		return "", fault.New(fault.FSOperation, "the last change, by %s, was not kept, so it cannot be undone; an earlier one can, by its change_id, which list with info_type recent_changes tells", own.op)
	}
	a, err := j.load(own.id)
	if err != nil {
		return "", unknown(own.id, err)
	}
	return j.goOn(a), nil
}

// goOn is the id of the change to undo where a is the last one.
func (j *Journal) goOn(a *account) string {
	if a.of != "" {
		if undone, err := j.load(a.of); err == nil && undone.undone == "" {
			return a.of
		}
	}
	return a.id
}

// ofOthers is the error where this process has changed nothing: what others have
// changed is undone by its id alone.
func (u Undoer) ofOthers() error {
	ids, err := u.Journal.list()
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		if a, err := u.Journal.load(id); err == nil && a.done && a.undone == "" && len(a.steps) > 0 && u.allowed(a) {
			return fault.New(fault.FSNotFound, "this server has changed nothing yet; the latest change of another one is by %s at %s: give change_id %s to undo it", a.op, fileinfo.ISO(a.time), u.Journal.goOn(a))
		}
	}
	return fault.New(fault.FSNotFound, "there is no change to undo")
}

// allowed reports whether every path of a may be used.
func (u Undoer) allowed(a *account) bool {
	run := undoing{Undoer: u, parents: map[string]place.Place{}}
	for _, s := range a.steps {
		if _, err := run.place(s.path); err != nil {
			return false
		}
		if s.to == "" {
			continue
		}
		if _, err := run.place(s.to); err != nil {
			return false
		}
	}
	return true
}
