// Package touch adds write.touch: times set to now, empty files made.
package touch

import (
	"context"
	"errors"
	"io/fs"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:       write.Tool,
	Name:       "touch",
	Summary:    "Set times to now, or create empty files.",
	Effect:     registry.Additive,
	Idempotent: true,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSIsDirectory,
		fault.FSOperation, fault.FSWriteFailed,
	},
	Examples: []registry.Example{
		{Title: "Mark a step as done", Args: `{"entries": [{"path": "build/.done"}]}`},
	},
}

type settings struct{}

type params struct {
	Entries []entry `json:"entries" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

type entry struct {
	Path registry.Path `json:"path" jsonschema_description:"File or directory."`
}

func build(_ settings, env *registry.Env) (registry.Func[params, []write.PathResult], error) {
	files, err := registry.Shared(env, func(*registry.Env) (*atomicfile.Writer, error) { return atomicfile.New(), nil })
	return func(ctx context.Context, in params) ([]write.PathResult, error) {
		return registry.Each(ctx, in.Entries, func(_ context.Context, e entry) (write.PathResult, error) {
			r := write.PathResult{Action: desc.Name, Path: e.Path.String()}
			p, err := e.Path.Place()
			if err != nil {
				return r, err
			}
			if _, err := p.Stat(); errors.Is(err, fs.ErrNotExist) && e.Path.NamesDirectory() {
				return r, fault.New(fault.FSIsDirectory, "%s does not exist and ends in a slash, so it names a directory, which touch does not make; use mkdir, or leave the slash out", e.Path)
			}
			created, err := filetree.Touch(files, p)
			switch {
			case err != nil:
			case created:
				r.Message = "File created."
			default:
				r.Message = "Timestamps updated."
			}
			return r, err
		})
	}, err
}
