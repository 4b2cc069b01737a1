// Package mkdir adds write.mkdir: directories made.
package mkdir

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:       write.Tool,
	Name:       "mkdir",
	Summary:    "Create directories.",
	Effect:     registry.Additive,
	Idempotent: true,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound, fault.FSIsFile,
		fault.FSWriteFailed,
	},
	Examples: []registry.Example{
		{Title: "A directory and those it lies in", Args: `{"entries": [{"path": "build/output/logs", "recursive": true}]}`},
	},
}

type settings struct{}

type params struct {
	Entries []entry `json:"entries" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

type entry struct {
	Path      registry.Path `json:"path" jsonschema_description:"File or directory."`
	Recursive bool          `json:"recursive,omitempty" jsonschema_description:"Also missing parents; also what is in it."`
}

func build(settings, *registry.Env) (registry.Func[params, []write.PathResult], error) {
	return func(ctx context.Context, in params) ([]write.PathResult, error) {
		return registry.Each(ctx, in.Entries, func(_ context.Context, e entry) (write.PathResult, error) {
			r := write.PathResult{Action: desc.Name, Path: e.Path.String()}
			p, err := e.Path.Place()
			if err != nil {
				return r, err
			}
			created, err := filetree.Mkdir(p, e.Recursive)
			if created {
				r.Message = "Directory created."
			}
			return r, err
		})
	}, nil
}
