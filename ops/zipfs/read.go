package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(readDesc, read) }

var readDesc = registry.Desc{
	Tool:    "zipfs_read",
	Summary: "Read a file of a session. What is not UTF-8 comes as base64, which encoding in the result tells.",
	Effect:  registry.ReadOnly,
	Errors: inSession(zipws.PathNotFound, zipws.PathTraversal, zipws.LimitExceeded, zipws.ZipNotFound, zipws.ZipInvalid, zipws.ZipBomb,
		zipws.UnsupportedFormat, zipws.ConflictDetected, zipws.AccessDenied),
	Examples: []registry.Example{
		{Title: "A text file", Args: `{"path": "data/config.json"}`},
		{Title: "The first bytes of a binary one", Args: `{"path": "report.xlsx", "encoding": "base64", "limit": 512}`},
	},
}

type readParams struct {
	sessionRef
	Path     zipws.Name `json:"path" jsonschema_description:"File in the workspace."`
	Encoding string     `json:"encoding,omitempty" jsonschema:"enum=utf-8,enum=base64,default=utf-8" jsonschema_description:"How the content is written in the result."`
	Offset   int64      `json:"offset,omitempty" jsonschema:"minimum=0" jsonschema_description:"First byte."`
	Limit    int64      `json:"limit,omitempty" jsonschema:"minimum=1" jsonschema_description:"Most bytes."`
}

func read(ctx context.Context, m *zipws.Workspaces, in readParams) (zipws.Content, error) {
	return m.Content(ctx, in.Session, in.Path, zipws.ContentOptions{Base64: in.Encoding == "base64", Offset: in.Offset, Limit: in.Limit})
}
