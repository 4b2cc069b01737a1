package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(statusDesc, status) }

var statusDesc = registry.Desc{
	Tool:     "zipfs_status",
	Summary:  "Tell what changed in a session since it was opened or synced last.",
	Effect:   registry.ReadOnly,
	Errors:   inSession(zipws.LimitExceeded),
	Examples: []registry.Example{{Title: "The only session", Args: `{}`}},
}

type statusParams struct {
	sessionRef
}

func status(ctx context.Context, m *zipws.Workspaces, in statusParams) (zipws.Status, error) {
	return m.Status(ctx, in.Session)
}
