package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(lsDesc, ls) }

var lsDesc = registry.Desc{
	Tool:     "zipfs_ls",
	Summary:  "List files and directories of a session, sorted.",
	Effect:   registry.ReadOnly,
	Errors:   inSession(zipws.PathNotFound, zipws.PathTraversal, zipws.ZipNotFound, zipws.ConflictDetected, zipws.LimitExceeded),
	Examples: []registry.Example{{Title: "All below a directory", Args: `{"path": "data", "recursive": true}`}},
}

type lsParams struct {
	sessionRef
	Path      zipws.Name `json:"path,omitempty" jsonschema_description:"Path in the workspace. Default \"/\"."`
	Recursive bool       `json:"recursive,omitempty" jsonschema_description:"List what is in directories too."`
}

type lsResult struct {
	Entries []zipws.Item `json:"entries"`
}

func ls(ctx context.Context, m *zipws.Workspaces, in lsParams) (lsResult, error) {
	items, err := m.List(ctx, in.Session, in.Path, in.Recursive)
	return lsResult{items}, err
}
