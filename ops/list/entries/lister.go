package entries

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/ignore"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/treesize"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// A lister is one run of the op.
type lister struct {
	in     params
	cfg    settings
	depth  int // levels listed below the top one
	limit  *parallel.Limit
	sizing context.Context // ends when no more time is left for sizes

	left int    // entries still to return where in.Max is set; for a limit of one
	more bool   // there was one more
	last string // the last one returned

	done    atomic.Int64 // entries returned
	deeper  atomic.Int64 // directories not entered although asked for
	missing atomic.Int64 // entries and directories that could not be read
}

func newLister(in params, cfg settings) *lister {
	l := &lister{in: in, cfg: cfg, depth: in.Depth, left: in.Max}
	if l.capped() {
		l.depth = cfg.MaxDepth
	}
	workers := runtime.GOMAXPROCS(0)
	if in.Max > 0 {
		workers = 1 // which entries are the first shows only in order
	}
	l.limit = parallel.NewLimit(workers)
	return l
}

// capped reports whether more levels were asked for than the server allows.
func (l *lister) capped() bool { return l.in.Depth < 0 || l.in.Depth > l.cfg.MaxDepth }

// A level is an open directory and its entries.
type level struct {
	dir    directory
	depth  int    // 0 for the directory listed
	rel    string // slash-separated path below that
	rules  *ignore.Stack
	shown  []walk.Entry
	hidden []walk.Entry // ignored: they count for sizes only
}

func (l *lister) read(d directory, above *ignore.Stack, rel string, depth int) (*level, error) {
	all, err := d.Entries()
	if err != nil {
		return nil, err
	}
	v := &level{dir: d, depth: depth, rel: rel}
	if l.in.Ignore != "gitignore" {
		v.shown = all
		return v, nil
	}
	v.rules = d.enter(above, rel)
	for _, e := range all {
		if v.rules.Ignored(path.Join(rel, e.Name), e.IsDir()) {
			v.hidden = append(v.hidden, e)
		} else {
			v.shown = append(v.shown, e)
		}
	}
	return v, nil
}

// top lists d, beginning after the entry with the name after. The rules above are
// those of the directories that d is in.
func (l *lister) top(ctx context.Context, d directory, above *ignore.Stack, after string) (tree, error) {
	v, err := l.read(d, above, "", 0)
	if err != nil {
		return nil, err
	}
	v.shown = slices.DeleteFunc(v.shown, func(e walk.Entry) bool { return e.Name <= after })
	v.hidden = nil
	infos, _, err := l.list(ctx, v)
	return infos, err
}

// batch is how many entries one worker takes at a time.
const batch = 64

// A part is some of the entries of a level.
type part struct {
	entries []walk.Entry
	infos   []entry.Info
	size    treesize.Sum
}

// list describes what v shows, in order, and adds up the sizes of all.
func (l *lister) list(ctx context.Context, v *level) ([]entry.Info, treesize.Sum, error) {
	var parts []*part
	err := l.limit.Divide(func(d *parallel.Division) error {
		for some := range walk.Parts(v.shown, batch) {
			p := &part{entries: some}
			parts = append(parts, p)
			if err := d.Go(func() error { return l.describe(ctx, v, p) }); err != nil {
				return err
			}
		}
		return nil
	})
	var total treesize.Sum
	infos := make([][]entry.Info, len(parts))
	for i, p := range parts {
		infos[i] = p.infos
		total.Merge(p.size)
	}
	list := slices.Concat(infos...)
	if list == nil {
		list = []entry.Info{}
	}
	for _, e := range v.hidden {
		if err == nil {
			err = l.size(&total, v, e)
		}
	}
	registry.Progress(ctx, l.done.Add(int64(len(list))), 0, "")
	return list, total, err
}

// describe fills in the infos and the size of p.
func (l *lister) describe(ctx context.Context, v *level, p *part) error {
	for _, e := range p.entries {
		if l.in.Max > 0 && l.left == 0 {
			l.more = true
			if v.depth > 0 { // nobody is told the size of the directory listed
				if err := l.size(&p.size, v, e); err != nil {
					return err
				}
			}
			continue
		}
		info, err := v.dir.describe(ctx, e)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			l.missing.Add(1)
			p.size.Unread()
			continue
		}
		if l.in.Max > 0 {
			l.left--
			l.last = e.Name
		}
		info.Sized = l.in.Sizes
		own, err := l.descend(ctx, v, e, &info)
		if err != nil {
			return err
		}
		p.size.Merge(own)
		if p.infos == nil {
			p.infos = make([]entry.Info, 0, len(p.entries))
		}
		p.infos = append(p.infos, info)
	}
	return nil
}

// descend completes info, which describes e, by what is below a directory, and
// returns its size.
func (l *lister) descend(ctx context.Context, v *level, e walk.Entry, info *entry.Info) (sum treesize.Sum, err error) {
	switch {
	case !e.IsDir() || v.depth >= l.depth:
		if e.IsDir() && l.capped() {
			l.deeper.Add(1)
		}
		if l.in.Sizes {
			counted := treesize.Sum{} // moved to the heap, so not where nothing is counted
			err = l.size(&counted, v, e)
			sum = counted
		}
	default:
		var below *[]entry.Info
		if below, sum, err = l.enter(ctx, v, e); err == nil {
			info.Children = below
		}
	}
	if err != nil || !l.in.Sizes || info.Type != "directory" {
		return sum, err
	}
	if info.IsLink {
		info.Size, info.SizeNote = entry.Unknown, "Not calculated: linked directories are not followed"
		return sum, nil
	}
	bytes, ok := sum.Bytes()
	info.Size, info.SizeNote = entry.Size(bytes), sum.Partial()
	if !ok {
		info.Size = entry.Unknown
		info.SizeNote = fmt.Sprintf("Calculation timed out due to server limit (%dms)", l.cfg.SizeTime.Milliseconds())
	}
	return sum, nil
}

// enter lists the directory e of v; nil stands for what cannot be read.
func (l *lister) enter(ctx context.Context, v *level, e walk.Entry) (*[]entry.Info, treesize.Sum, error) {
	unread := func() (*[]entry.Info, treesize.Sum, error) {
		l.missing.Add(1)
		var sum treesize.Sum
		sum.Unread()
		return nil, sum, ctx.Err()
	}
	d, err := v.dir.sub(e.Name)
	if err != nil {
		return unread()
	}
	defer d.Close()
	below, err := l.read(d, v.rules, path.Join(v.rel, e.Name), v.depth+1)
	if err != nil {
		return unread()
	}
	list, sum, err := l.list(ctx, below)
	if len(list) == 0 && l.more { // not empty: there was no room for what it holds
		return nil, sum, err
	}
	return &list, sum, err
}

// size adds e to sum where sizes were asked for.
func (l *lister) size(sum *treesize.Sum, v *level, e walk.Entry) error {
	if !l.in.Sizes {
		return nil
	}
	return v.dir.size(l.sizing, l.limit, sum, e, l.cfg.MaxDepth-v.depth)
}

// remark tells what the entries do not.
func (l *lister) remark(ctx context.Context) {
	if n := l.deeper.Load(); n > 0 {
		registry.AddRemark(ctx, "DEPTH_LIMIT_REACHED", fmt.Sprintf(
			"recursive_depth was capped at %d (CONDUIT_MAX_RECURSIVE_DEPTH); directories not descended: %d. List them by their own path.", l.cfg.MaxDepth, n), nil)
	}
	if n := l.missing.Load(); n > 0 {
		registry.AddRemark(ctx, "LISTING_INCOMPLETE", fmt.Sprintf("Entries or directories that could not be read: %d.", n), nil)
	}
	switch {
	case l.more && l.depth == 0:
		registry.AddRemark(ctx, "MORE_RESULTS", "More entries remain; call again with this cursor.", registry.More{NextCursor: url.PathEscape(l.last)})
	case l.more:
		registry.AddRemark(ctx, "MORE_RESULTS", "More entries remain; raise max_results, or list a subdirectory by its own path.", nil)
	}
}
