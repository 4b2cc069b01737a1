package find

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/source"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// inside searches the directory called name in an archive. What cheap checks
// leave is then read in one pass through the archive.
func (r *run) inside(ctx context.Context, at place.Place, asked, name string) (results, error) {
	if r.tree.GitIgnore {
		return nil, fault.New(fault.InvalidParameter, `find: ignore "gitignore" is for directories; leave it out inside an archive`)
	}
	limited, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()
	a, err := source.OpenArchive(limited, at, asked)
	if err != nil {
		if err = r.ended(ctx, err); err == nil {
			r.remark(ctx, 0, false)
		}
		return r.found, err
	}
	defer a.Close()
	top, err := a.Dir(name)
	if err != nil {
		return nil, err
	}
	passed := map[string]*packed{}
	deep := a.Walk(top.Name, r.tree.Depth, r.tree.After, func(rel string, e pack.Entry) {
		p := &packed{archive: a, entry: e, below: rel}
		if ok, _ := r.query.passes(p.subject(), costStat); ok {
			passed[e.Name] = p
		}
	})
	hits := map[string]*result{}
	judge := func(p *packed) {
		o := r.query.decide(limited, p.subject())
		r.note(ctx, limited, o)
		if o.hit != nil {
			hits[p.entry.Name] = o.hit
		}
	}
	for _, p := range passed {
		if !p.entry.Mode.IsRegular() {
			judge(p)
		}
	}
	err = a.Visit(limited, func(e pack.Entry) bool { return passed[e.Name] != nil && e.Mode.IsRegular() }, func(e pack.Entry, content io.Reader) error {
		p := passed[e.Name]
		if p.content, p.err = source.NewStream(content); limited.Err() != nil {
			return limited.Err()
		}
		judge(p)
		p.content = nil
		return limited.Err()
	})
	if err := r.ended(ctx, err); err != nil {
		return nil, err
	}
	for _, h := range hits {
		r.found = append(r.found, *h)
	}
	slices.SortFunc(r.found, func(a, b result) int { return walk.ComparePaths(a.rel, b.rel) })
	more := r.max > 0 && len(r.found) > r.max
	if more {
		r.found = r.found[:r.max]
	}
	r.remark(ctx, deep, more)
	return r.found, nil
}

// ended takes note that the time is up, and returns any other error.
func (r *run) ended(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.missed.TimedOut = true
		return nil
	}
	return err
}

// packed is an entry of an archive.
type packed struct {
	archive *source.Archive
	entry   pack.Entry
	below   string
	content *source.Stream // while it is read
	err     error          // of reading
}

func (p *packed) subject() *subject {
	return &subject{Name: path.Base(p.entry.Name), node: p}
}

func (p *packed) rel() string { return p.below }

func (p *packed) stat() (fileinfo.Info, bool) { return p.archive.Stat(p.entry), true }

func (p *packed) isDir() bool { return p.entry.IsDir() }

func (p *packed) open() (io.ReaderAt, int64, error) {
	if p.content == nil {
		return nil, 0, p.err
	}
	return p.content, p.entry.Size, nil
}

func (p *packed) describe(context.Context) (entry.Info, error) {
	i := p.archive.Info(p.entry)
	if p.content != nil {
		head := make([]byte, mediatype.HeadSize)
		if n, err := p.content.ReadAt(head, 0); err == nil || err == io.EOF {
			i.MIMEType = mediatype.Detect(head[:n], p.entry.Name)
		}
	}
	return i, nil
}
