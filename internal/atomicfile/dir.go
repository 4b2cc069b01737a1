package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Dir is a directory open for writing in it.
type Dir struct {
	w     *Writer
	place place.Place
	root  *os.Root
	file  *os.File
	dirty atomic.Bool // a name in it has changed

	identify sync.Once
	identity identity // of its names, once one was locked

	made    []made // what Open made to have it
	telling sync.Once
}

// Open opens the directory p. Where create is set, missing directories are
// created. A process's first Open of a directory removes what writes that were
// killed have left there.
func (w *Writer) Open(p place.Place, create bool) (*Dir, error) {
	d, err := w.open(p)
	if create && errors.Is(err, fs.ErrNotExist) {
		d, err = w.make(p)
	}
	if err != nil {
		return nil, err
	}
	w.sweep(d)
	return d, nil
}

func (w *Writer) open(p place.Place) (*Dir, error) {
	root, err := p.OpenRoot()
	if err != nil {
		return nil, err
	}
	f, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, p.Explain(err)
	}
	return &Dir{w: w, place: p, root: root, file: f}, nil
}

// make creates p, whose parents may be missing too, and opens it.
func (w *Writer) make(p place.Place) (*Dir, error) {
	parent := p.Parent()
	up, err := w.open(parent)
	if errors.Is(err, fs.ErrNotExist) && parent.Name != p.Name {
		up, err = w.make(parent)
	}
	if err != nil {
		return nil, err
	}
	err = up.root.Mkdir(filepath.Base(p.Name), 0o777)
	list := up.made
	if err == nil {
		up.dirty.Store(true)
		if fi, err := up.root.Lstat(filepath.Base(p.Name)); err == nil {
			list = append(list, made{p.Abs, fileinfo.From(fi)})
		}
	}
	if cerr := up.Close(); cerr != nil {
		return nil, cerr
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, Failed(p, err)
	}
	d, err := w.open(p)
	if err == nil {
		d.made = list
	}
	return d, err
}

// Close makes the names written in d durable and closes it.
func (d *Dir) Close() error {
	defer d.root.Close()
	defer d.file.Close()
	if d.dirty.Load() {
		if err := syncDir(d.file); err != nil {
			return fault.Hide(fault.FSWriteFailed, err, "%s was written to, but the system could not flush it to the disk: %s", d.place.Abs, Cause(err))
		}
	}
	return nil
}

// Root is a handle of d, valid until it is closed.
func (d *Dir) Root() *os.Root { return d.root }

// Child returns the place of name in d, opened by d's own handle.
func (d *Dir) Child(name string) place.Place {
	p := d.place.Child(name)
	p.Root, p.Name = d.root, name
	return p
}

// Rename gives the entry called old in from the name new in to. What is there
// is replaced as the system does it, or without replace is an error like
// [fs.ErrExist], decided by the system where it can. The error is the bare one
// of the system, [syscall.EXDEV] where the two are on different devices.
func Rename(from *Dir, old string, to *Dir, new string, replace bool) error {
	return from.w.rename(from, old, to, new, replace)
}

func rename(from *Dir, old string, to *Dir, new string, replace bool) error {
	if err := renameAt(from, old, to, new, replace); err != nil {
		return Cause(err)
	}
	from.dirty.Store(true)
	to.dirty.Store(true)
	return nil
}

// linkAnew is a rename without replacing by way of a second name, for systems
// and file systems that have no call for it. What cannot have two names is
// renamed after a look.
func linkAnew(from *Dir, old string, to *Dir, new string) error {
	if _, err := to.root.Lstat(new); err == nil {
		return fs.ErrExist
	}
	if from != to || from.root.Link(old, new) != nil {
		return renameAt(from, old, to, new, true)
	}
	return from.root.Remove(old)
}

// Sync makes the names in root durable where the system can.
func Sync(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return syncDir(f)
}

// sweepAge is how old a temporary file must be to count as left behind.
const sweepAge = time.Hour

// sweptMost bounds the memory of what was swept; sweeping again does no harm.
const sweptMost = 4096

// sweep removes our own temporary files that killed processes have left in d.
func (w *Writer) sweep(d *Dir) {
	w.mu.Lock()
	_, known := w.swept[d.place.Abs]
	if !known {
		if len(w.swept) >= sweptMost {
			clear(w.swept)
		}
		w.swept[d.place.Abs] = struct{}{}
	}
	w.mu.Unlock()
	if known {
		return
	}
	for {
		names, err := d.file.Readdirnames(1024)
		for _, name := range names {
			if !IsTemp(name) {
				continue
			}
			fi, err := d.root.Lstat(name)
			if err == nil && fi.Mode().IsRegular() && fileinfo.Own(fi) && time.Since(fi.ModTime()) > sweepAge {
				d.root.Remove(name)
			}
		}
		if err != nil { // io.EOF as a rule; leftovers may wait
			return
		}
	}
}

// base is the name of p in its directory; that of an allowed directory itself
// is ".".
func base(p place.Place) string { return filepath.Base(p.Name) }
