package zipws

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/textdiff"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// maxDiffed is the most bytes of a file that is compared by line.
const maxDiffed = 2 << 20

// Diff tells what changed at name and below since the archive was opened or
// synced last, with that many lines of context.
func (m *Workspaces) Diff(ctx context.Context, ref string, name Name, lines int) (changes []Change, err error) {
	at, err := name.clean()
	if err != nil {
		return nil, err
	}
	s, err := m.use(ctx, ref, false)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.Format != pack.Zip {
		return []Change{}, nil // it is read-only
	}
	c, err := s.compare(ctx)
	if err != nil {
		return nil, err
	}
	d := differ{s: s, lines: lines, list: []Change{}}
	if d.contents, err = s.contents(); err != nil {
		return nil, err
	}
	defer d.close()
	known := at == "."
	under := func(n string) bool { return at == "." || n == at || strings.HasPrefix(n, at+"/") }
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Hidden || e.Name == "" || !under(e.Name) {
			continue
		}
		known = true
		switch c.changes[i] {
		case modified, moded:
			change := Change{Name: e.Name, Kind: "modified", Before: &e.Size, After: &c.found[i].size}
			if mode, ok := c.modes[i]; ok {
				change.Diff = fmt.Sprintf("old mode 100%o\nnew mode 100%o\n", e.Mode.Perm(), mode)
			}
			if c.changes[i] == moded {
				d.list = append(d.list, change)
				continue
			}
			err = d.add(ctx, change, e, &c.found[i])
		case deleted:
			err = d.add(ctx, Change{Name: e.Name, Kind: "deleted", Before: &e.Size}, e, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range c.added {
		if n := &c.added[i]; under(n.name) {
			known = true
			if err := d.add(ctx, Change{Name: n.name, Kind: "added", After: &n.size}, nil, n); err != nil {
				return nil, err
			}
		}
	}
	if !known {
		if _, err := d.contents.Lstat(filepath.FromSlash(at)); err != nil {
			return nil, m.Words.explain(at, err)
		}
	}
	slices.SortFunc(d.list, func(a, b Change) int { return walk.ComparePaths(a.Name, b.Name) })
	return d.list, nil
}

// A differ collects changes.
type differ struct {
	s        *session
	contents *os.Root
	lines    int
	list     []Change
	archive  *os.File // opened when it is needed
}

func (d *differ) close() {
	d.contents.Close()
	if d.archive != nil {
		d.archive.Close()
	}
}

// add takes in a change from e to n, either of which may be nil.
func (d *differ) add(ctx context.Context, c Change, e *zipfile.Entry, n *node) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case e != nil && e.IsDir() || n != nil && n.isDir():
		c.Name += "/"
		c.Note = "directory"
	case e != nil && !e.Mode.IsRegular() || n != nil && !n.mode.IsRegular():
		c.Note = "binary"
	case e != nil && e.Size > maxDiffed || n != nil && n.size > maxDiffed:
		c.Note = "too large"
	}
	if c.Note != "" {
		d.list = append(d.list, c)
		return nil
	}
	before, after := []byte(nil), []byte(nil)
	nameA, nameB := textdiff.DevNull, textdiff.DevNull
	var err error
	if e != nil {
		nameA = "a/" + e.Name
		if before, err = d.before(ctx, e); err != nil {
			return err
		}
	}
	if n != nil {
		nameB = "b/" + n.name
		if after, err = d.after(n); err != nil {
			return err
		}
	}
	if !isText(before) || !isText(after) {
		c.Note = "binary"
	} else {
		text, err := textdiff.Unified(ctx, before, after, nameA, nameB, textdiff.Options{Context: d.lines})
		if err != nil {
			return err
		}
		c.Diff += text
	}
	d.list = append(d.list, c)
	return nil
}

func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// before reads e from the archive, which must still be what the session was made
// of.
func (d *differ) before(ctx context.Context, e *zipfile.Entry) ([]byte, error) {
	if d.archive == nil {
		f, fi, err := d.s.openSource()
		if err != nil {
			return nil, err
		}
		if _, same := d.s.unchanged(f, fi); !same {
			f.Close()
			return nil, fault.New(ConflictDetected, "%s has been modified since it was opened, so there is nothing to compare with; %s tells which files changed", d.s.Source, d.s.m.Words.Status)
		}
		d.archive = f
	}
	r, err := e.Open(d.archive)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(codec.WithContext(ctx, r))
}

// after reads n from the workspace.
func (d *differ) after(n *node) ([]byte, error) {
	f, _, err := inside(d.contents, n.name).OpenFileOnly()
	if err != nil {
		return nil, d.s.m.Words.explain(n.name, err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDiffed))
}
