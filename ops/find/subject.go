package find

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

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

// A candidate is an entry of a directory while it is looked at.
type candidate struct {
	subject
	onDisk
}

var candidates = sync.Pool{New: func() any { return new(candidate) }}

// evaluate decides about one entry of a directory.
func (q *query) evaluate(ctx context.Context, n walk.Node) outcome {
	c := candidates.Get().(*candidate)
	defer candidates.Put(c)
	c.onDisk = onDisk{Node: n}
	c.subject = subject{Name: n.Name, node: &c.onDisk}
	defer c.close()
	return q.decide(ctx, &c.subject)
}

// decide decides about an entry.
func (q *query) decide(ctx context.Context, s *subject) outcome {
	if ok, err := q.passes(s, costType); err != nil || !ok {
		return outcome{err: ignorable(err)}
	}
	return q.look(ctx, s)
}

// passes asks the checks that cost no more than most, and reports whether all
// hold.
func (q *query) passes(s *subject, most int) (bool, error) {
	for _, c := range q.checks {
		if c.cost > most {
			break
		}
		if ok, err := c.ok(s); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// look decides about an entry that passes by its content.
func (q *query) look(ctx context.Context, s *subject) outcome {
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
	info, err := s.describe(ctx)
	if err != nil {
		return outcome{err: ignorable(err)}
	}
	return outcome{hit: &result{Info: info, Matches: merge(lines, q.lines), rel: s.rel()}, err: incomplete}
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

// A subject is an entry being looked at.
type subject struct {
	Name string
	node
	err error // why its content could not be read
}

// A node tells of an entry. Of a link it is what the link leads to, where that
// may be told.
type node interface {
	rel() string // path below base_path
	// stat describes the entry; false where nothing may be told.
	stat() (fileinfo.Info, bool)
	isDir() bool
	// open returns the content of a regular file and its size; nil where the
	// entry is none or cannot be read.
	open() (io.ReaderAt, int64, error)
	describe(ctx context.Context) (entry.Info, error)
}

// kind is "file" or "directory".
func (s *subject) kind() string {
	if s.isDir() {
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

func (s *subject) mimeType() (string, bool) {
	f, size, err := s.open()
	if f == nil || err != nil {
		s.err = err
		return "", false
	}
	head := make([]byte, mediatype.HeadSize)
	if size > 0 { // of what has none, such as in /proc, the bytes tell
		head = head[:min(size, mediatype.HeadSize)]
	}
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		s.err = err
		return "", false
	}
	return mediatype.Detect(head[:n], s.Name), true
}

func (s *subject) search(ctx context.Context, c pattern, o search.Options) (bool, []search.Line, error) {
	if !c.covers(s.Name) {
		return false, nil, nil
	}
	f, size, err := s.open()
	if f == nil || err != nil {
		return false, nil, err
	}
	return search.Content(ctx, f, size, s.Name, c.matcher, o)
}

// onDisk is an entry of a directory.
type onDisk struct {
	walk.Node

	known   bool
	told    bool
	info    fileinfo.Info
	target  place.Place // of a link
	content content
	length  int64
	err     error // why it could not be opened
}

// A content is an open file.
type content interface {
	io.ReaderAt
	io.Closer
}

func (d *onDisk) rel() string { return d.Rel() }

func (d *onDisk) stat() (fileinfo.Info, bool) {
	if !d.known {
		d.known = true
		own, err := d.Dir.Info(d.Name)
		d.info, d.told = own, err == nil
		if d.told && own.IsLink() {
			if target, info, err := entry.Follow(d.Dir, d.Name); err == nil {
				d.target, d.info = target, info
			}
		}
	}
	return d.info, d.told
}

func (d *onDisk) isDir() bool {
	if d.IsLink() {
		info, ok := d.stat()
		return ok && info.IsDir()
	}
	return d.IsDir()
}

func (d *onDisk) open() (io.ReaderAt, int64, error) {
	if d.content == nil && d.err == nil {
		switch {
		case d.IsLink():
			if i, ok := d.stat(); ok && i.Mode.IsRegular() {
				var f *os.File
				var info fs.FileInfo
				if f, info, d.err = d.target.OpenFileOnly(); d.err == nil {
					d.content, d.length = f, info.Size()
				}
			}
		case d.Type.IsRegular():
			var r walk.Reader
			if r, d.err = d.Dir.OpenReader(d.Name); d.err == nil {
				d.content, d.length = r, r.Size()
			}
		}
	}
	if d.content == nil {
		return nil, 0, d.err
	}
	return d.content, d.length, nil
}

func (d *onDisk) close() {
	if d.content != nil {
		d.content.Close()
	}
}

func (d *onDisk) describe(ctx context.Context) (entry.Info, error) {
	return entry.Of(ctx, d.Dir, d.Entry)
}
