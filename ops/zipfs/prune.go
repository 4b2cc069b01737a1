package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(pruneDesc, prune) }

var pruneDesc = registry.Desc{
	Tool:     "zipfs_prune",
	Summary:  "Remove sessions that are no longer used, with all changes in them that were not synced.",
	Effect:   registry.Destructive,
	Errors:   always(zipws.AccessDenied),
	Examples: []registry.Example{{Title: "What has not been used for a week", Args: `{"stale": "7d", "dry_run": true}`}},
}

type pruneParams struct {
	All    bool   `json:"all,omitempty" jsonschema_description:"Remove all sessions."`
	Stale  string `json:"stale,omitempty" jsonschema_description:"Remove those not used for so long, such as 24h or 7d."`
	DryRun bool   `json:"dry_run,omitempty" jsonschema_description:"Only tell what would be removed."`
}

func prune(ctx context.Context, m *zipws.Workspaces, in pruneParams) (r zipws.PruneReport, err error) {
	o := zipws.PruneOptions{All: in.All, DryRun: in.DryRun}
	if in.Stale != "" {
		if o.Stale, err = zipws.ParseAge(in.Stale); err != nil {
			return r, err
		}
	}
	return m.Prune(ctx, o)
}
