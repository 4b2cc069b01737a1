package pack

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An item is something to be written: a file, a directory or a link.
type item struct {
	mode     fs.FileMode // type and permissions
	modified time.Time
	size     int64
	link     string
	explicit bool // of a directory: the archive has an entry for it
	made     bool // of a directory: it exists in the stage
}

func (i *item) isDir() bool  { return i.mode.IsDir() }
func (i *item) isLink() bool { return i.mode&fs.ModeSymlink != 0 }

// A plan says what is written, by name below the destination. It holds what is
// true of every archive that is unpacked: names stay inside, and none passes
// through a link or a file.
type plan struct {
	choice
	items map[string]*item
	met   int // members so far, chosen or not
	note  notes
}

// notes count what is said of an archive in the message.
type notes struct {
	special int64 // devices, FIFOs and the like, left out
	links   int64 // links whose target the archive does not tell, left out
}

func newPlan(c choice) *plan { return &plan{choice: c, items: map[string]*item{}} }

// A choice is which members are taken, and under which names.
type choice struct {
	strip            int
	include, exclude []string
}

// maxBraces bounds the alternatives in a glob, which multiply.
const maxBraces = 4

func newChoice(strip int, include, exclude []string) (choice, error) {
	for name, list := range map[string][]string{"include": include, "exclude": exclude} {
		for _, p := range list {
			if p == "" || !doublestar.ValidatePattern(p) || strings.Count(p, "{") > maxBraces {
				return choice{}, fault.New(fault.InvalidParameter, "`%s`: %q is no valid glob; write them like *.txt or docs/**, with at most %d braces", name, p, maxBraces)
			}
		}
	}
	return choice{strip, include, exclude}, nil
}

// takes reports whether the member called name is chosen: it, or a directory it
// is in, is included and not excluded.
func (c choice) takes(name string) bool {
	return (len(c.include) == 0 || matches(c.include, name)) && !matches(c.exclude, name)
}

// matches reports whether a glob matches name or a directory it is in. One
// without a slash matches any element.
func matches(globs []string, name string) bool {
	for _, g := range globs {
		g = strings.TrimSuffix(g, "/")
		for at := name; at != "."; at = path.Dir(at) {
			candidate := at
			if !strings.Contains(g, "/") {
				candidate = path.Base(at)
			}
			if ok, _ := doublestar.Match(g, candidate); ok {
				return true
			}
		}
	}
	return false
}

func unsafeName(name, why string) error {
	return fault.New(fault.Unarchive, "the archive has an entry whose name %s: %q; nothing was unpacked", why, entryname.Shown(name))
}

// name returns the name that m gets below the destination, "" for one that is
// not chosen. Every name is judged, chosen or not.
func (p *plan) name(m *member) (string, error) {
	if p.met++; p.met > maxEntries {
		return "", tooMany()
	}
	name := entryname.Clean(m.name)
	if name == "" && m.mode.IsDir() {
		return "", nil // the destination itself
	}
	if why := entryname.Bad(name); why != "" {
		return "", unsafeName(m.name, why)
	}
	if !p.takes(name) {
		return "", nil
	}
	name, _ = strip(name, p.strip)
	return name, nil
}

// claim enters what is called name into the plan, with the directories it is
// in. It returns what was there before, for which a later entry may stand in.
func (p *plan) claim(name string, i *item) (old *item, err error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		have, ok := p.items[dir]
		if ok && !have.isDir() {
			return nil, fault.New(fault.Unarchive, "the archive has the entry %s inside %s, which is no directory in it; nothing was unpacked", entryname.Shown(name), entryname.Shown(dir))
		}
		if ok {
			break
		}
		p.items[dir] = &item{mode: fs.ModeDir | 0o777}
	}
	old = p.items[name]
	if old != nil && old.isDir() != i.isDir() {
		return nil, fault.New(fault.Unarchive, "the archive has %s both as a directory and as something else; nothing was unpacked", entryname.Shown(name))
	}
	if old != nil && i.isDir() {
		i.made = old.made
	}
	p.items[name] = i
	if len(p.items) > 2*maxEntries {
		return nil, tooMany()
	}
	return old, nil
}

// names returns the names of all items, a directory before what is in it.
func (p *plan) names() []string {
	return p.those(func(*item) bool { return true })
}

// those is names of the items that is reports true for.
func (p *plan) those(is func(*item) bool) []string {
	var list []string
	for name, i := range p.items {
		if is(i) {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, walk.ComparePaths)
	return list
}

// checkLinks refuses links that lead outside, or might. Since no entry passes
// through a link, one may go up from where it is and then down; it must not go
// up again once it has passed another link. there tells what is at the
// destination already.
func (p *plan) checkLinks(there func(name string) (fs.FileMode, bool)) error {
	for _, name := range p.those((*item).isLink) {
		i := p.items[name]
		refuse := func(why string) error {
			return fault.New(fault.Unarchive, "the archive has the symbolic link %s, which %s (%q); nothing was unpacked", entryname.Shown(name), why, entryname.Shown(i.link))
		}
		dir := path.Dir(name)
		if !entryname.LinkStays(i.link, dir) {
			return refuse("points outside the destination")
		}
		at, passed := dir, false
		for e := range strings.SplitSeq(i.link, "/") {
			switch {
			case e == "" || e == ".":
				continue
			case e == ".." && passed:
				return refuse("may point outside the destination by way of another link")
			case e == "..":
				at = path.Dir(at)
				continue
			}
			at = path.Join(at, e)
			if have, ok := p.items[at]; ok {
				passed = passed || have.isLink()
			} else if mode, ok := there(at); ok && mode&fs.ModeSymlink != 0 {
				return refuse("points through a link that is in the destination already")
			}
		}
	}
	return nil
}

// strip removes the first n elements of name; ok is false where nothing is
// left.
func strip(name string, n int) (rest string, ok bool) {
	for range n {
		var more bool
		if _, name, more = strings.Cut(name, "/"); !more {
			return "", false
		}
	}
	return name, name != ""
}
