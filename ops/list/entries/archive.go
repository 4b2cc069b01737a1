package entries

import (
	"context"
	"path"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/member"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// inside lists the directory called name in an archive, beginning after the
// entry with the name after.
func (l *lister) inside(ctx context.Context, at place.Place, name, after string) (tree, error) {
	if l.in.Ignore == "gitignore" {
		return nil, fault.New(fault.InvalidParameter, `ignore "gitignore" is for directories; leave it out inside an archive`)
	}
	a, err := member.Open(ctx, at, l.in.Path.String())
	if err != nil {
		return nil, err
	}
	defer a.Close()
	top, err := a.Find(name)
	if err != nil {
		return nil, err
	}
	if !top.IsDir() {
		return nil, fault.New(fault.FSIsFile, "%s is a file in the archive; name a directory", l.in.Path)
	}
	files := map[string]bool{}
	list := l.packed(a, top.Name, after, 0, files)
	types, err := a.Types(ctx, files)
	if err != nil {
		return nil, err
	}
	label(list, types, top.Name)
	registry.Progress(ctx, l.done.Load(), 0, "")
	l.remark(ctx)
	return list, ctx.Err()
}

// packed describes what is in a directory of an archive and notes the names of
// the files.
func (l *lister) packed(a *member.Archive, name, after string, depth int, files map[string]bool) []entry.Info {
	list := []entry.Info{}
	for _, e := range a.Children(name) {
		if path.Base(e.Name) <= after {
			continue
		}
		if l.in.Max > 0 && l.left == 0 {
			l.more = true
			break
		}
		l.left--
		l.last = path.Base(e.Name)
		l.done.Add(1)
		info := a.Info(e)
		info.Sized = l.in.Sizes
		switch {
		case e.Mode.IsRegular():
			files[e.Name] = true
		case e.IsDir():
			l.directory(a, e, depth, &info, files)
		}
		list = append(list, info)
	}
	return list
}

func (l *lister) directory(a *member.Archive, e pack.Entry, depth int, info *entry.Info, files map[string]bool) {
	if l.in.Sizes {
		info.Size = entry.Size(a.Below(e.Name))
	}
	if depth >= l.depth {
		if l.capped() {
			l.deeper.Add(1)
		}
		return
	}
	before := l.more
	below := l.packed(a, e.Name, "", depth+1, files)
	if len(below) > 0 || l.more == before {
		info.Children = &below
	}
}

// label fills in the types of files in a listing of the directory called name.
func label(list []entry.Info, types map[string]string, name string) {
	for i := range list {
		full := path.Join(name, list[i].Name)
		list[i].MIMEType = types[full]
		if list[i].Children != nil {
			label(*list[i].Children, types, full)
		}
	}
}
