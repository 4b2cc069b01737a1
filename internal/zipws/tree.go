package zipws

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

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
func (m *Workspaces) List(ctx context.Context, ref string, name Name, recursive bool) ([]Item, error) {
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

// Tree draws what is below the directory called name, down to depth levels; 0 is
// all.
func (m *Workspaces) Tree(ctx context.Context, ref string, name Name, depth int) (t Tree, err error) {
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
