package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(sessionsDesc, sessions) }

var sessionsDesc = registry.Desc{
	Tool:     "zipfs_sessions",
	Summary:  "List the open sessions, by name.",
	Effect:   registry.ReadOnly,
	Errors:   always(),
	Examples: []registry.Example{{Title: "All sessions", Args: `{}`}},
}

type sessionsParams struct{}

type sessionsResult struct {
	Sessions []zipws.Session `json:"sessions"`
}

func sessions(ctx context.Context, m *zipws.Workspaces, _ sessionsParams) (sessionsResult, error) {
	all, err := m.Sessions(ctx)
	return sessionsResult{all}, err
}
