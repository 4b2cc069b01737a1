package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// NewBase returns the Base of the directory root.
func NewBase(root *os.Root) (*Base, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return &Base{root, f}, nil
}

// FreeOfLinks reports whether name, a path without "..", exists below b without a
// link in it, or may be created so: then the directory that is to hold it
// exists. Where it is false, the path must be followed element by element.
func (b *Base) FreeOfLinks(name string) bool {
	err := b.pass(name)
	if err == unix.ENOENT {
		err = b.pass(filepath.Dir(name))
	}
	return err == nil
}

func (b *Base) pass(name string) error {
	fd, err := b.openat2(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// open opens the file called name, whose absolute path is abs.
func (b *Base) open(name, abs string, flag int, perm fs.FileMode) (*os.File, error) {
	fd, err := b.openat2(name, flag|unix.O_CLOEXEC|unix.O_LARGEFILE, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: abs, Err: err}
	}
	return os.NewFile(uintptr(fd), abs), nil
}

// openRoot opens the directory called name.
func (b *Base) openRoot(name string) (*os.Root, error) {
	fd, err := b.openat2(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	root, err := os.OpenRoot(descriptor(fd))
	if errors.Is(err, fs.ErrNotExist) { // without /proc
		return nil, errors.ErrUnsupported
	}
	return root, err
}

func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// OpenDir opens the directory p for reading what is in it by its descriptor.
func (p Place) OpenDir() (*os.File, error) {
	if b := p.base(); b != nil {
		if f, err := b.open(p.Name, p.Abs, unix.O_DIRECTORY, 0); err == nil || decided(err) {
			return f, p.explain(err)
		}
	}
	return p.openDir()
}

func (p Place) chmod(mode fs.FileMode) error {
	f, err := p.OpenPath()
	if err != nil {
		return err
	}
	defer f.Close()
	if err = os.Chmod(descriptor(int(f.Fd())), mode); errors.Is(err, fs.ErrNotExist) {
		return errors.ErrUnsupported
	}
	return err
}

// decided reports whether err of openat2 tells of the path: where it tells of
// the system, the path is to be walked element by element.
func decided(err error) bool {
	var no syscall.Errno
	return errors.As(err, &no) && no != unix.ENOSYS && no != unix.EPERM && no != unix.EAGAIN && no != unix.EINVAL && no != unix.E2BIG
}

// OpenPath (O_PATH) returns a descriptor of what p is, of the link itself where it ends in one,
// that serves for describing it alone, [errors.ErrUnsupported] where there is
// none.
func (p Place) OpenPath() (*os.File, error) {
	b := p.base()
	if b == nil {
		return nil, errors.ErrUnsupported
	}
	fd, err := b.openat2(p.Name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: p.Abs, Err: err}
	}
	return os.NewFile(uintptr(fd), p.Abs), nil
}

// openat2 opens name without following any link in it: one that is put there at
// whatever moment is an error.
func (b *Base) openat2(name string, flag int, perm fs.FileMode) (int, error) {
	defer runtime.KeepAlive(b)
	if flag&os.O_CREATE == 0 {
		perm = 0
	}
	return unix.Openat2(int(b.file.Fd()), name, &unix.OpenHow{
		Flags: uint64(flag), Mode: uint64(perm), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}
