package journal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/etag"
)

const shown = 64 << 10

// files lists what the plan does.
func (u *undoing) files() []File {
	tops := map[string]*File{} // directories that are recreated
	var list []*File
	add := func(f File, had state) {
		if had.Kind == file && had.Sum != nil {
			f.ETag = etag.Of(had.Sum)
		}
		list = append(list, &f)
		if f.Action == Recreated && had.Kind == directory {
			tops[f.Path] = &f
		}
	}
	for _, a := range u.plan {
		switch {
		case a.to != "":
			add(File{Path: a.path, From: a.to, Action: MovedBack}, nothing)
			if a.had.Kind != absent {
				add(File{Path: a.to, Action: Recreated}, a.had)
			}
		case a.left.Kind == directory && a.action == Removed:
			// made on the way, and removed only where nothing is in it
		default:
			add(File{Path: a.path, Action: a.action}, a.had)
		}
	}
	slices.SortFunc(list, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	var files []*File
	for _, f := range list {
		top := f
		for dir := filepath.Dir(f.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if d := tops[dir]; d != nil {
				top = d
			}
		}
		if top == f {
			files = append(files, f)
		} else if tops[f.Path] == nil {
			top.Files++
		}
	}
	all := make([]File, len(files))
	for i, f := range files {
		all[i] = *f
	}
	return all
}

// show calls Show for what is small.
func (u *undoing) show(ctx context.Context) error {
	if u.Show == nil {
		return nil
	}
	for _, a := range u.plan {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := a.at
		if a.to != "" {
			at = a.moved
		}
		var now, then []byte
		ok := true
		if a.to == "" {
			f, _, err := at.Open()
			now, ok = small(f, err)
		}
		switch {
		case !ok || a.had.Kind != absent && a.had.Kind != file || a.left.Kind != absent && a.left.Kind != file:
			continue
		case a.had.Kind == absent:
		case a.had.Blob != "":
			then, ok = small(u.dir.Open(a.had.Blob))
		default:
			then = now
		}
		if !ok || a.had.Cut && int64(len(then)) < a.had.Size {
			continue
		}
		if a.had.Cut {
			then = then[:a.had.Size]
		}
		if now == nil && then == nil {
			continue
		}
		if err := u.Show(at, now, then); err != nil {
			return err
		}
	}
	return nil
}

// small reads the open file f unless it is larger than shown; what does not
// exist is nil.
func small(f *os.File, err error) (b []byte, ok bool) {
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > shown {
		return nil, false
	}
	b, err = io.ReadAll(io.LimitReader(f, shown+1))
	if b == nil {
		b = []byte{}
	}
	return b, err == nil && len(b) <= shown
}
