package zipws

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// maxDepth is how many levels a workspace may have.
const maxDepth = 1000

// A node is a file, directory or link in a workspace.
type node struct {
	name  string // below the top
	mode  fs.FileMode
	size  int64
	mtime time.Time
	stamp stamp // of what is on disk
	entry int   // of what is still in the archive alone; otherwise -1
}

func (n node) isDir() bool { return n.mode.IsDir() }

// disk lists all files of the workspace that are on disk, as a walk meets them.
func (s *session) disk(ctx context.Context) ([]node, error) { return s.diskBelow(ctx, ".", maxDepth) }

// diskBelow lists what is on disk below the directory called at. Where that does
// not exist it is nothing.
func (s *session) diskBelow(ctx context.Context, at string, depth int) ([]node, error) {
	contents, err := s.contents()
	if err != nil {
		return nil, err
	}
	defer contents.Close()
	top, err := walk.OpenRoot(inside(contents, at))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(at, err)
	}
	defer top.Close()
	prefix := ""
	if at != "." {
		prefix = at + "/"
	}
	type seen struct {
		node
		err error
	}
	var list []node
	_, err = walk.Tree(ctx, top, walk.TreeOptions{Depth: depth}, func(_ context.Context, n walk.Node) seen {
		fi, err := n.Dir.Root().Lstat(n.Name)
		if err != nil {
			return seen{err: err}
		}
		return seen{node: nodeOf(prefix+n.Rel(), fi)}
	}, func(n seen) bool {
		if n.err == nil { // else it is gone by now
			list = append(list, n.node)
		}
		return true
	})
	return list, err
}

func nodeOf(name string, fi fs.FileInfo) node {
	n := node{name: name, mode: fi.Mode(), mtime: fi.ModTime(), stamp: stampOf(fi), entry: -1}
	if !n.isDir() {
		n.size = fi.Size()
	}
	return n
}

// inside is the place of a name in a workspace, as messages tell it.
func inside(contents *os.Root, name string) place.Place {
	name = filepath.FromSlash(name)
	return place.Place{Root: contents, Name: name, Abs: name, Asked: name}
}

// A layer is what a lazy session has in the archive, below what is on disk.
type layer struct {
	*directory
	named   map[string]int  // entries
	parents map[string]bool // directories that entries are in
	removed map[string]bool
	from    *os.File // the archive
}

// layer opens the archive of a lazy session.
func (s *session) layer() (*layer, error) {
	d, err := s.directory()
	if err != nil {
		return nil, err
	}
	l := &layer{directory: d, named: d.named(), parents: map[string]bool{}, removed: map[string]bool{}}
	names, err := s.removed()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		l.removed[name] = true
	}
	for name := range l.named {
		for dir := path.Dir(name); dir != "." && !l.parents[dir] && !l.covered(name); dir = path.Dir(dir) {
			l.parents[dir] = true
		}
	}
	f, fi, err := s.openSource()
	if err != nil {
		return nil, err
	}
	if _, same := s.unchanged(f, fi); !same {
		f.Close()
		return nil, fault.New(ConflictDetected, "%s was modified since it was opened, and this session reads from it; close it with discard and open the archive again", s.Source)
	}
	l.from = f
	return l, nil
}

// unchanged reports whether the archive is as it was by its list of entries,
// which it returns.
func (s *session) unchanged(f *os.File, fi fs.FileInfo) (*directory, bool) {
	d, err := readDirectory(f, fi.Size())
	return d, err == nil && fi.Size() == s.Archive.Size && d.hash() == s.Hash
}

// removed lists what a lazy session has deleted.
func (s *session) removed() ([]string, error) {
	b, err := s.root.ReadFile(part("removed", s.Generation))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	return names, json.Unmarshal(b, &names)
}

// remember writes down that name is deleted. The session must be locked alone.
func (s *session) remember(name string) error {
	names, err := s.removed()
	if err != nil || slices.Contains(names, name) {
		return err
	}
	b, err := json.Marshal(append(names, name))
	if err != nil {
		return err
	}
	s.m.step("write removed")
	if err := writeDurably(s.root, fresh, b); err != nil {
		return err
	}
	s.m.step("place removed")
	return s.root.Rename(fresh, part("removed", s.Generation))
}

// covered reports whether name, or a directory it is in, is deleted.
func (l *layer) covered(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if l.removed[name] {
			return true
		}
	}
	return false
}

// find returns what the archive has at name.
func (l *layer) find(name string) (node, bool) {
	if l.covered(name) {
		return node{}, false
	}
	if i, ok := l.named[name]; ok {
		e := &l.entries[i]
		return node{name: name, mode: e.mode, size: e.size, mtime: e.mtime, entry: i}, true
	}
	if name == "." || l.parents[name] {
		return node{name: name, mode: fs.ModeDir | 0o755, entry: -1}, true
	}
	return node{}, false
}

// A view is a session's files, wherever they are.
type view struct {
	*session
	contents *os.Root
	layer    *layer // nil unless the session is lazy
}

func (s *session) view() (*view, error) {
	v := &view{session: s}
	var err error
	if s.Lazy {
		if v.layer, err = s.layer(); err != nil {
			return nil, err
		}
	}
	if v.contents, err = s.contents(); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

func (v *view) close() {
	if v.layer != nil {
		v.layer.from.Close()
	}
	if v.contents != nil {
		v.contents.Close()
	}
}

// find tells what is at name.
func (v *view) find(name string) (node, error) {
	fi, err := v.contents.Stat(filepath.FromSlash(name))
	if err == nil {
		return nodeOf(name, fi), nil
	}
	if v.layer != nil && errors.Is(err, fs.ErrNotExist) {
		if n, ok := v.layer.find(name); ok {
			return n, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // or a link to nothing
		if fi, lerr := v.contents.Lstat(filepath.FromSlash(name)); lerr == nil {
			return nodeOf(name, fi), nil
		}
	}
	return node{}, explain(name, err)
}

// below lists what is below the directory called at, down to that many levels
// below its own entries.
func (v *view) below(ctx context.Context, at string, depth int) ([]node, error) {
	list, err := v.diskBelow(ctx, at, depth)
	if err != nil || v.layer == nil {
		return list, err
	}
	prefix := ""
	if at != "." {
		prefix = at + "/"
	}
	known := make(map[string]bool, len(list))
	for _, n := range list {
		known[n.name] = true
	}
	add := func(name string) {
		if rest, ok := strings.CutPrefix(name, prefix); !ok || rest == "" || known[name] || strings.Count(rest, "/") > depth {
			return
		}
		if n, ok := v.layer.find(name); ok {
			known[name] = true
			list = append(list, n)
		}
	}
	for name := range v.layer.named {
		add(name)
	}
	for name := range v.layer.parents {
		add(name)
	}
	slices.SortFunc(list, func(a, b node) int { return walk.ComparePaths(a.name, b.name) })
	return list, nil
}

// open opens the file n for reading from the start.
func (v *view) open(n node) (io.ReadCloser, error) {
	switch {
	case n.isDir():
		return nil, fault.New(InvalidParams, "%s is a directory; name a file", n.name)
	case n.entry < 0:
		f, _, err := inside(v.contents, n.name).OpenFileOnly()
		return f, explain(n.name, err)
	case n.mode&fs.ModeSymlink != 0:
		return nil, fault.New(InvalidParams, "%s is a symbolic link in the archive, which is not followed", n.name)
	}
	return v.layer.entries[n.entry].open(v.layer.from)
}

func (n node) item(name string) Item {
	i := Item{Name: name, Type: "file", Size: n.size, Modified: Time(n.mtime)}
	switch {
	case n.isDir():
		i.Name, i.Type = name+"/", "dir"
	case n.mode&fs.ModeSymlink != 0:
		i.Type = "symlink"
	}
	return i
}

// List lists what is in the directory called name, or the file of that name,
// sorted; where recursive is set, all below.
func (m *Manager) List(ctx context.Context, ref string, name Name, recursive bool) ([]Item, error) {
	depth := 0
	if recursive {
		depth = maxDepth
	}
	var items []Item
	err := m.viewed(ctx, ref, name, func(v *view, top node) error {
		if !top.isDir() {
			items = []Item{top.item(path.Base(top.name))}
			return nil
		}
		list, err := v.below(ctx, top.name, depth)
		items = make([]Item, 0, len(list))
		for _, n := range list {
			items = append(items, n.item(relative(top.name, n.name)))
		}
		return err
	})
	return items, err
}

// relative is name as seen from the directory dir, which it is in.
func relative(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// viewed calls f with the files of a session, and what is at name there.
func (m *Manager) viewed(ctx context.Context, ref string, name Name, f func(*view, node) error) error {
	at, err := name.clean()
	if err != nil {
		return err
	}
	s, err := m.use(ctx, ref, false)
	if err != nil {
		return err
	}
	defer s.close()
	v, err := s.view()
	if err != nil {
		return err
	}
	defer v.close()
	n, err := v.find(at)
	if err != nil {
		return err
	}
	return f(v, n)
}

// Tree draws what is below the directory called name, down to depth levels; 0 is
// all.
func (m *Manager) Tree(ctx context.Context, ref string, name Name, depth int) (t Tree, err error) {
	if depth <= 0 {
		depth = maxDepth
	}
	err = m.viewed(ctx, ref, name, func(v *view, top node) error {
		if !top.isDir() {
			return fault.New(InvalidParams, "%s is a file; name a directory", top.name)
		}
		list, err := v.below(ctx, top.name, depth-1)
		if err != nil {
			return err
		}
		t = draw(top.name, list)
		return nil
	})
	return t, err
}

// draw draws a list that is sorted as a walk meets it.
func draw(top string, list []node) Tree {
	var t Tree
	last := map[string]int{} // of the entries of each directory
	for i, n := range list {
		last[path.Dir(n.name)] = i
	}
	var b strings.Builder
	b.WriteString(".")
	var indent []string // by level
	for i, n := range list {
		rel := relative(top, n.name)
		level := strings.Count(rel, "/")
		indent = indent[:min(level, len(indent))]
		b.WriteByte('\n')
		for _, s := range indent {
			b.WriteString(s)
		}
		arm, below := "├── ", "│   "
		if last[path.Dir(n.name)] == i {
			arm, below = "└── ", "    "
		}
		indent = append(indent, below)
		b.WriteString(arm)
		b.WriteString(path.Base(n.name))
		if n.isDir() {
			b.WriteByte('/')
			t.Dirs++
		} else {
			t.Files++
		}
	}
	t.Text = b.String()
	return t
}

// Read writes to w the bytes of the file called name from offset on, at most
// limit of them unless that is negative, and returns the size of the file.
func (m *Manager) Read(ctx context.Context, ref string, name Name, offset, limit int64, w io.Writer) (size int64, err error) {
	err = m.viewed(ctx, ref, name, func(v *view, n node) error {
		size = n.size
		if n.isDir() && string(n.name) == "." {
			return fault.New(InvalidParams, "the path is that of the workspace itself; name a file")
		}
		r, err := v.open(n)
		if err != nil {
			return err
		}
		defer r.Close()
		if f, ok := r.(*os.File); ok {
			_, err = f.Seek(offset, io.SeekStart)
		} else {
			err = discard(ctx, r, offset)
		}
		if err != nil {
			return err
		}
		var from io.Reader = stopping{ctx, r}
		if limit >= 0 {
			from = io.LimitReader(from, limit)
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{w}, from, make([]byte, 64<<10))
		return err
	})
	return size, err
}

// discard skips n bytes of r, or all there are.
func discard(ctx context.Context, r io.Reader, n int64) error {
	_, err := io.CopyN(io.Discard, stopping{ctx, r}, n)
	if err == io.EOF {
		err = nil
	}
	return err
}

// stopping is a reader that ends with its context.
type stopping struct {
	ctx context.Context
	io.Reader
}

func (s stopping) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(b)
}

// materialize unpacks what a lazy session has not yet. The session must be
// locked alone.
func (s *session) materialize(ctx context.Context, progress func(done, total int64)) error {
	l, err := s.layer()
	if err != nil {
		return err
	}
	defer l.from.Close()
	contents, err := s.contents()
	if err != nil {
		return err
	}
	defer contents.Close()
	stamps, err := s.stamps()
	if err != nil {
		return err
	}
	u := unpacking{session: s, from: l.from, directory: l.directory, to: contents, stamps: stamps, progress: progress}
	err = u.run(ctx, func(i int) bool { return !l.covered(l.entries[i].name) })
	if err != nil {
		return err
	}
	s.m.step("write stamps")
	if err := writeDurably(s.root, part("stamps", s.Generation), appendStamps(nil, stamps)); err != nil {
		return err
	}
	s.Lazy = false
	return s.save()
}
