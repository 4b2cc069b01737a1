package filetree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Move renames src, where it is a link the link itself, to dst, or into dst
// where that is a directory. A file that exists there is replaced; directories
// are not merged. Between devices it copies exactly, verifies what it wrote, and
// then deletes.
func Move(ctx context.Context, w *atomicfile.Writer, src, dst place.Place, o Options) (Report, error) {
	return move(ctx, w, src, dst, o, rename)
}

// renamer is rename, but in tests.
type renamer func(w *atomicfile.Writer, src, to place.Place, o Options) (Report, error)

func move(ctx context.Context, w *atomicfile.Writer, src, dst place.Place, o Options, rename renamer) (r Report, err error) {
	fi, err := src.Stat()
	if err != nil {
		return r, err
	}
	if src.Guard.HoldsRoot(src.Abs) {
		return r, holdsRoot(src)
	}
	to, there, err := destination(src, fi, dst, o)
	if err != nil {
		return r, err
	}
	ctx, unlock, err := w.Lock(ctx, src, to)
	if err != nil {
		return r, err
	}
	defer unlock()
	if fi, err = src.Stat(); err == nil {
		there, err = stat(to)
	}
	if err != nil {
		return r, err
	}
	sameFile := there != nil && there.Mode().IsRegular() && src.Abs != to.Abs && os.SameFile(fi, there)
	if sameFile && o.Create {
		return r, exists(to)
	}
	if !sameFile {
		if err := compatible(src, fi, to, there, o.Create); err != nil {
			return r, err
		}
	}
	switch {
	case fi.IsDir() && there != nil:
		return r, fault.New(fault.FSAlreadyExists, "%s is a directory that exists, and move does not merge directories; delete it first, or move what is in %s", to.Abs, src.Abs)
	case fi.IsDir() && (src.Guard.DeniedBelow(src.Abs) || to.Guard.DeniedBelow(to.Abs)):
		if _, err := survey(ctx, src, to.Abs); err != nil {
			return r, err
		}
	case fi.Mode()&fs.ModeSymlink != 0:
		if target, err := src.Guard.Resolve(src.Abs); err == nil && target.Abs == to.Abs {
			return r, fault.New(fault.FSOperation, "%s is a symbolic link to %s, which it cannot replace", src.Abs, to.Abs)
		}
	case sameFile && fileinfo.From(fi).Links > 1:
		// To rename one of two hard links to the other does nothing on Unix.
		cancel := hold(ctx, o.Keep, src)
		if err := src.Remove(); err != nil {
			cancel()
			return Report{Into: to.Abs}, err
		}
		return Report{Into: to.Abs}, nil
	}
	if o.Keep != nil && there != nil && !sameFile {
		keepAt(ctx, o.Keep, to)
	}
	if r, err = rename(w, src, to, o); !errors.Is(err, syscall.EXDEV) {
		return r, err
	}
	c := newCopier(w, o)
	c.exact = true
	if r, err = c.run(ctx, src, fi, to, there); err != nil {
		return r, err
	}
	cancel := func() {}
	if o.Keep != nil {
		if fi, err := to.Stat(); err == nil {
			cancel = o.Keep.Move(src.Abs, to.Abs, fileinfo.From(fi))
		}
	}
	if n, err := (&remover{}).at(context.WithoutCancel(ctx), src); err != nil {
		if n == 0 {
			cancel()
		}
		return r, fault.New(fault.FSDeleteFailed, "%s was copied to %s, but could not be removed: %w", src.Abs, to.Abs, err)
	}
	return r, nil
}

func rename(w *atomicfile.Writer, src, to place.Place, o Options) (r Report, err error) {
	from, err := w.Open(src.Parent(), false)
	if err != nil {
		return r, err
	}
	in, err := w.Open(to.Parent(), true)
	if err != nil {
		from.Close()
		return r, err
	}
	defer func() {
		// The new name becomes durable before the old one is known to be gone.
		if cerr := cmp.Or(in.Close(), from.Close()); err == nil {
			err = cerr
		}
	}()
	cancel := func() {}
	if o.Keep != nil {
		in.ExpectParents(o.Keep)
		if fi, err := from.Root().Lstat(filepath.Base(src.Name)); err == nil {
			cancel = o.Keep.Move(src.Abs, to.Abs, fileinfo.From(fi))
		}
	}
	err = atomicfile.Rename(from, filepath.Base(src.Name), in, filepath.Base(to.Name), !o.Create)
	if err != nil {
		cancel()
	}
	switch {
	case err == nil:
		return Report{Into: to.Abs}, nil
	case errors.Is(err, syscall.EXDEV):
		return r, err
	case o.Create && errors.Is(err, fs.ErrExist):
		return r, exists(to)
	}
	return r, atomicfile.Failed(to, err)
}

func holdsRoot(p place.Place) error {
	return fault.New(fault.FSAccessDenied, "%s is an allowed directory or contains one, so it cannot be moved or deleted; name what is in it", p.Abs)
}
