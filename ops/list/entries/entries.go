// Package entries adds list.entries: what a directory holds.
package entries

import (
	"context"
	"net/url"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/ignore"
	"github.com/conduit-mcp/conduit-mcp/internal/source"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/ops/list"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    list.Tool,
	Name:    "entries",
	Summary: "List a directory, or a tree.",
	Effect:  registry.ReadOnly,
	Errors: []fault.Code{fault.InvalidParameter, fault.FSNotFound, fault.FSAccessDenied, fault.FSIsFile,
		fault.FSPathResolution, fault.FSBadPathInput, fault.FSOperation, fault.Unarchive, fault.ArchiveDetect, fault.LimitExceeded},
	Examples: []registry.Example{
		{Title: "A directory", Args: `{"path": "src"}`},
		{Title: "A tree without what git ignores", Args: `{"path": ".", "recursive_depth": 3, "ignore": "gitignore"}`},
		{Title: "What the directories in a directory hold", Args: `{"path": ".", "calculate_recursive_size": true}`},
	},
}

type settings struct {
	MaxDepth int           `env:"CONDUIT_MAX_RECURSIVE_DEPTH" default:"10" min:"0" doc:"Levels that list and find descend."`
	SizeTime time.Duration `env:"CONDUIT_RECURSIVE_SIZE_TIMEOUT_MS" default:"60000" min:"1" doc:"Time for one recursive size, in milliseconds."`
}

type params struct {
	Path   registry.Member `json:"path" jsonschema_description:"Directory, archive.zip!/, or any path of a volume."`
	Depth  int             `json:"recursive_depth,omitempty" jsonschema_description:"Levels; -1: all allowed."`
	Sizes  bool            `json:"calculate_recursive_size,omitempty" jsonschema_description:"Sum up directories."`
	Ignore string          `json:"ignore,omitempty" jsonschema:"enum=none,enum=gitignore,default=none"`
	Max    int             `json:"max_results,omitempty" jsonschema:"minimum=0" jsonschema_description:"Most results; 0: all."`
	Cursor string          `json:"cursor,omitempty" jsonschema_description:"Earlier next_cursor."`
}

func build(cfg settings, _ *registry.Env) (registry.Func[params, tree], error) {
	return func(ctx context.Context, in params) (tree, error) {
		if in.Cursor != "" && in.Depth != 0 {
			return nil, fault.New(fault.InvalidParameter, "a cursor goes on with a listing of one level only; leave out cursor or recursive_depth")
		}
		after, err := url.PathUnescape(in.Cursor)
		if err != nil {
			return nil, fault.New(fault.InvalidParameter, "cursor is %q; it must be the next_cursor of an earlier call", in.Cursor)
		}
		l := newLister(in, cfg)
		var cancel context.CancelFunc
		l.sizing, cancel = context.WithTimeout(ctx, cfg.SizeTime)
		defer cancel()
		t, err := l.open(ctx, after)
		if err != nil {
			return nil, err
		}
		l.remark(ctx)
		return t, ctx.Err()
	}, nil
}

// open lists the directory that is asked for, on disk or in an archive.
func (l *lister) open(ctx context.Context, after string) (tree, error) {
	if at, name, ok := l.in.Path.Archive(); ok {
		if l.in.Ignore == "gitignore" {
			return nil, fault.New(fault.InvalidParameter, `ignore "gitignore" is for directories; leave it out inside an archive`)
		}
		a, err := source.OpenArchive(ctx, at, l.in.Path.String())
		if err != nil {
			return nil, err
		}
		defer a.Close()
		top, err := a.Dir(name)
		if err != nil {
			return nil, err
		}
		d := inArchive{&packed{Archive: a, files: map[string]bool{}}, top.Name}
		t, err := l.top(ctx, d, nil, after)
		if err == nil {
			err = d.types(ctx, t)
		}
		return t, err
	}
	at, err := l.in.Path.Place()
	if err != nil {
		return nil, err
	}
	d, err := walk.Open(at)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var above *ignore.Stack
	if l.in.Ignore == "gitignore" {
		above = ignore.Above(d.Place())
	}
	return l.top(ctx, onDisk{d}, above, after)
}
