package zipws

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

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
	return node{}, v.m.Words.explain(name, err)
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
		return f, v.m.Words.explain(n.name, err)
	case n.mode&fs.ModeSymlink != 0:
		return nil, fault.New(InvalidParams, "%s is a symbolic link in the archive, which is not followed", n.name)
	}
	return v.layer.Entries[n.entry].Open(v.layer.from)
}

// viewed calls f with the files of a session, and what is at name there.
func (m *Workspaces) viewed(ctx context.Context, ref string, name Name, f func(*view, node) error) error {
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
