// Package entry describes what is in directories, in the form in which results
// of list and find show it (EntryInfo of the specification, section 5.3).
package entry

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// An Info is one entry of a directory. Of a symbolic link it tells what the link
// leads to where that is allowed; otherwise the type is "file", the times are
// the link's own, and size and permissions are left out.
type Info struct {
	Name        string  `json:"name"`
	NameLossy   bool    `json:"name_lossy,omitempty"` // not UTF-8: shown with U+FFFD, cannot be addressed
	Path        string  `json:"path"`                 // every link resolved but the entry's own name
	Type        string  `json:"type"`                 // "file" or "directory"
	Size        Size    `json:"size_bytes,omitzero"`
	MIMEType    string  `json:"mime_type,omitempty"` // by content; absent where it cannot be read
	Created     string  `json:"created_at_iso"`
	Modified    string  `json:"modified_at_iso"`
	Octal       string  `json:"permissions_octal,omitempty"`
	Permissions string  `json:"permissions_string,omitempty"`
	IsLink      bool    `json:"is_symlink,omitempty"`
	LinkTarget  string  `json:"symlink_target_path,omitempty"` // as the link has it
	Children    *[]Info `json:"children,omitempty"`            // nil where nobody looked
	SizeNote    string  `json:"recursive_size_calculation_note,omitempty"`
	Sized       bool    `json:"-"` // sizes were asked for, so lean views show them
}

// A Size is a number of bytes, [Unknown] or [Untold].
type Size int64

const (
	Unknown Size = -1 // null: it could not be found out
	Untold  Size = -2 // left out
)

// IsZero reports whether s is left out.
func (s Size) IsZero() bool { return s == Untold }

// MarshalJSON writes Unknown as null.
func (s Size) MarshalJSON() ([]byte, error) {
	if s < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

// Of describes the entry e of d. Only regular files are opened. One that has
// vanished since d was read is [fs.ErrNotExist].
func Of(ctx context.Context, d *walk.Dir, e walk.Entry) (Info, error) {
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	i := Info{Name: e.Name, Path: d.Path(e.Name)}
	if !utf8.ValidString(i.Path) {
		i.Name, i.Path, i.NameLossy = valid(e.Name), valid(i.Path), !utf8.ValidString(e.Name)
	}
	if e.Type.IsRegular() {
		// What is open is described in half the time that its name takes.
		if f, own, err := d.OpenInfo(e.Name); err == nil {
			i.Describe(own)
			i.MIMEType = mimeType(f, int64(i.Size), i.Name)
			f.Close()
			return i, nil
		}
	}
	own, err := d.Info(e.Name)
	if err != nil {
		return Info{}, err
	}
	if !own.IsLink() {
		i.Describe(own)
		return i, nil
	}
	text, err := d.Readlink(e.Name)
	if err != nil {
		return Info{}, err
	}
	i.IsLink, i.LinkTarget = true, valid(text)
	target, info, err := Follow(d, e.Name)
	if err != nil {
		i.Describe(own)
		return i, nil
	}
	i.Describe(info)
	if info.Mode.IsRegular() {
		if f, _, err := target.OpenFileOnly(); err == nil {
			i.MIMEType = mimeType(f, int64(i.Size), i.Name)
			f.Close()
		}
	}
	return i, nil
}

// Follow returns what the symbolic link called name in d leads to, or why that
// may not or cannot be told.
func Follow(d *walk.Dir, name string) (place.Place, fileinfo.Info, error) {
	target, err := d.Place().Guard.Resolve(filepath.Join(d.Place().Abs, name))
	if err != nil {
		return place.Place{}, fileinfo.Info{}, err
	}
	info, err := fileinfo.Of(target)
	return target, info, err
}

// Describe fills in what info tells; of a link that is not followed, no size and
// no permissions.
func (i *Info) Describe(info fileinfo.Info) {
	i.Type = info.Type()
	i.Created, i.Modified = fileinfo.ISO(info.Created), fileinfo.ISO(info.Modified)
	if info.IsLink() {
		i.Size = Untold
		return
	}
	i.Octal, i.Permissions = info.Octal(), info.String()
	if info.Mode.IsRegular() || info.IsDir() {
		i.Size = Size(info.Size)
	}
}

var heads = sync.Pool{New: func() any { return new([mediatype.HeadSize]byte) }}

// mimeType returns the type of a file of size bytes by the first of them, or ""
// where they cannot be read: the rest is worth telling all the same.
func mimeType(f io.ReaderAt, size int64, name string) string {
	buf := heads.Get().(*[mediatype.HeadSize]byte)
	defer heads.Put(buf)
	head := buf[:]
	if size > 0 { // of what has none, such as in /proc, the bytes tell
		head = buf[:min(size, mediatype.HeadSize)]
	}
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return ""
	}
	return mediatype.Detect(head[:n], name)
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
