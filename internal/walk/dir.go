// Package walk reads directories through open handles, so that a walk never
// leaves the allowed directory it began in.
package walk

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Dir is an open directory.
type Dir struct {
	place   place.Place
	root    *os.Root
	file    *os.File
	guarded bool // a deny rule may match below
	refs    atomic.Int32
}

// An Entry is a name in a directory and what it is.
type Entry struct {
	Name string
	Type fs.FileMode // type bits only
}

// IsDir reports whether the entry itself is a directory.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// IsLink reports whether the entry is a symbolic link.
func (e Entry) IsLink() bool { return e.Type&fs.ModeSymlink != 0 }

// Open opens the directory p. Anything else is ERR_FS_IS_FILE.
func Open(p place.Place) (*Dir, error) {
	fi, err := p.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, fault.New(fault.FSIsFile, "%s is a file; name a directory", p.Abs)
	}
	return open(p, p.Root, p.Name)
}

func open(p place.Place, root *os.Root, name string) (*Dir, error) {
	sub, err := root.OpenRoot(name)
	if err != nil {
		return nil, p.Explain(err)
	}
	f, err := sub.Open(".")
	if err != nil {
		sub.Close()
		return nil, p.Explain(err)
	}
	d := &Dir{place: p, root: sub, file: f}
	d.refs.Store(1)
	if p.Guard != nil {
		if d.guarded = p.Guard.DeniedBelow(p.Abs); d.guarded {
			if err := p.Guard.Check(f, p.Abs); err != nil {
				d.Close()
				return nil, err
			}
		}
	}
	return d, nil
}

// Retain keeps d open until one more Close.
func (d *Dir) Retain() { d.refs.Add(1) }

// Close closes d once every holder has done so.
func (d *Dir) Close() {
	if d.refs.Add(-1) == 0 {
		d.file.Close()
		d.root.Close()
	}
}

// Place is where d is.
func (d *Dir) Place() place.Place { return d.place }

// Root is a handle of d itself: names below it need no further resolution. It
// is valid until d is closed.
func (d *Dir) Root() *os.Root { return d.root }

// File is d opened for reading, for calls on its descriptor.
func (d *Dir) File() *os.File { return d.file }

// Entries returns what is in d, sorted by name, without our temporary files and
// what a deny rule covers.
func (d *Dir) Entries() ([]Entry, error) {
	list, _, err := d.EntriesCounted()
	return list, err
}

// EntriesCounted is Entries, and how many entries a deny rule left out. It can
// be called once per Dir.
func (d *Dir) EntriesCounted() (list []Entry, denied int, err error) {
	if list, err = readDir(d.file); err != nil {
		return nil, 0, d.place.Explain(err)
	}
	list = slices.DeleteFunc(list, func(e Entry) bool {
		if atomicfile.IsTemp(e.Name) {
			return true
		}
		hidden := d.guarded && d.place.Guard.Denied(filepath.Join(d.place.Abs, e.Name))
		if hidden {
			denied++
		}
		return hidden
	})
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, denied, nil
}

// Info describes the entry called name; links are not followed.
func (d *Dir) Info(name string) (fileinfo.Info, error) {
	i, err := fileinfo.At(d.root, d.file, name, name)
	if err != nil {
		return i, d.place.Child(name).Explain(err)
	}
	return i, nil
}

// Sub opens the directory called name in d.
func (d *Dir) Sub(name string) (*Dir, error) { return open(d.place.Child(name), d.root, name) }

// OpenFile opens the regular file called name for reading. Whatever else it has
// become meanwhile is refused; a FIFO does not block.
func (d *Dir) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	p := d.place.Child(name)
	p.Root, p.Name = d.root, name
	if !d.guarded {
		p.Guard = nil
	}
	return p.OpenFileOnly()
}

// Readlink returns the text of the symbolic link called name.
func (d *Dir) Readlink(name string) (string, error) {
	t, err := d.root.Readlink(name)
	return t, d.place.Child(name).Explain(err)
}

// ComparePaths orders slash-separated relative paths as walks meet them:
// element by element, a directory before what it contains.
func ComparePaths(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		if !moreA || !moreB {
			return cmp.Compare(len(a), len(b))
		}
		a, b = restA, restB
	}
}
