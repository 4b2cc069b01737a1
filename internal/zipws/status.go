package zipws

import (
	"context"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
)

// Status compares the workspace with the archive it was made from.
func (m *Workspaces) Status(ctx context.Context, ref string) (Status, error) {
	s, err := m.use(ctx, ref, false)
	if err != nil {
		return Status{}, err
	}
	defer s.close()
	if s.Format != pack.Zip {
		return Status{Modified: []string{}, Added: []string{}, Deleted: []string{}, Unchanged: s.Files}, nil
	}
	c, err := s.compare(ctx)
	if err != nil {
		return Status{}, err
	}
	return c.Status, nil
}

// A comparison is a workspace against its archive.
type comparison struct {
	Status
	*zipfile.Directory
	named   map[string]int
	changes []change // of the entries
	found   []node   // what took their place, by entry
	added   []node   // sorted
	stamps  []stamp
	modes   map[int]fs.FileMode // new permissions, by entry
}

// A change is what became of an entry.
type change uint8

const (
	unmodified change = iota // unchanged, or nothing that concerns the workspace
	moded                    // other permissions
	modified                 // another content is on disk, and maybe other permissions
	deleted
)

// compare looks at all files. Those that have not been touched since they were
// unpacked are not read.
func (s *session) compare(ctx context.Context) (*comparison, error) {
	d, err := s.directory()
	if err != nil {
		return nil, err
	}
	c := &comparison{Directory: d, named: d.Index(), changes: make([]change, len(d.Entries)), found: make([]node, len(d.Entries)), modes: map[int]fs.FileMode{}}
	if c.stamps, err = s.stamps(len(d.Entries)); err != nil {
		return nil, err
	}
	disk, err := s.disk(ctx)
	if err != nil {
		return nil, err
	}
	removed := layer{removed: map[string]bool{}}
	if s.Lazy {
		names, err := s.removed()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			removed.removed[name] = true
		}
	}
	contents, err := s.contents()
	if err != nil {
		return nil, err
	}
	defer contents.Close()
	there := make([]bool, len(d.Entries))
	filled := map[string]bool{} // directories with something in them
	links, bad := 0, 0
	for _, n := range disk {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		i, known := c.named[n.name]
		link := n.mode&fs.ModeSymlink != 0
		switch {
		case !n.isDir() && !n.mode.IsRegular() && !link:
			continue
		case link && !(s.Links && linkInside(contents, n.name)):
			if !known || !d.Entries[i].IsLink() {
				links++
			}
			continue
		case entryname.Bad(n.name) != "":
			bad++
			continue
		}
		filled[path.Dir(n.name)] = true
		if known && d.Entries[i].IsDir() == n.isDir() {
			there[i] = true
			c.found[i] = n
			if !n.isDir() {
				c.changes[i] = c.judge(ctx, contents, i, n, s.Lazy)
			}
			continue
		}
		c.added = append(c.added, n)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range d.Entries {
		e := &d.Entries[i]
		if there[i] || e.Hidden || e.Name == "" || hiddenName(e.Name) || e.IsLink() && !s.Links {
			continue
		}
		if s.Lazy && !removed.covered(e.Name) && !shadowed(c.added, e.Name) {
			continue
		}
		c.changes[i] = deleted
	}
	// A new directory is an entry only where nothing is in it, which of a lazy
	// session may be in the archive.
	for name, i := range c.named {
		if c.changes[i] == deleted {
			continue
		}
		for dir := path.Dir(name); dir != "." && !filled[dir]; dir = path.Dir(dir) {
			filled[dir] = true
		}
	}
	c.added = slices.DeleteFunc(c.added, func(n node) bool { return n.isDir() && filled[n.name] })
	c.sum()
	if links > 0 {
		c.Warnings = append(c.Warnings, plural(links, "symbolic link is", "symbolic links are")+" not put into archives.")
	}
	if bad > 0 {
		c.Warnings = append(c.Warnings, plural(bad, "file has a name", "files have names")+" that archives cannot carry everywhere, and stay out.")
	}
	return c, nil
}

// shadowed reports whether one of list, which is sorted, has another kind of
// thing at name, or a file at a directory it is in.
func shadowed(list []node, name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		i, ok := slices.BinarySearchFunc(list, at, func(n node, at string) int { return walk.ComparePaths(n.name, at) })
		if ok && (at == name || !list[i].isDir()) {
			return true
		}
	}
	return false
}

// hiddenName reports whether listings leave out name.
func hiddenName(name string) bool {
	for e := range strings.SplitSeq(name, "/") {
		if atomicfile.IsTemp(e) {
			return true
		}
	}
	return false
}

// linkInside reports whether the link called name stays in the workspace.
func linkInside(contents *os.Root, name string) bool {
	text, err := contents.Readlink(filepath.FromSlash(name))
	return err == nil && entryname.LinkStays(filepath.ToSlash(text), path.Dir(name))
}

// judge tells what became of the file of entry i.
func (c *comparison) judge(ctx context.Context, contents *os.Root, i int, n node, lazy bool) change {
	e, was := &c.Entries[i], c.stamps[i].Mode
	if was == 0 && lazy {
		was = modeKnown | uint32(unpackedMode(e))
	}
	became := unmodified
	if was != 0 && n.mode.IsRegular() && e.Mode.IsRegular() && n.stamp.Mode != was {
		c.modes[i] = n.mode.Perm()
		became = moded
	}
	if !c.same(ctx, contents, i, n) {
		became = modified
	}
	return became
}

// same reports whether n has the content of entry i. What cannot be read counts
// as changed, so that a sync says so.
func (c *comparison) same(ctx context.Context, contents *os.Root, i int, n node) bool {
	e := &c.Entries[i]
	link := n.mode&fs.ModeSymlink != 0
	switch {
	case e.IsLink() != link:
		return false
	case n.stamp.is(c.stamps[i]):
		return true
	case link:
		text, err := contents.Readlink(filepath.FromSlash(n.name))
		return err == nil && crc32.ChecksumIEEE([]byte(filepath.ToSlash(text))) == e.CRC
	case n.size != e.Size:
		return false
	}
	f, _, err := inside(contents, n.name).OpenFileOnly()
	if err != nil {
		return false
	}
	defer f.Close()
	sum := crc32.NewIEEE()
	if _, err := io.CopyBuffer(sum, codec.WithContext(ctx, f), make([]byte, 64<<10)); err != nil {
		return false
	}
	return sum.Sum32() == e.CRC
}

// sum fills in the Status.
func (c *comparison) sum() {
	shown := func(n string, dir bool) string {
		if dir {
			return n + "/"
		}
		return n
	}
	c.Modified, c.Added, c.Deleted = []string{}, []string{}, []string{}
	for i := range c.Entries {
		e := &c.Entries[i]
		switch {
		case e.Hidden || e.Name == "":
		case c.changes[i] == modified || c.changes[i] == moded:
			c.Modified = append(c.Modified, e.Name)
		case c.changes[i] == deleted:
			c.Deleted = append(c.Deleted, shown(e.Name, e.IsDir()))
		case !e.IsDir():
			c.Unchanged++
		}
	}
	for _, n := range c.added {
		c.Added = append(c.Added, shown(n.name, n.isDir()))
	}
	slices.SortFunc(c.Modified, walk.ComparePaths)
	slices.SortFunc(c.Deleted, walk.ComparePaths)
}
