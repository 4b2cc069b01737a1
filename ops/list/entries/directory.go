package entries

import (
	"context"
	"path"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/ignore"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/source"
	"github.com/conduit-mcp/conduit-mcp/internal/treesize"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

// A directory is one that is listed, wherever it is.
type directory interface {
	Entries() ([]walk.Entry, error)
	sub(name string) (directory, error)
	describe(context.Context, walk.Entry) (entry.Info, error)
	// size adds what e holds, down to so many levels.
	size(ctx context.Context, l *parallel.Limit, sum *treesize.Sum, e walk.Entry, levels int) error
	// enter returns the rules that hold in it, rel being its path below those.
	enter(rules *ignore.Stack, rel string) *ignore.Stack
	Close()
}

type onDisk struct{ *walk.Dir }

func (d onDisk) sub(name string) (directory, error) {
	below, err := d.Sub(name)
	return onDisk{below}, err
}

func (d onDisk) describe(ctx context.Context, e walk.Entry) (entry.Info, error) {
	return entry.Of(ctx, d.Dir, e)
}

func (d onDisk) size(ctx context.Context, l *parallel.Limit, sum *treesize.Sum, e walk.Entry, levels int) error {
	return sum.Add(ctx, l, d.Dir, e, levels)
}

func (d onDisk) enter(rules *ignore.Stack, rel string) *ignore.Stack { return rules.Enter(d.Dir, rel) }

// inArchive is a directory in an archive. It has no ignore rules.
type inArchive struct {
	*packed
	name string
}

// packed is an archive of which something is listed.
type packed struct {
	*source.Archive
	mu    sync.Mutex
	files map[string]bool // that were listed
}

func (p *packed) Close() {} // the archive is closed when all is listed

func (d inArchive) Entries() ([]walk.Entry, error) {
	list := []walk.Entry{}
	for _, e := range d.Children(d.name) {
		list = append(list, walk.Entry{Name: path.Base(e.Name), Type: e.Mode.Type()})
	}
	return list, nil
}

func (d inArchive) sub(name string) (directory, error) {
	return inArchive{d.packed, path.Join(d.name, name)}, nil
}

// describe leaves the type of a file to be told by label.
func (d inArchive) describe(ctx context.Context, e walk.Entry) (entry.Info, error) {
	at, _ := d.Lookup(path.Join(d.name, e.Name))
	if at.Mode.IsRegular() {
		d.mu.Lock()
		d.files[at.Name] = true
		d.mu.Unlock()
	}
	return d.Info(at), ctx.Err()
}

func (d inArchive) size(_ context.Context, _ *parallel.Limit, sum *treesize.Sum, e walk.Entry, _ int) error {
	at, _ := d.Lookup(path.Join(d.name, e.Name))
	switch {
	case e.IsDir():
		sum.AddBytes(d.Size(at.Name))
	case e.Type.IsRegular():
		sum.AddBytes(at.Size)
	}
	return nil
}

func (d inArchive) enter(*ignore.Stack, string) *ignore.Stack { return nil }

// types tells the types of the files that were listed, in one pass through the
// archive.
func (d inArchive) types(ctx context.Context, list tree) error {
	types, err := d.Types(ctx, d.files)
	if err == nil {
		label(list, types, d.name)
	}
	return err
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
