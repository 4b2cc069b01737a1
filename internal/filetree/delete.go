package filetree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Delete removes p, where it is a link the link itself, and returns how many
// files and directories that were. A directory that is not empty is removed only
// where recursive is set; links in it are removed and not followed. progress,
// which may be nil, is told of what was removed so far and of how much it is in
// all. Where keep is not nil, it keeps what is removed.
func Delete(ctx context.Context, w *atomicfile.Writer, p place.Place, recursive bool, keep Keeper, progress func(done, total int64)) (int64, error) {
	ctx, unlock, err := w.Lock(ctx, p)
	if err != nil {
		return 0, err
	}
	defer unlock()
	fi, err := p.Stat()
	if err != nil {
		return 0, err
	}
	if p.Guard.HoldsRoot(p.Abs) {
		return 0, holdsRoot(p)
	}
	r := remover{}
	switch {
	case fi.IsDir() && !recursive:
		cancel := func() {}
		if empty(p) { // else there is nothing to keep, since it will stay
			cancel = hold(ctx, keep, p)
		}
		err := p.Remove()
		if err == nil {
			return 1, nil
		}
		cancel()
		if errors.Is(err, fs.ErrExist) { // not empty
			err = fault.New(fault.FSDeleteFailed, "%s is a directory that is not empty; set recursive to true to delete it with all that is in it", p.Abs)
		} else {
			err = undeleted(p.Abs, err)
		}
		return 0, err
	case fi.IsDir():
		total, err := survey(ctx, p, "")
		if err != nil {
			return 0, err
		}
		if progress != nil {
			r.progress = func(done int64) { progress(done, total) }
		}
	}
	cancel := hold(ctx, keep, p)
	n, err := r.at(ctx, p)
	if n == 0 {
		cancel()
	}
	return n, err
}

// A remover is one run of Delete.
type remover struct {
	force    bool // of what we made ourselves: permissions do not count
	progress func(done int64)
	done     int64
}

// at removes p, with all that is below.
func (r *remover) at(ctx context.Context, p place.Place) (n int64, err error) {
	err = p.In(func(dir *os.Root, name string) error {
		n, err = r.remove(ctx, dir, name, p.Abs)
		return err
	})
	return n, err
}

// remove removes name in root, with all that is below.
func (r *remover) remove(ctx context.Context, root *os.Root, name, abs string) (int64, error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return r.done, undeleted(abs, err)
	}
	if fi.IsDir() {
		err = r.empty(ctx, root, name, abs, 0)
	}
	if err == nil {
		err = r.one(root, name, abs)
	}
	return r.done, err
}

// empty removes all that is in the directory called name in root.
func (r *remover) empty(ctx context.Context, root *os.Root, name, abs string, depth int) error {
	if depth > maxLevels {
		return tooDeep(abs)
	}
	if r.force {
		root.Chmod(name, 0o700)
	}
	dir, err := place.OpenRootIn(root, name)
	if err != nil {
		return undeleted(abs, err)
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return undeleted(abs, err)
	}
	list, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return undeleted(abs, err)
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := filepath.Join(abs, e.Name())
		if e.IsDir() {
			if err := r.empty(ctx, dir, e.Name(), at, depth+1); err != nil {
				return err
			}
		}
		if err := r.one(dir, e.Name(), at); err != nil {
			return err
		}
	}
	return nil
}

func (r *remover) one(root *os.Root, name, abs string) error {
	if err := root.Remove(name); err != nil {
		return undeleted(abs, err)
	}
	r.done++
	if r.progress != nil {
		r.progress(r.done)
	}
	return nil
}

// Discard removes an unfinished tree of ours, whatever its permissions.
func Discard(root *os.Root, name string) {
	if root.RemoveAll(name) == nil {
		return
	}
	r := remover{force: true}
	r.remove(context.Background(), root, name, name)
}

// undeleted gives a failure to delete abs its code.
func undeleted(abs string, err error) error {
	why := atomicfile.Cause(err)
	switch {
	case errors.Is(why, fs.ErrNotExist), errors.Is(why, fs.ErrPermission):
		return &fs.PathError{Op: "delete", Path: abs, Err: why}
	case errors.Is(why, syscall.ELOOP):
		return fault.Hide(fault.FSDeleteFailed, err, "%s was exchanged while it was deleted; look at it and try again", abs)
	}
	return fault.Hide(fault.FSDeleteFailed, err, "%s could not be deleted: %s", abs, why)
}

// survey counts the directory p and all that is in it, and refuses what must
// not be moved or deleted as a whole: a tree that holds something denied, or
// would at to where that is not empty, and one nested too deep.
func survey(ctx context.Context, p place.Place, to string) (int64, error) {
	dir, err := walk.Open(p)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	return surveyDir(ctx, p, dir, to, 0)
}

func surveyDir(ctx context.Context, top place.Place, dir *walk.Dir, to string, depth int) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if depth > maxLevels {
		return 0, tooDeep(dir.Place().Abs)
	}
	entries, denied, err := dir.EntriesCounted()
	if err != nil {
		return 0, err
	}
	if denied > 0 {
		return 0, holdsDenied(top)
	}
	n := int64(1)
	for _, e := range entries {
		at := ""
		if to != "" {
			at = filepath.Join(to, e.Name)
		}
		if at != "" && top.Guard.Denied(at) {
			return 0, holdsDenied(top)
		}
		if !e.IsDir() {
			n++
			continue
		}
		sub, err := dir.Sub(e.Name)
		if err != nil {
			return 0, err
		}
		below, err := surveyDir(ctx, top, sub, at, depth+1)
		sub.Close()
		if err != nil {
			return 0, err
		}
		n += below
	}
	return n, nil
}

func holdsDenied(p place.Place) error {
	return fault.New(fault.FSAccessDenied, "%s holds something that a rule of this server denies (CONDUIT_DENIED_PATHS, or by default the well-known places of credentials), so it is not moved or deleted as a whole", p.Abs)
}
