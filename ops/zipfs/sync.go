package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(syncDesc, sync) }

var syncDesc = registry.Desc{
	Tool:       "zipfs_sync",
	Summary:    "Write the changes of a session to its archive, in one step; the archive as it was stays beside it as a backup.",
	Effect:     registry.Destructive,
	Idempotent: true,
	Errors:     inSession(zipws.ConflictDetected, zipws.SyncFailed, zipws.ZipNotFound, zipws.ReadOnly, zipws.AccessDenied),
	Examples: []registry.Example{
		{Title: "What a sync would do", Args: `{"dry_run": true}`},
		{Title: "Although others have modified the archive", Args: `{"session": "q4-report", "force": true}`},
	},
}

type syncParams struct {
	sessionRef
	Force  bool `json:"force,omitempty" jsonschema_description:"Overwrite an archive that others have modified since it was opened; theirs becomes the backup."`
	DryRun bool `json:"dry_run,omitempty" jsonschema_description:"Only tell what would be written."`
}

func sync(ctx context.Context, m *zipws.Workspaces, in syncParams) (zipws.Synced, error) {
	return m.Sync(ctx, in.Session, zipws.SyncOptions{Force: in.Force, DryRun: in.DryRun, Progress: progress(ctx)})
}
