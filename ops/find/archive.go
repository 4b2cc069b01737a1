package find

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/member"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry"
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
	a, err := member.Open(limited, at, asked)
	if err != nil {
		if err = r.ended(ctx, err); err == nil {
			r.remark(ctx, 0, false)
		}
		return r.found, err
	}
	defer a.Close()
	top, err := a.Find(name)
	if err != nil {
		return nil, err
	}
	if !top.IsDir() {
		return nil, fault.New(fault.FSIsFile, "%s is a file in the archive; name a directory", asked)
	}
	prefix := top.Name + "/"
	if top.Name == "." {
		prefix = ""
	}
	deep := map[string]bool{} // directories not entered
	passed := map[string]*packed{}
	for _, e := range a.Entries() {
		rel, ok := strings.CutPrefix(e.Name, prefix)
		if !ok || rel == "" || a.Denied(e.Name) || r.tree.After != "" && walk.ComparePaths(rel, r.tree.After) <= 0 {
			continue
		}
		if level := strings.Count(rel, "/"); level > r.tree.Depth {
			if level == r.tree.Depth+1 {
				deep[path.Dir(rel)] = true
			}
			continue
		}
		p := &packed{archive: a, entry: e, below: rel}
		if ok, _ := r.query.passes(p.subject(), costStat); ok {
			passed[e.Name] = p
		}
	}
	hits := map[string]*result{}
	judge := func(p *packed) {
		r.seen++
		registry.Progress(ctx, r.seen, 0, "entries looked at")
		s := p.subject()
		if ok, err := r.query.passes(s, costType); err != nil || !ok {
			return
		}
		o := r.query.look(limited, s)
		switch {
		case o.err == nil:
		case errors.Is(o.err, search.ErrGivenUp):
			r.missed.GivenUp++
		case limited.Err() == nil:
			r.missed.Unreadable++
		}
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
		if p.content, p.err = member.NewStream(content); limited.Err() != nil {
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
	r.remark(ctx, len(deep), more)
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
	archive *member.Archive
	entry   pack.Entry
	below   string
	content *member.Stream // while it is read
	err     error          // of reading
}

func (p *packed) subject() *subject {
	return &subject{Name: path.Base(p.entry.Name), source: p}
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
