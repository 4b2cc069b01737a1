// Package filetree copies, moves and deletes files and directory trees through
// open handles, so that no exchange of a directory for a link leads outside.
package filetree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Options say how a tree is copied or moved.
type Options struct {
	Create   bool             // ERR_FS_ALREADY_EXISTS where something is at the destination
	Into     bool             // the destination was written as a directory, with a slash at its end
	Onto     bool             // the destination is the name of the result: a directory there is merged with or in the way
	Progress func(done int64) // called with the number of files done; may be nil
	Keep     Keeper           // where not nil, keeps what is replaced
}

// A Report says what copying or moving came to.
type Report struct {
	Into    string // absolute path of the result
	Files   int64  // files, and links kept as such, that were copied; 0 after a rename
	Denied  int64  // entries left out since a rule denies them
	Special int64  // devices, FIFOs and sockets left out
	Links   int64  // symbolic links left out: nothing there, not allowed, or a loop
	InPlace bool   // a file had to be written in place
	Parted  bool   // a file that was overwritten had other hard links
}

// A Transfer is [Copy] or [Move].
type Transfer func(ctx context.Context, w *atomicfile.Writer, src, dst place.Place, o Options) (Report, error)

// Copy copies the file or directory src to dst, or into dst where that is a
// directory. Permissions and modification times are kept. Files that exist are
// replaced whole; a new tree appears at once when complete, or not at all. A
// link in a tree stays one where its target is in the tree; otherwise its
// content is copied.
func Copy(ctx context.Context, w *atomicfile.Writer, src, dst place.Place, o Options) (Report, error) {
	fi, err := src.Stat()
	if err != nil {
		return Report{}, err
	}
	to, there, err := destination(src, fi, dst, o)
	if err != nil {
		return Report{}, err
	}
	if err := compatible(src, fi, to, there, o.Create); err != nil {
		return Report{}, err
	}
	return newCopier(w, o).run(ctx, src, fi, to, there)
}

// destination returns where src goes, with what is there: dst, or the name of
// src in dst where that is a directory or, for a file, was written as one.
func destination(src place.Place, fi fs.FileInfo, dst place.Place, o Options) (place.Place, fs.FileInfo, error) {
	there, err := stat(dst)
	switch {
	case err != nil:
		return dst, nil, err
	case there != nil && o.Into && !there.IsDir():
		return dst, nil, fault.New(fault.FSIsFile, "%s is a file, and the destination ends in a slash as a directory does; leave the slash out to replace it", dst.Abs)
	case there != nil && there.IsDir() && !o.Onto, there == nil && o.Into && !fi.IsDir():
		if dst, err = dst.Guard.Resolve(filepath.Join(dst.Abs, filepath.Base(src.Asked))); err != nil {
			return dst, nil, err
		}
		there, err = stat(dst)
	}
	return dst, there, err
}

// stat is Stat with nil for what does not exist.
func stat(p place.Place) (fs.FileInfo, error) {
	fi, err := p.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return fi, err
}

// compatible refuses to put from at to, where there is: onto itself, into
// itself, a directory onto a file or the other way round.
func compatible(from place.Place, fi fs.FileInfo, to place.Place, there fs.FileInfo, create bool) error {
	if there != nil && (from.Abs == to.Abs || os.SameFile(fi, there)) {
		return fault.New(fault.FSOperation, "%s and %s are the same", from.Abs, to.Abs)
	}
	if fi.IsDir() && inside(fi, from, to) {
		return fault.New(fault.FSOperation, "%s lies inside %s; a directory cannot go into itself", to.Abs, from.Abs)
	}
	switch {
	case there == nil:
		return nil
	case create:
		return exists(to)
	case fi.IsDir() && !there.IsDir():
		return fault.New(fault.FSIsFile, "%s is a file, so the directory %s cannot go there; name a directory, or a path that does not exist", to.Abs, from.Abs)
	case !fi.IsDir() && there.IsDir():
		return fault.New(fault.FSIsDirectory, "%s is a directory, so the file %s cannot replace it; delete it first or choose another name", to.Abs, from.Abs)
	}
	return place.Ordinary(to.Abs, there.Mode())
}

// inside reports whether to lies in the directory from, by name or, for systems
// on which one file has several spellings, by what its parents are.
func inside(fi fs.FileInfo, from, to place.Place) bool {
	if place.Within(to.Abs, from.Abs) {
		return true
	}
	for up := to; up.Name != "."; {
		up = up.Parent()
		if at, err := up.Stat(); err == nil && os.SameFile(at, fi) {
			return true
		}
	}
	return false
}

func exists(p place.Place) error {
	return fault.New(fault.FSAlreadyExists, "%s already exists, and overwrite is false; choose another name, or leave overwrite out", p.Abs)
}

// Symlink makes a symbolic link called name in d, in place of a file or link
// that is there unless o says Create.
func Symlink(ctx context.Context, d *atomicfile.Dir, text, name string, o Options) error {
	ctx, unlock, err := d.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	temp := atomicfile.TempName()
	err = d.Root().Symlink(text, temp)
	if err == nil {
		cancel := leaveLink(ctx, o.Keep, d, temp, name)
		if err = atomicfile.Rename(d, temp, d, name, !o.Create); err != nil {
			cancel()
			d.Root().Remove(temp)
		}
	}
	if o.Create && errors.Is(err, fs.ErrExist) {
		return exists(d.Child(name))
	}
	return atomicfile.Failed(d.Child(name), err)
}

// Message says what r came to, for a reader: verb is "Copied" or "Moved".
func (r Report) Message(verb string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s.", verb, r.Into)
	if r.Files > 1 {
		fmt.Fprintf(&b, " %d files.", r.Files)
	}
	for _, left := range []struct {
		n    int64
		what string
	}{
		{r.Denied, "denied by a rule of this server"},
		{r.Special, "special files"},
		{r.Links, "symbolic links to what is missing, not allowed or a loop"},
	} {
		if left.n > 0 {
			fmt.Fprintf(&b, " Left out as %s: %d.", left.what, left.n)
		}
	}
	b.WriteString(atomicfile.Report{Parted: r.Parted, InPlace: r.InPlace}.Note())
	return b.String()
}
