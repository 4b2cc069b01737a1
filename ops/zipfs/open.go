package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(openDesc, openArchive) }

var openDesc = registry.Desc{
	Tool:    "zipfs_open",
	Summary: "Open an archive as a session: a directory with its files, which zipfs_sync writes back. tar.gz, 7z and the like open read-only.",
	Effect:  registry.Additive,
	Errors: always(zipws.ZipNotFound, zipws.ZipInvalid, zipws.ZipBomb, zipws.Encrypted, zipws.UnsupportedFormat, zipws.NameCollision,
		zipws.LimitExceeded, zipws.Locked, zipws.ConflictDetected, zipws.AccessDenied, zipws.PathTraversal),
	Examples: []registry.Example{
		{Title: "Open an archive", Args: `{"path": "report.zip", "name": "q4-report"}`},
		{Title: "Look into a large one without unpacking it", Args: `{"path": "large.zip", "lazy": true}`},
	},
}

type openParams struct {
	Path registry.Path `json:"path" jsonschema_description:"Archive file."`
	Name string        `json:"name,omitempty" jsonschema_description:"Name of the session: 1 to 64 letters, digits, _ and -. Made from the file name where it is left out."`
	Lazy bool          `json:"lazy,omitempty" jsonschema_description:"Unpack nothing until zipfs_path asks for the directory; the other tools read from the zip."`
}

func openArchive(ctx context.Context, m *zipws.Workspaces, in openParams) (zipws.Opened, error) {
	at, err := in.Path.Place()
	if err != nil {
		return zipws.Opened{}, err
	}
	return m.Open(ctx, at, zipws.OpenOptions{Name: in.Name, Lazy: in.Lazy, Progress: progress(ctx)})
}
