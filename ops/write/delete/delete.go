// Package delete adds write.delete: files, links and directories removed.
package delete

import (
	"context"
	"fmt"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    write.Tool,
	Name:    "delete",
	Summary: "Delete; of a link the link itself.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound,
		fault.FSDeleteFailed, fault.TooDeep,
	},
	Examples: []registry.Example{
		{Title: "A file, and a directory with all that is in it", Args: `{"entries": [{"path": "draft.txt"}, {"path": "build", "recursive": true}]}`},
	},
}

type settings struct{ journal.Settings }

type params struct {
	Entries []entry `json:"entries" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

type entry struct {
	Path      registry.Path `json:"path" jsonschema_description:"File or directory."`
	Recursive bool          `json:"recursive,omitempty" jsonschema_description:"Also missing parents; also what is in it."`
}

type result struct {
	write.PathResult
	journal.Mark
}

func build(cfg settings, env *registry.Env) (registry.Func[params, []result], error) {
	files, err := change.Shared(cfg.Settings, env)
	return func(ctx context.Context, in params) ([]result, error) {
		c := files.Journal.Begin(desc.ID())
		defer c.Done()
		return registry.Each(ctx, in.Entries, func(ctx context.Context, e entry) (result, error) {
			r := result{PathResult: write.PathResult{Action: desc.Name, Path: e.Path.String()}}
			p, err := e.Path.Entry()
			if err != nil {
				return r, err
			}
			var progress func(done, total int64)
			if len(in.Entries) == 1 { // of several, the entries are what is counted
				progress = func(done, total int64) { registry.Progress(ctx, done, total, "") }
			}
			part := c.Part()
			n, err := filetree.Delete(ctx, files.Writer, p, e.Recursive, part, progress)
			r.Mark = part.Mark()
			switch {
			case err != nil:
			case n > 1:
				r.Message = fmt.Sprintf("Deleted with the %d entries in it.", n-1)
			default:
				r.Message = "Deleted."
			}
			return r, err
		})
	}, err
}
