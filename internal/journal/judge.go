package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

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
		sum, err := filetree.Digest(ctx, p)
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
