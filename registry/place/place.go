// Package place names files as capabilities: a name below an open handle of an
// allowed directory, so that no later exchange of a directory for a link can
// lead an operation outside.
package place

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Place is a file or directory, existing or not, that a caller may use.
// Open, stat, create, rename and remove it through Root and Name.
type Place struct {
	Root *os.Root // handle of the allowed directory that holds it
	Name string   // path below Root without links, "." for Root itself
	Abs  string   // absolute path with every link resolved, for messages and results

	// Asked is the absolute path as asked for, cleaned, before links were
	// followed; it differs from Abs where a link was.
	Asked string

	Guard Guard // judges further paths; never nil in a Place that roots made

	Base *Base // of which Root is; may be nil, and does not count once Root is another
}

// A Guard decides which paths may be used. Package roots has the one of the
// server.
type Guard interface {
	// Resolve follows every link of path and returns its place, or the reason
	// to refuse it.
	Resolve(path string) (Place, error)
	// Denied reports whether a deny rule covers abs, a path without links.
	Denied(abs string) bool
	// DeniedBelow reports whether a deny rule could match something below abs.
	DeniedBelow(abs string) bool
	// DeniedName reports whether a deny rule could match a path that ends in name,
	// and no directory above it: quickly, so that a walk asks Denied only then.
	DeniedName(name string) bool
	// HoldsRoot reports whether abs is an allowed directory or contains one.
	HoldsRoot(abs string) bool
	// Check refuses an open file that is not what its path was judged as: one
	// that a deny rule covers, reached through a link put there meanwhile.
	Check(f *os.File, abs string) error
}

// Within reports whether path is dir or lies below it, by components. Both are
// clean and absolute.
func Within(path, dir string) bool {
	if path == dir {
		return true
	}
	if !strings.HasPrefix(path, dir) {
		return false
	}
	return os.IsPathSeparator(dir[len(dir)-1]) || os.IsPathSeparator(path[len(dir)])
}

// Stays reports whether a symbolic link in dir with the relative text never
// leaves the top that dir is relative to, if what it passes are directories.
// Both are slash-separated.
func Stays(text, dir string) bool {
	depth := 0
	if dir != "" && dir != "." {
		depth = strings.Count(dir, "/") + 1
	}
	for e := range strings.SplitSeq(text, "/") {
		switch e {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return false
			}
		default:
			depth++
		}
	}
	return true
}

// Child returns the place of name in the directory p. The name must be a
// single element and no link that the caller wants followed.
func (p Place) Child(name string) Place {
	abs := filepath.Join(p.Abs, name)
	return Place{Root: p.Root, Name: filepath.Join(p.Name, name), Abs: abs, Asked: abs, Guard: p.Guard, Base: p.Base}
}

// Parent returns the place of the directory that holds p. The parent of Root
// is Root itself.
func (p Place) Parent() Place {
	if p.Name == "." {
		return p
	}
	abs := filepath.Dir(p.Abs)
	return Place{Root: p.Root, Name: filepath.Dir(p.Name), Abs: abs, Asked: abs, Guard: p.Guard, Base: p.Base}
}

// Entry returns the place of the name itself: where the path asked for ends in
// a symbolic link, the link and not its target.
func (p Place) Entry() (Place, error) {
	if p.Asked == p.Abs || p.Guard == nil {
		return p, nil
	}
	dir, err := p.Guard.Resolve(filepath.Dir(p.Asked))
	if err != nil {
		return Place{}, err
	}
	e := dir.Child(filepath.Base(p.Asked))
	if p.Guard.Denied(e.Abs) {
		return Place{}, Refused(p.Asked)
	}
	return e, nil
}

// Open opens the regular file or directory p for reading and returns what it
// is. Anything else, such as a FIFO or a device, is refused by what was opened,
// without blocking: ERR_FS_OPERATION_FAILED.
func (p Place) Open() (*os.File, fs.FileInfo, error) {
	return p.OpenFile(os.O_RDONLY, 0)
}

// OpenFile is Open with the flags and mode of [os.OpenFile].
func (p Place) OpenFile(flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, fi, err := p.open(flag|Nonblock, perm)
	if err == nil {
		err = Ordinary(p.Abs, fi.Mode())
	}
	if err == nil && p.Guard != nil {
		err = p.Guard.Check(f, p.Abs)
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, nil, err
	}
	return f, fi, nil
}

// open opens p, in one call where that can be done.
func (p Place) open(flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	if b := p.base(); b != nil {
		if f, err := b.open(p.Name, p.Abs, flag, perm); err == nil {
			fi, err := f.Stat()
			if err == nil && !fi.IsDir() {
				return f, fi, nil
			}
			f.Close() // a directory opened through Root does not name its entries by path
		}
	}
	f, err := p.Root.OpenFile(p.Name, flag, perm)
	if err != nil {
		return nil, nil, p.explain(err)
	}
	fi, err := f.Stat()
	return f, fi, err
}

// OpenFileOnly is Open for callers that want a file's bytes: a directory is
// ERR_FS_IS_DIRECTORY.
func (p Place) OpenFileOnly() (*os.File, fs.FileInfo, error) {
	f, fi, err := p.Open()
	if err != nil {
		return nil, nil, err
	}
	if fi.IsDir() {
		f.Close()
		return nil, nil, fault.New(fault.FSIsDirectory, "%s is a directory; name a file", p.Abs)
	}
	return f, fi, nil
}

// Stat describes what p is; it does not open it.
func (p Place) Stat() (fs.FileInfo, error) {
	fi, err := p.Root.Lstat(p.Name)
	return fi, p.explain(err)
}

// explain gives the errors of os.Root, which name paths below it, the path a
// caller knows.
func (p Place) explain(err error) error {
	if err == nil {
		return nil
	}
	if pe, ok := err.(*fs.PathError); ok {
		if pe.Err == syscall.ENXIO { // a socket, or a FIFO opened for writing
			return notOrdinary(p.Abs)
		}
		return &fs.PathError{Op: pe.Op, Path: p.Abs, Err: pe.Err}
	}
	return err
}

// Explain returns err with the path a caller knows in place of the name below
// Root that errors of os.Root carry.
func (p Place) Explain(err error) error { return p.explain(err) }

// Ordinary refuses what is neither a regular file nor a directory:
// ERR_FS_OPERATION_FAILED.
func Ordinary(abs string, mode fs.FileMode) error {
	if mode.IsRegular() || mode.IsDir() {
		return nil
	}
	return notOrdinary(abs)
}

func notOrdinary(abs string) error {
	return fault.New(fault.FSOperation, "%s is a special file (device, FIFO or socket); only regular files and directories can be used", abs)
}

// Refused is the error for a path that a deny rule covers.
func Refused(path string) error {
	return fault.New(fault.FSAccessDenied, "access to %s is denied by a rule of this server (CONDUIT_DENIED_PATHS, or by default the well-known places of credentials)", path)
}
