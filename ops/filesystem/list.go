package filesystem

import (
	"context"
	"fmt"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(listDesc, buildList) }

var listDesc = registry.Desc{
	Tool:    "list_files",
	Summary: "List a directory as paths (directories end in /), or with stats; recursive leaves out node_modules. A file gives its stats.",
	Effect:  registry.ReadOnly,
	Errors:  codes(fault.FSNotFound),
	Examples: []registry.Example{
		{Title: "All that is below a directory", Args: `{"path": "src", "recursive": true}`},
		{Title: "The project root with sizes and times", Args: `{"path": ".", "include_stats": true}`},
	},
}

type listSettings struct {
	MaxDepth int `env:"CONDUIT_MAX_RECURSIVE_DEPTH" default:"10" min:"0" doc:"Levels that list and find descend."`
}

type listParams struct {
	Path      registry.Path `json:"path,omitempty" jsonschema:"default=." jsonschema_description:"Directory."`
	Recursive bool          `json:"recursive,omitempty" jsonschema_description:"List all levels."`
	Stats     bool          `json:"include_stats,omitempty" jsonschema_description:"Return objects {path, stats}."`
}

// A listing is what was asked for: the stats of a file, or entries.
type listing struct {
	file    *stats
	entries []listed
	stats   bool
}

// A listed is an entry with its stats.
type listed struct {
	Path  string      `json:"path"`
	Stats listedStats `json:"stats"`
}

// listedStats are stats, or why there are none.
type listedStats struct {
	*stats
	trouble
}

// MarshalJSON writes the stats of a file as an object, entries as an array of
// paths or of objects.
func (l listing) MarshalJSON() ([]byte, error) {
	switch {
	case l.file != nil:
		return encoded(l.file)
	case l.stats:
		return encoded(l.entries)
	}
	paths := make([]string, len(l.entries))
	for i, e := range l.entries {
		paths[i] = e.Path
	}
	return encoded(paths)
}

// JSONSchema is that of entries with stats.
func (listing) JSONSchema() *jsonschema.Schema { return schemaOf[[]listed]() }

// notEntered is the name of directories that recursive listings and searches
// leave out.
const notEntered = "node_modules"

func buildList(cfg listSettings, _ *registry.Env) (registry.Func[listParams, listing], error) {
	return func(ctx context.Context, in listParams) (l listing, err error) {
		at, err := in.Path.Place()
		if err != nil {
			return l, err
		}
		fi, err := at.Stat()
		if err != nil {
			return l, located(in.Path, err)
		}
		if !fi.IsDir() {
			l.file, err = statsOfPath(in.Path)
			return l, err
		}
		top, err := walk.Open(at)
		if err != nil {
			return l, err
		}
		defer top.Close()
		o := walk.TreeOptions{}
		if in.Recursive {
			o.Depth, o.Skip = cfg.MaxDepth, notEntered
		}
		l.entries, l.stats = []listed{}, in.Stats
		report, err := walk.Tree(ctx, top, o, in.describe, func(e listed) bool {
			l.entries = append(l.entries, e)
			registry.Progress(ctx, int64(len(l.entries)), 0, "entries listed")
			return true
		})
		if err == nil && in.Recursive {
			remark(ctx, report, cfg.MaxDepth)
		}
		return l, err
	}, nil
}

// describe makes an entry of the listing from one of the tree.
func (in listParams) describe(_ context.Context, n walk.Node) (e listed) {
	name := below(in.Path, n.Rel())
	isDir := n.IsDir()
	if in.Stats {
		s, err := statsOfEntry(name, n.Dir, n.Entry)
		e.Stats.stats = s
		e.Stats.Settle(err)
		isDir = err == nil && s.IsDirectory
	} else if n.IsLink() {
		_, target, err := entry.Follow(n.Dir, n.Name)
		isDir = err == nil && target.IsDir()
	}
	if e.Path = name; isDir {
		e.Path += "/"
	}
	return e
}

// remark tells what a walk passed without looking inside.
func remark(ctx context.Context, r walk.TreeReport, depth int) {
	if r.Deep > 0 {
		registry.AddRemark(ctx, "DEPTH_LIMIT_REACHED", fmt.Sprintf("Directories not entered since they lie deeper than CONDUIT_MAX_RECURSIVE_DEPTH (%d): %d. Name one as path to look there.", depth, r.Deep), nil)
	}
	if r.Unreadable > 0 {
		registry.AddRemark(ctx, "SEARCH_INCOMPLETE", fmt.Sprintf("Directories that cannot be read: %d.", r.Unreadable), map[string]int{"directories_unreadable": r.Unreadable})
	}
}
