package filesystem

import (
	"context"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(writeDesc, buildWrite) }

var writeDesc = registry.Desc{
	Tool:    "write_content",
	Summary: "Write or append to files, making missing directories; to change a part of a file use edit_file.",
	Effect:  registry.Destructive,
	Errors:  codes(fault.FSIsDirectory, fault.FSWriteFailed, fault.FSOperation),
	Examples: []registry.Example{
		{Title: "A new file, and a line at the end of another", Args: `{"items": [{"path": "notes/today.md", "content": "# Today\n"}, {"path": "log.txt", "content": "started\n", "append": true}]}`},
	},
}

type writeParams struct {
	Items []writeItem `json:"items" jsonschema:"minItems=1" jsonschema_description:"Files."`
}

type writeItem struct {
	Path    registry.Path `json:"path" jsonschema_description:"File."`
	Content string        `json:"content" log:"content" jsonschema_description:"Text."`
	Append  bool          `json:"append,omitempty" jsonschema_description:"Add to the end."`
}

type writeResult struct {
	Path string `json:"path"`
	outcome
	Operation string `json:"operation,omitempty"` // written or appended
	journal.Mark
}

func buildWrite(cfg journal.Settings, env *registry.Env) (registry.Func[writeParams, []writeResult], error) {
	files, err := change.Shared(cfg, env)
	return func(ctx context.Context, in writeParams) ([]writeResult, error) {
		c := files.Journal.Begin(writeDesc.ID())
		defer c.Done()
		jobs := make([]atomicfile.Job, len(in.Items))
		parts := make([]*journal.Part, len(in.Items))
		var valid []*atomicfile.Job
		for i, item := range in.Items {
			j := &jobs[i]
			parts[i] = c.Part()
			j.Content, j.Keep = item.Content, parts[i]
			if item.Append {
				j.Mode = atomicfile.Append
			}
			j.Place, j.Err = item.Path.Place()
			if j.Err == nil && item.Path.NamesDirectory() {
				j.Err = fault.New(fault.FSIsDirectory, "%s ends in a slash and so names a directory; leave the slash out to write a file", item.Path)
			}
			if j.Err == nil {
				valid = append(valid, j)
			}
		}
		var done atomic.Int64
		if err := files.Writer.Run(ctx, valid, func() { registry.Progress(ctx, done.Add(1), int64(len(valid)), "") }); err != nil {
			return nil, err
		}
		results := make([]writeResult, len(in.Items))
		for i, item := range in.Items {
			r := &results[i]
			r.Path, r.Mark = item.Path.String(), parts[i].Mark()
			r.Settle(located(item.Path, jobs[i].Err))
			switch {
			case jobs[i].Err != nil:
			case item.Append:
				r.Operation = "appended"
			default:
				r.Operation = "written"
			}
		}
		return results, nil
	}, err
}
