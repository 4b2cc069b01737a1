package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(deleteDesc, remove) }

var deleteDesc = registry.Desc{
	Tool:    "zipfs_delete",
	Summary: "Delete a file or directory of a session; the archive changes with zipfs_sync.",
	Effect:  registry.Destructive,
	Errors: inSession(zipws.PathNotFound, zipws.PathTraversal, zipws.NotEmpty, zipws.ReadOnly, zipws.AccessDenied,
		zipws.ZipNotFound, zipws.ConflictDetected),
	Examples: []registry.Example{{Title: "A directory with all that is in it", Args: `{"path": "data/old", "recursive": true}`}},
}

type deleteParams struct {
	sessionRef
	Path      zipws.Name `json:"path" jsonschema_description:"File or directory in the workspace."`
	Recursive bool       `json:"recursive,omitempty" jsonschema_description:"Delete a directory with what is in it."`
}

type deleteResult struct {
	Deleted bool   `json:"deleted"`
	Path    string `json:"path"`
}

func remove(ctx context.Context, m *zipws.Workspaces, in deleteParams) (deleteResult, error) {
	err := m.Delete(ctx, in.Session, in.Path, in.Recursive)
	return deleteResult{Deleted: true, Path: string(in.Path)}, err
}
