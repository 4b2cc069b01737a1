package journal

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// apply carries out the plan. Where it fails, what was done is taken back.
func (u *undoing) apply(ctx context.Context) (Mark, error) {
	u.Journal.mu.Lock()
	own := u.Journal.own
	u.Journal.mu.Unlock()
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
	u.Journal.mu.Lock()
	u.Journal.own = own // as if nothing had been
	u.Journal.mu.Unlock()
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
	d.ExpectParents(part)
	return nil
}

// dress gives the directories that were made again the mode and time they had,
// now that all is in them.
func (u *undoing) dress() error {
	for _, a := range slices.SortedFunc(slices.Values(u.plan), func(a, b act) int { return strings.Compare(b.path, a.path) }) {
		if a.had.Kind != directory || a.to != "" {
			continue
		}
		dir, err := a.at.OpenRoot()
		if err == nil {
			err = cmp.Or(dir.Chmod(".", modeBits(a.had.Mode)), dir.Chtimes(".", time.Time{}, time.Unix(0, a.had.Mtime)))
			dir.Close()
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
		err = d.ReplaceByLink(ctx, dir, had.Blob, name, o)
		dir.Close()
		if err == nil || !cannotLink(err) {
			return atomicfile.Failed(at, err)
		}
	}
	if had.Blob == "" {
		return d.Truncate(ctx, name, had.Size, o)
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
		err = d.Child(name).Chmod(modeBits(had.Mode))
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
