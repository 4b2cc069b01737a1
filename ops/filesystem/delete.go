package filesystem

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(deleteDesc, buildDelete) }

var deleteDesc = registry.Desc{
	Tool:    "delete_items",
	Summary: "Delete files and directories with all that is in them; one that does not exist is a success with a note.",
	Effect:  registry.Destructive,
	Errors:  codes(fault.FSDeleteFailed, fault.TooDeep),
	Examples: []registry.Example{
		{Title: "A file and a directory", Args: `{"paths": ["draft.txt", "build"]}`},
	},
}

type deleteResult struct {
	Path string `json:"path"`
	outcome
	Note string `json:"note,omitempty"`
	journal.Mark
}

func buildDelete(cfg journal.Settings, env *registry.Env) (registry.Func[paths, []deleteResult], error) {
	files, err := change.Shared(cfg, env)
	return func(ctx context.Context, in paths) ([]deleteResult, error) {
		c := files.Journal.Begin(deleteDesc.ID())
		defer c.Done()
		return registry.Each(ctx, in.Paths, func(ctx context.Context, p registry.Path) (deleteResult, error) {
			r := deleteResult{Path: p.String()}
			at, err := p.Entry()
			if err != nil {
				return r, err
			}
			var progress func(done, total int64)
			if len(in.Paths) == 1 { // of several, the paths are what is counted
				progress = func(done, total int64) { registry.Progress(ctx, done, total, "") }
			}
			part := c.Part()
			_, err = filetree.Delete(ctx, files.Writer, at, true, part, progress)
			r.Mark = part.Mark()
			if code, _ := fault.Of(err); err != nil && code == fault.FSNotFound {
				r.Note, err = "Path not found, nothing to delete", nil
			}
			return r, err
		})
	}, err
}
