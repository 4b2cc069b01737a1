package filetree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// file copies the regular file from, which open opens, to name in out.
func (c *copier) file(ctx context.Context, from string, open func() (*os.File, fs.FileInfo, error), out sink, name string) error {
	f, fi, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	fill := func(to *os.File) error {
		err := transfer(ctx, to, f, fi.Size())
		if err == nil && c.exact {
			err = verify(ctx, to, f)
		}
		if at := new(fs.PathError); errors.As(err, &at) && at.Op == "read" {
			return fault.Hide(fault.FSReadFailed, err, "%s could not be read to its end: %s", from, at.Err)
		}
		return err
	}
	if out.dir == nil {
		err = c.newFile(out.root, name, fi, fill)
	} else {
		mode := atomicfile.Overwrite
		if c.o.Create {
			mode = atomicfile.Create
		}
		var r atomicfile.Report
		if r, err = out.dir.Write(ctx, name, atomicfile.Options{Mode: mode, Like: fi, Keep: c.o.Keep}, fill); r.InPlace {
			c.inPlace.Store(true)
		}
		if r.Parted {
			c.parted.Store(true)
		}
	}
	if err == nil {
		c.count()
	}
	return err
}

// newFile writes a new file in a directory that nobody sees yet.
func (c *copier) newFile(root *os.Root, name string, like fs.FileInfo, fill func(*os.File) error) error {
	f, fi, err := place.Place{Root: root, Name: name}.OpenFile(os.O_RDWR|os.O_CREATE|os.O_EXCL, like.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := fill(f); err != nil {
		return err
	}
	if fi.Mode().Perm() != like.Mode().Perm() {
		if err := f.Chmod(like.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := atomicfile.SetModified(f, root, name, like.ModTime()); err != nil {
		return err
	}
	if c.exact {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

const (
	smallFile = 256 << 10
	copyStep  = 32 << 20 // copied between two looks at ctx
)

var buffers = sync.Pool{New: func() any { return new([smallFile]byte) }}

// transfer copies the content of from to to. The kernel does it for large
// files; small ones take fewer calls by way of a buffer.
func transfer(ctx context.Context, to, from *os.File, size int64) error {
	if size > smallFile {
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := io.CopyN(to, from, copyStep); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	buf := buffers.Get().(*[smallFile]byte)
	defer buffers.Put(buf)
	for done := int64(0); ; {
		n, err := from.Read(buf[:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return err
		}
		if done += int64(n); done == size && n < len(buf) {
			return nil // as long as it was told to be, and no more to be had
		}
	}
}

// verify compares what was written with what it was read from.
func verify(ctx context.Context, to, from *os.File) error {
	var sums [2][]byte
	for i, f := range []*os.File{to, from} {
		at, err := f.Seek(0, io.SeekCurrent)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			sums[i], err = etag.Sum(ctx, f)
		}
		if err == nil {
			_, err = f.Seek(at, io.SeekStart)
		}
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return errors.New("the copy differs from the original, which may have changed meanwhile")
	}
	return nil
}
