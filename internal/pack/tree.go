package pack

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// An entry is a file, directory or link on its way into an archive.
type entry struct {
	name string        // in the archive, without a slash at the end
	info fileinfo.Info // as it was met
	link string        // target of a link
	at   place.Place   // of a file that is a source by itself
	dir  *walk.Dir     // of any other file: the directory that holds it
	base string        // its name there
}

// open opens the file e.
func (e *entry) open() (*os.File, fs.FileInfo, error) {
	if e.dir != nil {
		return e.dir.OpenFile(e.base)
	}
	return e.at.OpenFileOnly()
}

func (e *entry) abs() string {
	if e.dir != nil {
		return filepath.Join(e.dir.Place().Abs, e.base)
	}
	return e.at.Abs
}

// A tally counts what is packed and what is not.
type tally struct {
	mu      sync.Mutex
	skipped []string
	Report
}

// skip notes a source, or a file in one, that cannot be read.
func (t *tally) skip(abs string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.skipped) < maxSkipped {
		t.skipped = append(t.skipped, strings.ToValidUTF8(abs, "\uFFFD"))
	}
	t.Unreadable++
}

// A collector walks sources and hands on what is in them.
type collector struct {
	ctx       context.Context
	recursive bool
	self      place.Place    // the archive
	old       *fileinfo.Info // what is there before; may be nil
	tally     *tally
	emit      func(entry) error
}

// A level is one directory of a source.
type level struct {
	dir   *walk.Dir
	name  string   // in the archive; "" for the top of a file system
	top   string   // root of the tree that dir belongs to
	tops  []string // top and, where a linked directory is packed, those it was reached from
	depth int
}

func (l level) child(dir *walk.Dir, name string) level {
	l.dir, l.name, l.depth = dir, join(l.name, name), l.depth+1
	return l
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// source hands on the source p, called name in the archive. It reports false
// where it cannot be read.
func (c *collector) source(p place.Place, name string) (bool, error) {
	info, err := fileinfo.Of(p)
	if err != nil || c.isSelf(p.Abs, info) {
		return false, nil
	}
	switch {
	case info.IsDir():
		d, err := walk.Open(p)
		if err != nil {
			return false, nil
		}
		defer d.Close()
		return true, c.directory(level{dir: d, name: name, top: p.Abs, tops: []string{p.Abs}})
	case info.Mode.IsRegular():
		return true, c.emit(entry{name: name, info: info, at: p})
	}
	return false, nil
}

func (c *collector) isSelf(abs string, info fileinfo.Info) bool {
	return abs == c.self.Abs || c.old != nil && info.ID == c.old.ID && info.ID != fileinfo.ID{} && !info.IsDir()
}

// directory hands on l and what is in it.
func (c *collector) directory(l level) error {
	if l.depth >= entryname.MaxLevels {
		return walk.TooDeep(l.dir.Place().Abs, "pack its parts")
	}
	entries, denied, err := l.dir.EntriesCounted()
	if err != nil {
		c.tally.skip(l.dir.Place().Abs)
		return nil
	}
	c.tally.Denied += int64(denied)
	if l.name != "" {
		info, err := l.dir.Stat()
		if err != nil {
			return err
		}
		if err := c.emit(entry{name: l.name, info: info}); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if entryname.Bad(join(l.name, e.Name)) != "" {
			c.tally.Names++
			continue
		}
		switch {
		case e.IsDir() && c.recursive:
			sub, err := l.dir.Sub(e.Name)
			if err != nil {
				c.tally.skip(filepath.Join(l.dir.Place().Abs, e.Name))
				continue
			}
			err = c.directory(l.child(sub, e.Name))
			sub.Close()
			if err != nil {
				return err
			}
		case e.IsDir():
		case e.IsLink():
			if err := c.link(l, e.Name); err != nil {
				return err
			}
		case e.Type.IsRegular():
			info, err := l.dir.Info(e.Name)
			if err != nil {
				c.tally.skip(filepath.Join(l.dir.Place().Abs, e.Name))
				continue
			}
			if c.isSelf(filepath.Join(l.dir.Place().Abs, e.Name), info) {
				continue
			}
			if err := c.emit(entry{name: join(l.name, e.Name), info: info, dir: l.dir, base: e.Name}); err != nil {
				return err
			}
		default:
			c.tally.Special++
		}
	}
	return nil
}

// link hands on the symbolic link called name: as a link where it leads to
// something that is packed with it, else what it leads to.
func (c *collector) link(l level, name string) error {
	text, err := l.dir.Readlink(name)
	if err != nil {
		return nil // it is gone
	}
	at := l.dir.Place()
	target, err := at.Guard.Resolve(filepath.Join(at.Abs, name))
	if err != nil { // not allowed, or a loop
		c.tally.Links++
		return nil
	}
	info, err := fileinfo.Of(target)
	if place.Within(target.Abs, l.top) && (c.recursive || err == nil && !info.IsDir() && filepath.Dir(target.Abs) == at.Abs) {
		return c.keepLink(l, name, text, target)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.tally.Links++
	case err != nil:
		c.tally.skip(filepath.Join(at.Abs, name))
	case info.IsDir():
		if !c.recursive {
			return nil
		}
		if slices.ContainsFunc(l.tops, func(top string) bool { return place.Within(top, target.Abs) }) {
			c.tally.Links++ // it would be packed into itself for ever
			return nil
		}
		sub, err := walk.Open(target)
		if err != nil {
			c.tally.skip(target.Abs)
			return nil
		}
		defer sub.Close()
		in := l.child(sub, name)
		in.top, in.tops = target.Abs, append(slices.Clip(l.tops), target.Abs)
		return c.directory(in)
	case !info.Mode.IsRegular():
		c.tally.Special++
	case !c.isSelf(target.Abs, info):
		return c.emit(entry{name: join(l.name, name), info: info, at: target})
	}
	return nil
}

// keepLink hands on a link into its own tree. Its text becomes relative, so
// that it means the same wherever the archive is opened.
func (c *collector) keepLink(l level, name, text string, target place.Place) error {
	at := l.dir.Place()
	rel, err := filepath.Rel(l.top, at.Abs)
	if err != nil {
		return err
	}
	if text = filepath.ToSlash(text); !entryname.LinkStays(text, filepath.ToSlash(rel)) || c.detour(l, text) {
		if text, err = filepath.Rel(at.Abs, target.Abs); err != nil {
			return err
		}
		if text = filepath.ToSlash(text); !entryname.LinkStays(text, filepath.ToSlash(rel)) {
			c.tally.Links++
			return nil
		}
	}
	info, err := l.dir.Info(name)
	if err != nil || !info.IsLink() {
		return nil // it has changed meanwhile
	}
	return c.emit(entry{name: join(l.name, name), info: info, link: text})
}

// detour reports whether text goes up again after it went down, past what may
// be another link.
func (c *collector) detour(l level, text string) bool {
	down := false
	for e := range strings.SplitSeq(text, "/") {
		if e == ".." && down {
			return true
		}
		down = down || e != ".." && e != "." && e != ""
	}
	return false
}
