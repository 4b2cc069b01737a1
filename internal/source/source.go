// Package source opens what callers name, be it a file or directory on disk or
// something inside an archive, such as archive.zip!/inner/path.
package source

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Ref names a file or directory on disk, or something inside an archive.
type Ref interface {
	// Archive returns the place of an archive and a name in it, "." for its top,
	// where the Ref leads into one.
	Archive() (at place.Place, name string, ok bool)
	// Place returns the place on disk; it is an error where there is none.
	Place() (place.Place, error)
	// String is the Ref as the caller wrote it.
	String() string
}

// A File is the content of a file, read from its beginning.
type File struct {
	io.Reader
	Disk *os.File // the same, where it is on disk
	Size int64    // -1 of what is in an archive, which may declare any
	Name string   // what tells the type where the content does not
	Path string   // absolute, every link followed

	closers []io.Closer
}

// Open opens the file that r names. A directory is ERR_FS_IS_DIRECTORY.
func Open(ctx context.Context, r Ref) (*File, error) {
	at, name, ok := r.Archive()
	if !ok {
		at, err := r.Place()
		if err != nil {
			return nil, err
		}
		f, info, err := at.OpenFileOnly()
		if err != nil {
			return nil, err
		}
		return &File{Reader: f, Disk: f, Size: info.Size(), Name: at.Asked, Path: at.Abs, closers: []io.Closer{f}}, nil
	}
	a, err := OpenArchive(ctx, at, r.String())
	if err != nil {
		return nil, err
	}
	e, err := a.Find(name)
	if err == nil {
		var c io.ReadCloser
		if c, _, err = a.OpenMember(ctx, e.Name); err == nil {
			return &File{Reader: c, Size: -1, Name: e.Name, Path: a.Path(e.Name), closers: []io.Closer{c, a}}, nil
		}
	}
	a.Close()
	return nil, err
}

// Close closes the file.
func (f *File) Close() error {
	var errs []error
	for _, c := range f.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// An Info describes a file or directory.
type Info struct {
	fileinfo.Info        // of what is in an archive, only type, permissions, size and Modified
	Name          string // its last element, as the caller wrote it
	MIMEType      string // of a regular file by its first bytes; empty where these cannot be read
}

// Stat describes what r names.
func Stat(ctx context.Context, r Ref) (Info, error) {
	at, name, ok := r.Archive()
	if !ok {
		at, err := r.Place()
		if err != nil {
			return Info{}, err
		}
		own, err := fileinfo.Of(at)
		i := Info{Info: own, Name: filepath.Base(at.Asked)}
		if err == nil && own.Mode.IsRegular() {
			i.MIMEType = typeOf(at, i.Name)
		}
		return i, err
	}
	a, err := OpenArchive(ctx, at, r.String())
	if err != nil {
		return Info{}, err
	}
	defer a.Close()
	e, err := a.Find(name)
	if err != nil {
		return Info{}, err
	}
	i := Info{Info: a.Stat(e), Name: path.Base(name)}
	i.Created = time.Time{}
	if name == "." {
		i.Name = filepath.Base(at.Asked)
	}
	if e.Mode.IsRegular() {
		types, err := a.Types(ctx, map[string]bool{e.Name: true})
		if err != nil {
			return Info{}, err
		}
		i.MIMEType = types[e.Name]
	}
	return i, nil
}

func typeOf(at place.Place, name string) string {
	f, _, err := at.OpenFileOnly()
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, mediatype.HeadSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return ""
	}
	return mediatype.Detect(head[:n], name)
}
