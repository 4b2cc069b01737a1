// Package place names files as capabilities: a name below an open handle of an
// allowed directory, so that no later exchange of a directory for a link can
// lead an operation outside.
package place

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Place is a file or directory, existing or not, that a caller may use.
// Its methods follow no link below Root: what has become one since Name was
// judged is an error like [syscall.ELOOP], which becomes ERR_FS_ACCESS_DENIED.
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
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, nil, err
	}
	return f, fi, nil
}

// open opens p, in one call where that can be done.
func (p Place) open(flag int, perm fs.FileMode) (f *os.File, fi fs.FileInfo, err error) {
	if b := p.base(); b != nil {
		if f, err = b.open(p.Name, p.Abs, flag, perm); err == nil {
			if fi, err = f.Stat(); err != nil || !fi.IsDir() {
				return f, fi, err
			}
			f.Close() // a directory opened through a root does not name its entries by path
			if f, err = p.openDir(); err == nil {
				fi, err = f.Stat()
			}
			return f, fi, err
		}
		if decided(err) {
			return nil, nil, p.explain(err)
		}
	}
	err = p.In(func(dir *os.Root, name string) error {
		if f, err = dir.OpenFile(name, flag, perm); err != nil {
			return err
		}
		if fi, err = f.Stat(); err == nil && p.Guard != nil {
			err = p.Guard.Check(f, p.Abs) // its last element may have become a link
		}
		return err
	})
	return f, fi, err
}

// openDir opens the directory p through a root of its own.
func (p Place) openDir() (*os.File, error) {
	root, err := p.OpenRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(".")
	return f, p.explain(err)
}

// OpenRoot opens the directory p.
func (p Place) OpenRoot() (*os.Root, error) {
	if b := p.base(); b != nil {
		if root, err := b.openRoot(p.Name); err == nil || decided(err) {
			return root, p.explain(err)
		}
	}
	dir := p.Root
	for name := range strings.SplitSeq(p.Name, string(os.PathSeparator)) {
		sub, err := OpenRootIn(dir, name)
		if dir != p.Root {
			dir.Close()
		}
		if err != nil {
			return nil, p.explain(err)
		}
		dir = sub
	}
	return dir, nil
}

// OpenRootIn opens the directory called name, a single element, in dir. A link
// is none.
func OpenRootIn(dir *os.Root, name string) (*os.Root, error) {
	meant, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case meant.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
	case !meant.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := sub.Stat("."); err != nil || !os.SameFile(meant, opened) {
		sub.Close()
		return nil, cmp.Or(err, error(&fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}))
	}
	return sub, nil
}

// In calls f with the directory that holds p, open, and the name of p there.
// What f does must not follow a link of that name.
func (p Place) In(f func(dir *os.Root, name string) error) error {
	if !strings.ContainsRune(p.Name, os.PathSeparator) {
		return p.explain(f(p.Root, p.Name))
	}
	dir, err := p.Parent().OpenRoot()
	if err != nil {
		return p.explain(err)
	}
	defer dir.Close()
	return p.explain(f(dir, filepath.Base(p.Name)))
}

// Remove removes the file, link or empty directory p.
func (p Place) Remove() error {
	return p.In(func(dir *os.Root, name string) error { return dir.Remove(name) })
}

// Readlink returns the text of the symbolic link p.
func (p Place) Readlink() (text string, err error) {
	err = p.In(func(dir *os.Root, name string) error {
		text, err = dir.Readlink(name)
		return err
	})
	return text, err
}

// Mkdir makes the directory p, where all is set with those it lies in.
func (p Place) Mkdir(perm fs.FileMode, all bool) error {
	mkdir := func(dir *os.Root, name string) error { return dir.Mkdir(name, perm) }
	err := p.In(mkdir)
	if up := p.Parent(); all && errors.Is(err, fs.ErrNotExist) && up.Name != p.Name {
		if err = up.Mkdir(perm, true); err == nil || errors.Is(err, fs.ErrExist) {
			err = p.In(mkdir)
		}
	}
	return err
}

// Chmod gives p the permissions of mode.
func (p Place) Chmod(mode fs.FileMode) error {
	if err := p.chmod(mode); err == nil || decided(err) {
		return p.explain(err)
	}
	return p.In(func(dir *os.Root, name string) error {
		if fi, err := dir.Lstat(name); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return &fs.PathError{Op: "chmod", Path: name, Err: syscall.ELOOP}
		}
		return dir.Chmod(name, mode)
	})
}

// Chown gives p to the user and group with these numbers.
func (p Place) Chown(uid, gid int) error {
	return p.In(func(dir *os.Root, name string) error { return dir.Lchown(name, uid, gid) })
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
func (p Place) Stat() (fi fs.FileInfo, err error) {
	if f, err := p.OpenPath(); err == nil {
		defer f.Close()
		return f.Stat()
	} else if decided(err) {
		return nil, p.explain(err)
	}
	err = p.In(func(dir *os.Root, name string) error {
		fi, err = dir.Lstat(name)
		return err
	})
	return fi, err
}

// explain gives the errors of os.Root, which name paths below it, the path a
// caller knows.
func (p Place) explain(err error) error {
	if err == nil {
		return nil
	}
	if pe, ok := err.(*fs.PathError); ok {
		switch pe.Err {
		case syscall.ENXIO: // a socket, or a FIFO opened for writing
			return notOrdinary(p.Abs)
		case syscall.ELOOP:
			return fault.Hide(fault.FSAccessDenied, err, "%s was exchanged for a symbolic link, or what it lies in was, while the call ran; look at it and try again", p.Abs)
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
