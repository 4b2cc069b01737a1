//go:build !linux

package walk

import (
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// openFile opens the directory name below root, which is p: what is in it is
// reached through a root of its own.
func openFile(p place.Place, root *os.Root, name string) (*Dir, error) {
	return openRoot(p, root, name)
}

func closeDescriptor(int) {}

func (d *Dir) sub(name string) (*Dir, error) { return openRoot(d.place.Child(name), d.root, name) }

// read returns what is in d, in no order.
func (d *Dir) read(ctx context.Context) ([]Entry, error) {
	var list []Entry
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some, err := d.file.ReadDir(1024)
		for _, e := range some {
			list = append(list, Entry{e.Name(), e.Type()})
		}
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (d *Dir) info(name string) (fileinfo.Info, error) {
	return fileinfo.At(d.root, d.file, name, name)
}

// Stat describes d itself.
func (d *Dir) Stat() (fileinfo.Info, error) { return fileinfo.OfFile(d.file) }

// Readlink returns the text of the symbolic link called name.
func (d *Dir) Readlink(name string) (string, error) {
	t, err := d.root.Readlink(name)
	return t, d.place.Child(name).Explain(err)
}

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

// A Reader is a regular file opened for reading. It must be closed.
type Reader struct {
	f    *os.File
	size int64
}

// OpenReader is OpenFile for a caller that only reads.
func (d *Dir) OpenReader(name string) (Reader, error) {
	f, fi, err := d.OpenFile(name)
	if err != nil {
		return Reader{}, err
	}
	return Reader{f, fi.Size()}, nil
}

// OpenInfo is OpenReader, and describes the file that was opened.
func (d *Dir) OpenInfo(name string) (Reader, fileinfo.Info, error) {
	f, fi, err := d.OpenFile(name)
	if err != nil {
		return Reader{}, fileinfo.Info{}, err
	}
	return Reader{f, fi.Size()}, fileinfo.From(fi), nil
}

// Size is what the file held when it was opened, in bytes.
func (r Reader) Size() int64 { return r.size }

// ReadAt is that of [io.ReaderAt].
func (r Reader) ReadAt(b []byte, off int64) (int, error) { return r.f.ReadAt(b, off) }

// Close closes the file.
func (r Reader) Close() error { return r.f.Close() }
