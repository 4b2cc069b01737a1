package rewrite

import (
	"context"
	"io/fs"
	"os"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Tx changes files and can roll back what it did. Its methods must not be
// called at the same time; who wants nobody to come between them holds the locks
// of all its files.
type Tx struct {
	Writer *atomicfile.Writer
	done   []change
}

// A change is one that can be taken back.
type change struct {
	at       place.Place
	rollback func(context.Context) error
}

func (t *Tx) did(at place.Place, rollback func(context.Context) error) {
	t.done = append(t.done, change{at, rollback})
}

// A Write is a file for [Tx.Write] to write.
type Write struct {
	atomicfile.Job
	// Old returns the content that rolling back writes; nil stands for a file
	// that was not there.
	Old  func(context.Context) (string, error)
	Like fs.FileInfo // where not nil, gives mode and time to what is rolled back
}

// Write writes files at the same time; each then has its Sum or its Err. done,
// which may be nil, is called after each. The error is that of ctx.
func (t *Tx) Write(ctx context.Context, list []*Write, done func()) error {
	jobs := make([]*atomicfile.Job, len(list))
	for i, w := range list {
		jobs[i] = &w.Job
	}
	err := t.Writer.Run(ctx, jobs, done)
	for _, w := range list {
		switch {
		case w.Err != nil:
		case w.Sum == nil: // the call ended before
			w.Err = context.Canceled
		case w.Old == nil:
			t.did(w.Place, func(ctx context.Context) error { return t.remove(ctx, w.Place, keeper(w.Keep)) })
		default:
			t.did(w.Place, func(ctx context.Context) error {
				return t.put(ctx, w.Place, w.Old, atomicfile.Options{IfMatch: etag.Of(w.Sum), Like: w.Like, Keep: w.Keep})
			})
		}
	}
	return err
}

// keeper is k for what is removed.
func keeper(k atomicfile.Keeper) filetree.Keeper {
	tree, _ := k.(filetree.Keeper)
	return tree
}

// Move moves a file to where nothing is.
func (t *Tx) Move(ctx context.Context, from, to place.Place, keep filetree.Keeper) error {
	o := filetree.Options{Create: true, Keep: keep}
	if _, err := filetree.Move(ctx, t.Writer, from, to, o); err != nil {
		return err
	}
	t.did(to, func(ctx context.Context) error {
		_, err := filetree.Move(ctx, t.Writer, to, from, o)
		return err
	})
	return nil
}

// Chmod gives a file the permissions of mode.
func (t *Tx) Chmod(p place.Place, mode fs.FileMode) error {
	fi, err := p.Stat()
	if err != nil || fi.Mode() == mode {
		return err
	}
	if err := p.Chmod(mode); err != nil {
		return err
	}
	t.did(p, func(context.Context) error { return p.Chmod(fi.Mode()) })
	return nil
}

// Remove removes a file that still has that etag; ERR_PRECONDITION_FAILED where
// it has another. Rolling back writes old again, with mode and time of like.
func (t *Tx) Remove(ctx context.Context, p place.Place, tag string, keep filetree.Keeper, old func(context.Context) (string, error), like fs.FileInfo) error {
	ctx, unlock, err := t.Writer.Lock(ctx, p)
	if err != nil {
		return err
	}
	defer unlock()
	f, _, err := p.OpenFileOnly()
	if err != nil {
		return err
	}
	sum, err := etag.Sum(ctx, f)
	f.Close()
	if err != nil {
		return err
	}
	if etag.Of(sum) != tag {
		return fault.New(fault.PreconditionFailed, "%s has changed", p.Abs)
	}
	if err := t.remove(ctx, p, keep); err != nil {
		return err
	}
	t.did(p, func(ctx context.Context) error {
		return t.put(ctx, p, old, atomicfile.Options{Mode: atomicfile.Create, Like: like, Keep: keep})
	})
	return nil
}

// Rollback takes back, the last first, what was done to the paths for which
// failed reports true, or all of it where failed is nil. left is told of what
// cannot be taken back.
func (t *Tx) Rollback(ctx context.Context, failed func(abs string) bool, left func(abs string, err error)) {
	for _, c := range slices.Backward(t.done) {
		if failed != nil && !failed(c.at.Abs) {
			continue
		}
		if err := c.rollback(ctx); err != nil {
			left(c.at.Abs, err)
		}
	}
}

func (t *Tx) put(ctx context.Context, p place.Place, content func(context.Context) (string, error), o atomicfile.Options) error {
	text, err := content(ctx)
	if err == nil {
		_, err = t.Writer.Write(ctx, p, o, func(f *os.File) error {
			_, err := f.WriteString(text)
			return err
		})
	}
	return err
}

func (t *Tx) remove(ctx context.Context, p place.Place, keep filetree.Keeper) error {
	_, err := filetree.Delete(ctx, t.Writer, p, false, keep, nil)
	return err
}
