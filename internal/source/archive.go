package source

import (
	"context"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
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

// OpenArchive opens the archive at a place; asked is how errors call it.
func OpenArchive(ctx context.Context, at place.Place, asked string) (*Archive, error) {
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

// Dir finds the directory called name, every link in the archive followed. A file
// is ERR_FS_IS_FILE.
func (a *Archive) Dir(name string) (pack.Entry, error) {
	e, err := a.Find(name)
	if err == nil && !e.IsDir() {
		err = fault.New(fault.FSIsFile, "%s is a file in the archive; name a directory", a.asked)
	}
	return e, err
}

// Children lists what is directly in a directory, sorted.
func (a *Archive) Children(name string) []pack.Entry {
	return slices.DeleteFunc(a.Archive.Children(name), func(e pack.Entry) bool { return a.Denied(e.Name) })
}

// Walk calls yield for what is below a directory, as a walk of a tree meets it,
// with its path below. So many levels are entered below the first. after, where
// it is not empty, is the path of the last entry of an earlier walk. deep is how
// many directories were not entered.
func (a *Archive) Walk(name string, levels int, after string, yield func(rel string, e pack.Entry)) (deep int) {
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	last := ""
	for _, e := range a.Entries() {
		rel, ok := strings.CutPrefix(e.Name, prefix)
		if !ok || rel == "" || a.Denied(e.Name) || after != "" && walk.ComparePaths(rel, after) <= 0 {
			continue
		}
		switch level := strings.Count(rel, "/"); {
		case level <= levels:
			yield(rel, e)
		case level == levels+1 && path.Dir(rel) != last:
			last = path.Dir(rel)
			deep++
		}
	}
	return deep
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

// Size is the sum of the sizes that the archive declares of the files below a
// directory.
func (a *Archive) Size(name string) (sum int64) {
	a.Walk(name, math.MaxInt-1, "", func(_ string, e pack.Entry) {
		if e.Mode.IsRegular() {
			sum += e.Size
		}
	})
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
