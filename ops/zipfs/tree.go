package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(treeDesc, tree) }

var treeDesc = registry.Desc{
	Tool:     "zipfs_tree",
	Summary:  "Draw the files and directories of a session as a tree.",
	Effect:   registry.ReadOnly,
	Errors:   inSession(zipws.PathNotFound, zipws.PathTraversal, zipws.ZipNotFound, zipws.ConflictDetected, zipws.LimitExceeded),
	Examples: []registry.Example{{Title: "Two levels", Args: `{"max_depth": 2}`}},
}

type treeParams struct {
	sessionRef
	Path  zipws.Name `json:"path,omitempty" jsonschema_description:"Directory to begin at. Default \"/\"."`
	Depth int        `json:"max_depth,omitempty" jsonschema:"minimum=1" jsonschema_description:"Most levels; all where it is left out."`
}

func tree(ctx context.Context, m *zipws.Workspaces, in treeParams) (zipws.Tree, error) {
	return m.Tree(ctx, in.Session, in.Path, in.Depth)
}
