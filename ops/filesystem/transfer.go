package filesystem

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

type transferParams struct {
	Operations []transferItem `json:"operations" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

type transferItem struct {
	Source      registry.Path `json:"source" jsonschema_description:"File or directory."`
	Destination registry.Path `json:"destination" jsonschema_description:"Path of the result, not of the directory it goes into."`
}

type transferResult struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	outcome
	Note string `json:"note,omitempty"` // what was left out of a copy
	journal.Mark
}

// transfer returns the op d, which moves or copies: entry finds what a source
// names, and verb says in the past what is done.
func transfer(d registry.Desc, verb string, entry func(registry.Path) (place.Place, error), do filetree.Transfer) func(journal.Settings, *registry.Env) (registry.Func[transferParams, []transferResult], error) {
	return func(cfg journal.Settings, env *registry.Env) (registry.Func[transferParams, []transferResult], error) {
		files, err := change.Shared(cfg, env)
		return func(ctx context.Context, in transferParams) ([]transferResult, error) {
			c := files.Journal.Begin(d.ID())
			defer c.Done()
			return registry.Each(ctx, in.Operations, func(ctx context.Context, e transferItem) (transferResult, error) {
				r := transferResult{Source: e.Source.String(), Destination: e.Destination.String()}
				src, err := entry(e.Source)
				if err != nil {
					return r, err
				}
				dst, err := e.Destination.Place()
				if err != nil {
					return r, err
				}
				part := c.Part()
				o := filetree.Options{Onto: true, Into: e.Destination.NamesDirectory(), Keep: part}
				if len(in.Operations) == 1 { // of several, the operations are what is counted
					o.Progress = func(done int64) { registry.Progress(ctx, done, 0, "") }
				}
				report, err := do(ctx, files.Writer, src, dst, o)
				r.Mark = part.Mark()
				if err != nil {
					return r, located(e.Source, err)
				}
				if report.Denied+report.Special+report.Links > 0 || report.InPlace || report.Parted {
					r.Note = report.Message(verb)
				}
				return r, nil
			})
		}, err
	}
}
