package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
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

const shown = 64 << 10

// Undo undoes the change id, or the latest one all of whose paths may be used
// where id is "". What was overwritten or deleted is there again byte for byte,
// what was created is gone, and what was moved is back. All of it is checked
// before anything is done: a path that may not be used fails with the guard's
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

// latest returns the newest change that is not undone and all of whose paths
// may be used.
func (u Undoer) latest() (string, error) {
	ids, err := u.Journal.list()
	if err != nil {
		return "", err
	}
	for _, id := range slices.Backward(ids) {
		if a, err := u.Journal.load(id); err == nil && a.done && a.undone == "" && len(a.steps) > 0 && u.allowed(a) {
			return id, nil
		}
	}
	return "", fault.New(fault.FSNotFound, "there is no change to undo")
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

// An undoing is one run of Undo.
type undoing struct {
	Undoer
	a       *account
	dir     *os.Root               // of the change
	parents map[string]place.Place // by path
	seen    map[string]state       // what will be there, of paths that are not now as they will be
	plan    []act
}

// An act is one thing to do.
type act struct {
	*step
	at     place.Place // of path
	moved  place.Place // of to
	action string
	was    state // of a directory that may go, before what is in it goes
}

// place judges abs, a name whose own link is not followed.
func (u *undoing) place(abs string) (place.Place, error) {
	dir := filepath.Dir(abs)
	parent, ok := u.parents[dir]
	if !ok {
		var err error
		if utf8.ValidString(dir) {
			parent, err = u.Resolve(dir)
			if err == nil && parent.Abs != dir {
				err = fault.New(fault.PreconditionFailed, "%s is reached by a symbolic link now, so what was changed in it cannot be undone", dir)
			}
		} else {
			parent, err = u.place(dir) // a name that the guard cannot be asked for
		}
		if err != nil {
			return place.Place{}, err
		}
		u.parents[dir] = parent
	}
	p := parent.Child(filepath.Base(abs))
	if p.Guard != nil && p.Guard.Denied(abs) {
		return p, place.Refused(abs)
	}
	return p, nil
}

// now tells what is at p, once the later steps are undone.
func (u *undoing) now(p place.Place) (s state, seen bool, err error) {
	if s, ok := u.seen[p.Abs]; ok {
		return s, true, nil
	}
	fi, err := p.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		return nothing, false, nil
	}
	if err != nil {
		return s, false, err
	}
	return stateOf(fileinfo.From(fi)), false, nil
}

// same reports whether what is at p has the content of want.
func (u *undoing) same(ctx context.Context, p place.Place, want state) (bool, error) {
	now, seen, err := u.now(p)
	if err != nil {
		return false, err
	}
	switch {
	case want.untouched(now):
		if want.Kind != tree || seen {
			return true, nil
		}
		sum, err := filetree.Digest(ctx, p.Root, p.Name)
		return bytes.Equal(sum, want.Sum), err
	case want.Kind != file || now.Kind != file || want.Size != now.Size:
		return false, nil
	case want.Cut:
		return want.Ino == now.Ino && want.Blob == "", nil // shortened by an undo that was interrupted
	case want.Sum == nil: // a copy of it, put back by an undo of the undo
		return want.Mtime == now.Mtime, nil
	case seen:
		return bytes.Equal(now.Sum, want.Sum), nil
	}
	f, _, err := p.OpenFileOnly()
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum, err := etag.Sum(ctx, f)
	return bytes.Equal(sum, want.Sum), err
}

// check plans what to do, last step first, and refuses what cannot be done.
func (u *undoing) check(ctx context.Context) error {
	var changed []string
	for _, s := range slices.Backward(u.a.steps) {
		if err := ctx.Err(); err != nil {
			return err
		}
		a := act{step: s}
		var err error
		if a.at, err = u.place(s.path); err != nil {
			return err
		}
		if s.to != "" {
			if a.moved, err = u.place(s.to); err != nil {
				return err
			}
		}
		ok, err := u.judge(ctx, &a)
		if err != nil {
			return err
		}
		if !ok {
			changed = append(changed, a.step.at())
			continue
		}
		if a.action == "" {
			continue
		}
		if err := u.intact(ctx, s); err != nil {
			return err
		}
		if s.to != "" {
			u.seen[s.path] = s.left
		}
		u.seen[s.at()] = s.had
		u.plan = append(u.plan, a)
	}
	if len(changed) == 0 {
		return nil
	}
	return u.refused(changed)
}

// refused is the error where others have changed paths.
func (u *undoing) refused(changed []string) error {
	const named = 5
	more := ""
	if n := len(changed) - named; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	slices.Sort(changed)
	return fault.New(fault.PreconditionFailed, "nothing was undone, since what the change %s left has been changed by others: %s%s; look at it, and put back by hand what is wanted", u.a.id, strings.Join(changed[:min(len(changed), named)], ", "), more)
}

// judge decides what to do about a; ok is false where somebody else has changed
// its path.
func (u *undoing) judge(ctx context.Context, a *act) (ok bool, err error) {
	if a.to != "" {
		from, _, err := u.now(a.at)
		if err != nil {
			return false, err
		}
		if ok, err = u.same(ctx, a.moved, a.left); err != nil {
			return false, err
		}
		if ok && from.Kind == absent {
			a.action = MovedBack
			return true, nil
		}
		return !ok && a.left.untouched(from), nil // it was not moved, or is back
	}
	now, _, err := u.now(a.at)
	switch {
	case err != nil:
		return false, err
	case a.had.Kind == absent && a.left.Kind == directory:
		if now.Kind == directory {
			a.action, a.was = Removed, now // where nothing is in it by then
		}
		return true, nil
	case a.had.Kind == directory:
		a.action = Recreated
		return now.Kind == absent || now.Kind == directory, nil
	}
	if ok, err = u.same(ctx, a.at, a.left); err != nil {
		return false, err
	}
	if !ok {
		return u.same(ctx, a.at, a.had) // it was not changed, or is back
	}
	switch {
	case a.had.Kind == absent && a.left.Kind == absent:
	case a.had.Kind == absent:
		a.action = Removed
	case a.left.Kind == absent:
		a.action = Recreated
	default:
		a.action = Restored
	}
	return true, nil
}

// intact refuses a step whose kept content is no longer what it was: a process
// that had the file open could still write to it.
func (u *undoing) intact(ctx context.Context, s *step) error {
	if s.had.Blob == "" {
		return nil
	}
	f, err := u.dir.Open(s.had.Blob)
	if err != nil {
		return fault.Hide(fault.FSOperation, err, "what was kept of %s is missing from the journal, so nothing was undone", s.at())
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if s.had.Cut || fi.Size() == s.had.Size && fi.ModTime().UnixNano() == s.had.Mtime {
		return nil
	}
	sum, err := etag.Sum(ctx, f)
	if err == nil && !bytes.Equal(sum, s.had.Sum) {
		err = fault.New(fault.FSOperation, "what was kept of %s was written to by a program that still had the file open, so nothing was undone", s.at())
	}
	return err
}

// files lists what the plan does.
func (u *undoing) files() []File {
	tops := map[string]*File{} // directories that are recreated
	var list []*File
	add := func(f File, had state) {
		if had.Kind == file && had.Sum != nil {
			f.ETag = etag.Of(had.Sum)
		}
		list = append(list, &f)
		if f.Action == Recreated && had.Kind == directory {
			tops[f.Path] = &f
		}
	}
	for _, a := range u.plan {
		switch {
		case a.to != "":
			add(File{Path: a.path, From: a.to, Action: MovedBack}, nothing)
			if a.had.Kind != absent {
				add(File{Path: a.to, Action: Recreated}, a.had)
			}
		case a.left.Kind == directory && a.action == Removed:
			// made on the way, and removed only where nothing is in it
		default:
			add(File{Path: a.path, Action: a.action}, a.had)
		}
	}
	slices.SortFunc(list, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	var files []*File
	for _, f := range list {
		top := f
		for dir := filepath.Dir(f.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if d := tops[dir]; d != nil {
				top = d
			}
		}
		if top == f {
			files = append(files, f)
		} else if tops[f.Path] == nil {
			top.Files++
		}
	}
	all := make([]File, len(files))
	for i, f := range files {
		all[i] = *f
	}
	return all
}

// show calls Show for what is small.
func (u *undoing) show(ctx context.Context) error {
	if u.Show == nil {
		return nil
	}
	for _, a := range u.plan {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := a.at
		if a.to != "" {
			at = a.moved
		}
		var now, then []byte
		ok := true
		if a.to == "" {
			now, ok = small(at.Root.Open(at.Name))
		}
		switch {
		case !ok || a.had.Kind != absent && a.had.Kind != file || a.left.Kind != absent && a.left.Kind != file:
			continue
		case a.had.Kind == absent:
		case a.had.Blob != "":
			then, ok = small(u.dir.Open(a.had.Blob))
		default:
			then = now
		}
		if !ok || a.had.Cut && int64(len(then)) < a.had.Size {
			continue
		}
		if a.had.Cut {
			then = then[:a.had.Size]
		}
		if now == nil && then == nil {
			continue
		}
		if err := u.Show(at, now, then); err != nil {
			return err
		}
	}
	return nil
}

// small reads the open file f unless it is larger than shown; what does not
// exist is nil.
func small(f *os.File, err error) (b []byte, ok bool) {
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > shown {
		return nil, false
	}
	b, err = io.ReadAll(io.LimitReader(f, shown+1))
	if b == nil {
		b = []byte{}
	}
	return b, err == nil && len(b) <= shown
}

// apply carries out the plan. Where it fails, what was done is taken back.
func (u *undoing) apply(ctx context.Context) (Mark, error) {
	c := u.Journal.Begin("edit.undo")
	c.of = u.a.id
	var mark Mark
	dirs := directories{w: u.Writer}
	var err error
	for _, a := range u.plan {
		if err = ctx.Err(); err != nil {
			break
		}
		if u.before != nil {
			if err = u.before(a); err != nil {
				break
			}
		}
		part := c.Part()
		if err = u.lockAndAct(ctx, &dirs, a, part); err != nil {
			break
		}
		if m := part.Mark(); m.Undo != nil || mark.Undo == nil && m.ChangeID != "" {
			mark = m
		}
	}
	if cerr := dirs.close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = u.dress()
	}
	c.Done()
	if err == nil {
		by := c.id
		if c.live == 0 {
			by = nobody
		}
		return mark, u.Journal.retire(u.a.id, by)
	}
	if c.live == 0 {
		return Mark{}, err
	}
	code, why := fault.Of(err)
	back := u.Undoer
	back.Show, back.before = nil, nil
	if _, berr := back.Undo(context.WithoutCancel(ctx), c.id, false); berr != nil {
		return Mark{}, fault.Hide(code, err, "%s; a part had been undone by then, and the change_id %s puts that back", why, c.id)
	}
	return Mark{}, err
}

// nobody stands for the undo of a change that was not kept itself.
const nobody = "-"

// retire notes that the change id was undone by another, and drops what it
// kept. The caller has locked it.
func (j *Journal) retire(id, by string) error {
	dir, err := j.changes.OpenRoot(id)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.OpenFile(recordName, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(encode(&line{Undone: by}))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	j.mu.Lock()
	delete(j.sizes, id)
	j.mu.Unlock()
	list, err := fs.ReadDir(dir.FS(), ".")
	for _, e := range list {
		if e.Name() != recordName {
			dir.Remove(e.Name())
		}
	}
	return err
}

// directories holds the directory open that was written in last.
type directories struct {
	w   *atomicfile.Writer
	abs string
	dir *atomicfile.Dir
}

func (d *directories) open(p place.Place) (*atomicfile.Dir, error) {
	if d.dir != nil && d.abs == p.Abs {
		return d.dir, nil
	}
	if err := d.close(); err != nil {
		return nil, err
	}
	dir, err := d.w.Open(p, true)
	if err == nil {
		d.dir, d.abs = dir, p.Abs
	}
	return dir, err
}

func (d *directories) close() error {
	if d.dir == nil {
		return nil
	}
	err := d.dir.Close()
	d.dir = nil
	return err
}

// lockAndAct does one thing if its path is still what it was judged by.
func (u *undoing) lockAndAct(ctx context.Context, dirs *directories, a act, part *Part) error {
	places := []place.Place{a.at}
	if a.to != "" {
		places = append(places, a.moved)
	}
	ctx, unlock, err := u.Writer.Lock(ctx, places...)
	if err != nil {
		return err
	}
	defer unlock()
	clear(u.seen) // the later steps are undone
	now := act{step: a.step, at: a.at, moved: a.moved}
	ok, err := u.judge(ctx, &now)
	switch {
	case err != nil:
		return err
	case !ok:
		return u.refused([]string{a.step.at()})
	case now.action != a.action:
		return nil // somebody has done it
	}
	return u.act(ctx, dirs, a, part)
}

// act does one thing.
func (u *undoing) act(ctx context.Context, dirs *directories, a act, part *Part) error {
	if a.to != "" {
		if err := dirs.close(); err != nil {
			return err
		}
		if _, err := filetree.Move(ctx, u.Writer, a.moved, a.at, filetree.Options{Create: true, Keep: part}); err != nil {
			return err
		}
		if a.had.Kind == absent {
			return nil
		}
		return u.restore(ctx, dirs, a.moved, a.had, part)
	}
	switch {
	case a.had.Kind == directory:
		return u.remake(dirs, a, part)
	case a.action == Removed:
		if a.left.Kind == directory {
			part.had(a.path, a.was, a.was, atomicfile.Replaced)
		}
		_, err := filetree.Delete(ctx, u.Writer, a.at, a.left.Kind == tree, part, nil)
		if code, _ := fault.Of(err); err != nil && code == fault.FSDeleteFailed && a.left.Kind == directory {
			return nil // somebody uses it by now
		}
		return err
	}
	return u.restore(ctx, dirs, a.at, a.had, part)
}

// remake makes a directory again.
func (u *undoing) remake(dirs *directories, a act, part *Part) error {
	d, err := dirs.open(a.at)
	if err != nil {
		return err
	}
	d.Tell(part)
	return nil
}

// dress gives the directories that were made again the mode and time they had,
// now that all is in them.
func (u *undoing) dress() error {
	for _, a := range slices.SortedFunc(slices.Values(u.plan), func(a, b act) int { return strings.Compare(b.path, a.path) }) {
		if a.had.Kind != directory || a.to != "" {
			continue
		}
		err := a.at.Root.Chmod(a.at.Name, modeBits(a.had.Mode))
		if err == nil {
			err = a.at.Root.Chtimes(a.at.Name, time.Time{}, time.Unix(0, a.had.Mtime))
		}
		if err != nil {
			return atomicfile.Failed(a.at, err)
		}
	}
	return nil
}

func modeBits(m fs.FileMode) fs.FileMode {
	return m & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

// restore puts the file or link back that had tells of.
func (u *undoing) restore(ctx context.Context, dirs *directories, at place.Place, had state, part *Part) error {
	d, err := dirs.open(at.Parent())
	if err != nil {
		return err
	}
	name := filepath.Base(at.Name)
	if had.Kind == link {
		return filetree.Symlink(ctx, d, string(had.Text), name, filetree.Options{Keep: part})
	}
	sum := had.Sum
	o := atomicfile.Options{Like: likeness{had}, Keep: part, Sum: &sum}
	if had.Blob != "" && !had.Cut {
		dir, err := u.dir.Open(".")
		if err != nil {
			return err
		}
		err = d.Adopt(ctx, dir, had.Blob, name, o)
		dir.Close()
		if err == nil || !cannotLink(err) {
			return atomicfile.Failed(at, err)
		}
	}
	if had.Blob == "" {
		return d.Shorten(ctx, name, had.Size, o)
	}
	from, err := u.dir.Open(had.Blob)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = d.Write(ctx, name, o, func(f *os.File) error {
		if _, err := io.CopyN(f, from, had.Size); err != nil {
			return err
		}
		atomicfile.CopyOwner(f, from)
		return nil
	})
	if special := modeBits(had.Mode) &^ fs.ModePerm; err == nil && special != 0 {
		err = d.Root().Chmod(name, modeBits(had.Mode))
	}
	return err
}

// cannotLink reports whether err says that a file cannot have a further name
// there.
func cannotLink(err error) bool {
	for _, known := range []error{errors.ErrUnsupported, syscall.EXDEV, syscall.EPERM, syscall.EACCES, syscall.EMLINK, syscall.ENOSYS} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// likeness is a state as the [fs.FileInfo] to take mode and time from.
type likeness struct{ s state }

func (l likeness) Name() string       { return "" }
func (l likeness) Size() int64        { return l.s.Size }
func (l likeness) Mode() fs.FileMode  { return l.s.Mode }
func (l likeness) ModTime() time.Time { return time.Unix(0, l.s.Mtime) }
func (l likeness) IsDir() bool        { return false }
func (l likeness) Sys() any           { return nil }
