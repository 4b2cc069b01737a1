package filesystem

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(chmodDesc, buildChmod) }

var chmodDesc = registry.Desc{
	Tool:       "chmod_items",
	Summary:    "Set the permissions of files and directories, not of what is in these.",
	Effect:     registry.Destructive,
	Idempotent: true,
	Errors:     codes(fault.FSNotFound, fault.FSOperation, fault.FSWriteFailed),
	Examples: []registry.Example{
		{Title: "Make a script executable", Args: `{"paths": ["build.sh"], "mode": "755"}`},
	},
}

type chmodParams struct {
	Paths []registry.Path `json:"paths" jsonschema:"minItems=1" jsonschema_description:"Relative paths."`
	Mode  string          `json:"mode" jsonschema_description:"3 or 4 octal digits, such as 755."`
}

type chmodResult struct {
	Path string `json:"path"`
	outcome
	Mode string `json:"mode,omitempty"`
}

func buildChmod(struct{}, *registry.Env) (registry.Func[chmodParams, []chmodResult], error) {
	return func(ctx context.Context, in chmodParams) ([]chmodResult, error) {
		mode, err := fileinfo.ParseMode(in.Mode)
		if err != nil {
			return nil, err
		}
		return registry.Each(ctx, in.Paths, func(_ context.Context, p registry.Path) (chmodResult, error) {
			r := chmodResult{Path: p.String()}
			at, err := p.Place()
			if err != nil {
				return r, err
			}
			if err := filetree.Chmod(at, mode); err != nil {
				return r, located(p, err)
			}
			r.Mode = in.Mode
			return r, nil
		})
	}, nil
}
