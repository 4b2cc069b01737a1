package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(diffDesc, diff) }

var diffDesc = registry.Desc{
	Tool:    "zipfs_diff",
	Summary: "Show what changed in a session since it was opened or synced last, text as unified diffs.",
	Effect:  registry.ReadOnly,
	Errors: inSession(zipws.PathNotFound, zipws.PathTraversal, zipws.ZipNotFound, zipws.ZipInvalid, zipws.UnsupportedFormat,
		zipws.ConflictDetected, zipws.LimitExceeded),
	Examples: []registry.Example{{Title: "One file", Args: `{"path": "data/config.json"}`}},
}

type diffParams struct {
	sessionRef
	Path  zipws.Name `json:"path,omitempty" jsonschema_description:"File or directory. Default \"/\"."`
	Lines int        `json:"context_lines,omitempty" jsonschema:"minimum=0,maximum=10,default=3" jsonschema_description:"Lines around each change."`
}

type diffResult struct {
	Changes []zipws.Change `json:"changes"`
}

func diff(ctx context.Context, m *zipws.Workspaces, in diffParams) (diffResult, error) {
	changes, err := m.Diff(ctx, in.Session, in.Path, in.Lines)
	return diffResult{changes}, err
}
