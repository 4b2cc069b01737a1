// Package member reads what is inside archives in place of files: names such as
// archive.zip!/inner/path.
package member

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// maxLinks bounds the links followed for one name.
const maxLinks = 40

// An Archive is open until it is closed. What a deny rule covers is not in it:
// rules see its entries below a directory called like the archive with a "!"
// added.
type Archive struct {
	*pack.Archive
	file     *os.File
	place    place.Place
	asked    string
	modified time.Time
}

// Open opens the archive at a place; asked is how errors call it.
func Open(ctx context.Context, at place.Place, asked string) (*Archive, error) {
	f, info, err := at.OpenFileOnly()
	if err != nil {
		return nil, err
	}
	list, err := pack.Open(ctx, f, info.Size(), asked)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Archive{Archive: list, file: f, place: at, asked: asked, modified: info.ModTime()}, nil
}

// Close closes the archive.
func (a *Archive) Close() error { return a.file.Close() }

// Path is the absolute path of a name in the archive.
func (a *Archive) Path(name string) string {
	if name == "." {
		name = ""
	}
	return a.place.Abs + "!/" + name
}

// Denied reports whether a deny rule covers a name.
func (a *Archive) Denied(name string) bool {
	return a.place.Guard != nil && a.place.Guard.Denied(filepath.Join(a.place.Abs+"!", filepath.FromSlash(name)))
}

// Find returns the entry called name, every link in the archive followed. One
// that is not there is ERR_FS_NOT_FOUND.
func (a *Archive) Find(name string) (pack.Entry, error) {
	full := name
	for range maxLinks {
		if a.Denied(name) {
			return pack.Entry{}, place.Refused(a.Path(full))
		}
		e, ok := a.Lookup(name)
		switch {
		case !ok:
			return e, fault.New(fault.FSNotFound, "no such entry in the archive: %s", a.Path(full))
		case !e.IsLink():
			return e, nil
		}
		target, err := a.target(e)
		if err != nil {
			return e, err
		}
		if path.IsAbs(target) {
			return e, fault.New(fault.FSNotFound, "%s is a symbolic link to %s, which is not in the archive", a.Path(full), target)
		}
		name = path.Join(path.Dir(e.Name), target)
	}
	return pack.Entry{}, fault.New(fault.FSPathResolution, "%s: too many symbolic links; they may form a loop", a.Path(full))
}

// target is where a link points.
func (a *Archive) target(e pack.Entry) (string, error) {
	if e.Link != "" {
		return e.Link, nil
	}
	r, _, err := a.OpenMember(context.Background(), e.Name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	const longest = 4096
	text, err := io.ReadAll(io.LimitReader(r, longest))
	return string(text), err
}

// Children lists what is directly in a directory, sorted.
func (a *Archive) Children(name string) []pack.Entry {
	var list []pack.Entry
	for _, e := range a.Archive.Children(name) {
		if !a.Denied(e.Name) {
			list = append(list, e)
		}
	}
	return list
}

// Stat describes an entry as a file of this machine would be.
func (a *Archive) Stat(e pack.Entry) fileinfo.Info {
	modified := e.Modified
	if modified.IsZero() {
		modified = a.modified
	}
	return fileinfo.Info{Mode: e.Mode, Size: e.Size, Modified: modified, Created: modified}
}

// Info describes an entry as listings show it, but for the MIME type. Archives
// keep one time, which stands for both.
func (a *Archive) Info(e pack.Entry) entry.Info {
	i := entry.Info{Name: path.Base(e.Name), Path: a.Path(e.Name)}
	i.Describe(a.Stat(e))
	switch {
	case e.IsLink():
		i.IsLink = true
		i.LinkTarget, _ = a.target(e)
	case e.IsDir():
		i.Size = entry.Untold
	}
	return i
}

// Below is the sum of the sizes that the archive declares of the files below a
// directory.
func (a *Archive) Below(name string) (sum int64) {
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	for _, e := range a.Entries() {
		if len(e.Name) > len(prefix) && e.Name[:len(prefix)] == prefix && e.Mode.IsRegular() && !a.Denied(e.Name) {
			sum += e.Size
		}
	}
	return sum
}

// Types tells the MIME types of files by their first bytes. A file that cannot
// be read is left out.
func (a *Archive) Types(ctx context.Context, names map[string]bool) (map[string]string, error) {
	types := map[string]string{}
	head := make([]byte, mediatype.HeadSize)
	err := a.Visit(ctx, func(e pack.Entry) bool { return names[e.Name] && e.Mode.IsRegular() }, func(e pack.Entry, r io.Reader) error {
		if n, err := io.ReadFull(r, head); err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
			types[e.Name] = mediatype.Detect(head[:n], e.Name)
		}
		return ctx.Err()
	})
	return types, err
}

// A Stream is content that is read once from its beginning to its end, and
// whose first bytes can be read again.
type Stream struct {
	r    io.Reader
	head []byte
	at   int64
}

// Replayed is how many bytes of a Stream can be read again.
const Replayed = 1 << 20

// NewStream reads the first bytes of r.
func NewStream(r io.Reader) (*Stream, error) {
	var head bytes.Buffer
	n, err := io.CopyN(&head, r, Replayed)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return &Stream{r: r, head: head.Bytes(), at: n}, nil
}

// ReadAt reads from the first bytes, or on from where the last one ended.
func (s *Stream) ReadAt(b []byte, offset int64) (n int, err error) {
	if offset < int64(len(s.head)) {
		n = copy(b, s.head[offset:])
		offset += int64(n)
	}
	if n == len(b) {
		return n, nil
	}
	if offset != s.at {
		return n, &fs.PathError{Op: "read", Path: "stream", Err: fs.ErrInvalid}
	}
	more, err := io.ReadFull(s.r, b[n:])
	s.at += int64(more)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n + more, err
}
