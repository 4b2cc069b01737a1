package find

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// An outcome is what became of one entry.
type outcome struct {
	hit *result
	err error // why it could not be searched whole
}

// evaluate decides about one entry.
func (q *query) evaluate(ctx context.Context, n walk.Node) outcome {
	s := &subject{Node: n}
	defer s.close()
	for _, c := range q.checks {
		if ok, err := c.ok(s); err != nil || !ok {
			return outcome{err: ignorable(err)}
		}
	}
	var lines []search.Line
	var incomplete error
	for _, c := range q.content {
		found, more, err := s.search(ctx, c, search.Options{Max: q.lines, Context: q.context})
		if err != nil && !found {
			return outcome{err: ignorable(err)}
		}
		if !found {
			return outcome{}
		}
		incomplete = cmp.Or(incomplete, err)
		lines = append(lines, more...)
	}
	info, err := entry.Of(ctx, n.Dir, n.Entry)
	if err != nil {
		return outcome{err: ignorable(err)}
	}
	return outcome{hit: &result{Info: info, Matches: merge(lines, q.lines), rel: n.Rel}, err: incomplete}
}

// ignorable drops the error of an entry that vanished during the walk.
func ignorable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// merge puts the lines of several patterns in order, each once, at most max.
func merge(lines []search.Line, max int) []search.Line {
	slices.SortStableFunc(lines, func(a, b search.Line) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	lines = slices.CompactFunc(lines, func(a, b search.Line) bool { return a.Line == b.Line })
	return lines[:min(len(lines), max)]
}

// A subject is an entry being looked at. Of a link it is what the link leads to,
// where that may be told.
type subject struct {
	walk.Node

	known  bool
	told   bool
	info   fileinfo.Info
	target place.Place // of a link
	file   *os.File
	err    error // why it could not be opened
}

// stat describes the entry; false where nothing may be told.
func (s *subject) stat() (fileinfo.Info, bool) {
	if !s.known {
		s.known = true
		own, err := s.Dir.Info(s.Name)
		s.info, s.told = own, err == nil
		if s.told && own.IsLink() {
			if target, info, err := entry.Follow(s.Dir, s.Name); err == nil {
				s.target, s.info = target, info
			}
		}
	}
	return s.info, s.told
}

// kind is "file" or "directory".
func (s *subject) kind() string {
	isDir := s.IsDir()
	if s.IsLink() {
		info, ok := s.stat()
		isDir = ok && info.IsDir()
	}
	if isDir {
		return "directory"
	}
	return "file"
}

// size is that of a file; a directory has none.
func (s *subject) size() (int64, bool) {
	info, ok := s.stat()
	switch {
	case !ok || info.IsDir() || info.IsLink():
		return 0, false
	case !info.Mode.IsRegular():
		return 0, true
	}
	return info.Size, true
}

// open opens a regular file; nil where the entry is none or cannot be read.
func (s *subject) open() *os.File {
	if s.file != nil || s.err != nil {
		return s.file
	}
	switch {
	case s.IsLink():
		if info, ok := s.stat(); ok && info.Mode.IsRegular() {
			s.file, _, s.err = s.target.OpenFileOnly()
		}
	case s.Type.IsRegular():
		s.file, _, s.err = s.Dir.OpenFile(s.Name)
	}
	return s.file
}

func (s *subject) close() {
	if s.file != nil {
		s.file.Close()
	}
}

func (s *subject) mimeType() (string, bool) {
	f := s.open()
	if f == nil {
		return "", false
	}
	head := make([]byte, mediatype.HeadSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		s.err = err
		return "", false
	}
	return mediatype.Detect(head[:n], s.Name), true
}

func (s *subject) search(ctx context.Context, c content, o search.Options) (bool, []search.Line, error) {
	if !c.covers(s.Name) {
		return false, nil, nil
	}
	f := s.open()
	if f == nil {
		return false, nil, s.err
	}
	return search.File(ctx, f, s.Name, c.matcher, o)
}
