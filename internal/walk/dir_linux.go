package walk

import (
	"context"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/dirfd"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// openFile opens the directory p without a root of its own.
func openFile(p place.Place, _ *os.Root, _ string) (*Dir, error) {
	f, err := p.OpenDir()
	if err != nil {
		return nil, err
	}
	return newDir(p, nil, f), nil
}

func closeDescriptor(fd int) { unix.Close(fd) }

func (d *Dir) read(ctx context.Context) ([]Entry, error) { return readDir(ctx, d.fd) }

func (d *Dir) info(name string) (fileinfo.Info, error) { return fileinfo.Below(d.fd, name) }

// Stat describes d itself.
func (d *Dir) Stat() (fileinfo.Info, error) {
	i, err := fileinfo.Below(d.fd, "")
	return i, d.place.Explain(err)
}

// sub opens the directory called name. Where it has become a link that is not
// followed, so it is the one whose path was judged.
func (d *Dir) sub(name string) (*Dir, error) {
	p := d.place.Child(name)
	fd, err := dirfd.Open(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.Abs, Err: err}
	}
	s := &Dir{place: p, fd: fd, guarded: d.guarded}
	s.refs.Store(1)
	return s, nil
}

// Readlink returns the text of the symbolic link called name.
func (d *Dir) Readlink(name string) (string, error) {
	for size := 128; ; size *= 2 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(d.fd, name, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", &fs.PathError{Op: "readlink", Path: d.place.Child(name).Abs, Err: err}
		case n < size:
			return string(b[:n]), nil
		}
	}
}

// OpenFile opens the regular file called name for reading. Whatever else it has
// become meanwhile is refused; a FIFO does not block.
func (d *Dir) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	f, err := d.OpenReader(name)
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(f.fd), d.place.Child(name).Abs)
	fi, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, fi, nil
}

// A Reader is a regular file opened for reading that costs less than an
// [os.File]. It must be closed.
type Reader struct {
	fd   int
	size int64
	dir  *Dir // with name, for messages
	name string
}

// OpenReader is OpenFile for a caller that only reads.
func (d *Dir) OpenReader(name string) (Reader, error) {
	r, _, err := d.OpenInfo(name)
	return r, err
}

// OpenInfo is OpenReader, and describes the file that was opened.
func (d *Dir) OpenInfo(name string) (Reader, fileinfo.Info, error) {
	fd, err := dirfd.Open(d.fd, name, unix.O_RDONLY)
	if err != nil {
		return Reader{}, fileinfo.Info{}, d.place.Child(name).Explain(&fs.PathError{Op: "open", Path: name, Err: err})
	}
	i, err := fileinfo.Below(fd, "")
	switch {
	case err != nil:
	case i.IsDir():
		err = fault.New(fault.FSIsDirectory, "%s is a directory; name a file", d.Path(name))
	case !i.Mode.IsRegular():
		err = place.Ordinary(d.Path(name), i.Mode)
	}
	if err != nil {
		unix.Close(fd)
		return Reader{}, fileinfo.Info{}, d.place.Child(name).Explain(err)
	}
	return Reader{fd, i.Size, d, name}, i, nil
}

// Size is what the file held when it was opened, in bytes.
func (r Reader) Size() int64 { return r.size }

// ReadAt is that of [io.ReaderAt].
func (r Reader) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		k, err := unix.Pread(r.fd, b[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, &fs.PathError{Op: "read", Path: r.dir.Path(r.name), Err: err}
		case k == 0:
			return n, io.EOF
		default:
			n += k
		}
	}
	return n, nil
}

// Close closes the file.
func (r Reader) Close() error { return unix.Close(r.fd) }
