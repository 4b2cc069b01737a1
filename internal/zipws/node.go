package zipws

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/walk"
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
		return nil, s.m.Words.explain(at, err)
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
