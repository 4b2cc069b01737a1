package filesystem

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(chownDesc, buildChown) }

var chownDesc = registry.Desc{
	Tool:       "chown_items",
	Summary:    "Set the owner and group of files and directories, not of what is in these.",
	Effect:     registry.Destructive,
	Idempotent: true,
	Errors:     codes(fault.FSNotFound, fault.FSOperation, fault.FSWriteFailed),
	Examples: []registry.Example{
		{Title: "To the first user", Args: `{"paths": ["data.db"], "uid": 1000, "gid": 1000}`},
	},
}

type chownParams struct {
	Paths []registry.Path `json:"paths" jsonschema:"minItems=1" jsonschema_description:"Relative paths."`
	UID   int             `json:"uid" jsonschema:"minimum=0,maximum=4294967294" jsonschema_description:"User ID."`
	GID   int             `json:"gid" jsonschema:"minimum=0,maximum=4294967294" jsonschema_description:"Group ID."`
}

type chownResult struct {
	Path string `json:"path"`
	outcome
	UID *int `json:"uid,omitempty"`
	GID *int `json:"gid,omitempty"`
}

func buildChown(struct{}, *registry.Env) (registry.Func[chownParams, []chownResult], error) {
	return func(ctx context.Context, in chownParams) ([]chownResult, error) {
		return registry.Each(ctx, in.Paths, func(_ context.Context, p registry.Path) (chownResult, error) {
			r := chownResult{Path: p.String()}
			at, err := p.Place()
			if err != nil {
				return r, err
			}
			if err := filetree.Chown(at, in.UID, in.GID); err != nil {
				return r, located(p, err)
			}
			r.UID, r.GID = &in.UID, &in.GID
			return r, nil
		})
	}, nil
}
