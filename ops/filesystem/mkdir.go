package filesystem

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(mkdirDesc, buildMkdir) }

var mkdirDesc = registry.Desc{
	Tool:       "create_directories",
	Summary:    "Make directories, with those they lie in.",
	Effect:     registry.Additive,
	Idempotent: true,
	Errors:     codes(fault.FSIsFile, fault.FSWriteFailed),
	Examples: []registry.Example{
		{Title: "Two directories", Args: `{"paths": ["src/app", "docs"]}`},
	},
}

type mkdirResult struct {
	Path string `json:"path"`
	outcome
	Note     string `json:"note,omitempty"`
	Resolved string `json:"resolvedPath,omitempty"` // absolute
}

func buildMkdir(struct{}, *registry.Env) (registry.Func[paths, []mkdirResult], error) {
	return func(ctx context.Context, in paths) ([]mkdirResult, error) {
		return registry.Each(ctx, in.Paths, func(_ context.Context, p registry.Path) (mkdirResult, error) {
			r := mkdirResult{Path: p.String()}
			at, err := p.Place()
			if err != nil {
				return r, err
			}
			r.Resolved = at.Abs
			created, err := filetree.Mkdir(at, true)
			if err == nil && !created {
				r.Note = "Directory already exists"
			}
			return r, err
		})
	}, nil
}
