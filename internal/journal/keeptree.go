package journal

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// keepTree keeps a directory and all that is in it.
func (p *Part) keepTree(ctx context.Context, dir *os.File, at place.Place, now state) {
	top, err := walk.Open(at)
	if err != nil {
		p.spoil()
		return
	}
	total, err := weigh(ctx, top, 0)
	top.Close()
	p.c.mu.Lock()
	fits := p.bytes+total <= p.c.j.max/10
	p.c.mu.Unlock()
	if err != nil || !fits {
		p.spoil()
		return
	}
	if top, err = walk.OpenRoot(at); err != nil {
		p.spoil()
		return
	}
	defer top.Close()
	k := keeping{p: p}
	k.g, ctx = parallel.WithContext(ctx)
	k.g.SetLimit(runtime.GOMAXPROCS(0))
	k.directory(ctx, top, now)
	ended := ctx.Err() // Wait ends it too
	if k.g.Wait() != nil || ended != nil {
		p.spoil()
	}
}

// maxLevels is how deep a tree may be nested.
const maxLevels = 1000

var errUnkept = errors.New("cannot be kept")

// weigh sums the sizes of the files below dir.
func weigh(ctx context.Context, dir *walk.Dir, depth int) (int64, error) {
	entries, denied, err := dir.EntriesCounted()
	if err != nil {
		return 0, err
	}
	if denied > 0 || depth > maxLevels {
		return 0, errUnkept
	}
	var total int64
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		switch {
		case e.IsDir():
			sub, err := dir.Sub(e.Name)
			if err != nil {
				return 0, err
			}
			n, err := weigh(ctx, sub, depth+1)
			sub.Close()
			if err != nil {
				return 0, err
			}
			total += n
		case e.Type.IsRegular():
			i, err := dir.Info(e.Name)
			if err != nil {
				return 0, err
			}
			total += i.Size
		case !e.IsLink():
			return 0, errUnkept
		}
	}
	return total, nil
}

// A keeping is one run of keepTree.
type keeping struct {
	p *Part
	g *parallel.Group
}

const filesAtATime = 64

// directory keeps dir, which is as now says, and what is in it.
func (k *keeping) directory(ctx context.Context, dir *walk.Dir, now state) {
	if !k.p.had(dir.Place().Abs, now, now, atomicfile.Replaced) {
		return
	}
	entries, err := dir.Entries()
	if err != nil {
		k.p.spoil()
		return
	}
	var files []string
	for _, e := range entries {
		if ctx.Err() != nil {
			return
		}
		if !e.IsDir() {
			files = append(files, e.Name)
			continue
		}
		sub, err := dir.Sub(e.Name)
		if err != nil {
			k.p.spoil()
			return
		}
		i, err := fileinfo.OfFile(sub.File())
		if err == nil {
			k.directory(ctx, sub, stateOf(i))
		}
		sub.Close()
	}
	for some := range slices.Chunk(files, filesAtATime) {
		dir.Retain()
		k.g.Go(func() error {
			defer dir.Close()
			for _, name := range some {
				if ctx.Err() != nil || !k.one(ctx, dir, name) {
					return errUnkept
				}
			}
			return nil
		})
	}
}

func (k *keeping) one(ctx context.Context, dir *walk.Dir, name string) bool {
	i, err := dir.Info(name)
	if err != nil {
		return false
	}
	at := dir.Place().Child(name)
	at.Root, at.Name = dir.Root(), name
	return k.p.keepOne(ctx, dir.File(), at, stateOf(i), i.Links, atomicfile.Replaced, nil)
}
