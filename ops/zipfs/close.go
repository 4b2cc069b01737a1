package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(closeDesc, closeSession) }

var closeDesc = registry.Desc{
	Tool:    "zipfs_close",
	Summary: "Close a session and remove its workspace. With changes that were not synced it says so, unless sync or discard is given.",
	Effect:  registry.Destructive,
	Errors: inSession(zipws.UnsavedChanges, zipws.ConflictDetected, zipws.SyncFailed, zipws.ZipNotFound, zipws.ReadOnly,
		zipws.AccessDenied),
	Examples: []registry.Example{
		{Title: "Write the changes and close", Args: `{"sync": true}`},
		{Title: "Close one of several and lose its changes", Args: `{"session": "q4-report", "discard": true}`},
	},
}

type closeParams struct {
	sessionRef
	Sync    bool `json:"sync,omitempty" jsonschema_description:"Sync before closing."`
	Discard bool `json:"discard,omitempty" jsonschema_description:"Lose changes that were not synced."`
}

func closeSession(ctx context.Context, m *zipws.Workspaces, in closeParams) (zipws.Closed, error) {
	return m.Close(ctx, in.Session, zipws.CloseOptions{Sync: in.Sync, Discard: in.Discard, Progress: progress(ctx)})
}
