package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(pathDesc, path) }

var pathDesc = registry.Desc{
	Tool:       "zipfs_path",
	Summary:    "Tell the directory that holds the files of a session, for other tools and programs; of a lazy session all is unpacked to it first.",
	Effect:     registry.Additive,
	Idempotent: true,
	Errors:     inSession(zipws.ZipNotFound, zipws.ZipInvalid, zipws.ZipBomb, zipws.UnsupportedFormat, zipws.ConflictDetected),
	Examples:   []registry.Example{{Title: "The directory of the only session", Args: `{}`}},
}

type pathParams struct {
	sessionRef
}

type pathResult struct {
	Path string `json:"path"`
}

func path(ctx context.Context, m *zipws.Workspaces, in pathParams) (pathResult, error) {
	p, err := m.Path(ctx, in.Session, progress(ctx))
	return pathResult{p}, err
}
