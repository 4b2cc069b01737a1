package zipfs

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { declare(writeDesc, write) }

var writeDesc = registry.Desc{
	Tool:       "zipfs_write",
	Summary:    "Write a file of a session; the archive changes with zipfs_sync.",
	Effect:     registry.Destructive,
	Idempotent: true,
	Errors: inSession(zipws.PathNotFound, zipws.PathTraversal, zipws.ReadOnly, zipws.LimitExceeded, zipws.AccessDenied,
		zipws.ZipNotFound, zipws.ConflictDetected),
	Examples: []registry.Example{{Title: "A new file", Args: `{"path": "notes/todo.txt", "content": "one\n"}`}},
}

type writeParams struct {
	sessionRef
	Path     zipws.Name `json:"path" jsonschema_description:"File in the workspace."`
	Content  string     `json:"content" log:"content" jsonschema_description:"The whole new content."`
	Encoding string     `json:"encoding,omitempty" jsonschema:"enum=utf-8,enum=base64,default=utf-8" jsonschema_description:"How content is written."`
	Mkdir    bool       `json:"create_dirs,omitempty" jsonschema:"default=true" jsonschema_description:"Make missing directories."`
}

type writeResult struct {
	Written bool  `json:"written"`
	Size    int64 `json:"size_bytes"`
}

func write(ctx context.Context, m *zipws.Workspaces, in writeParams) (writeResult, error) {
	content := []byte(in.Content)
	if in.Encoding == "base64" {
		var err error
		if content, err = base64.StdEncoding.DecodeString(strings.TrimSpace(in.Content)); err != nil {
			return writeResult{}, fault.Hide(zipws.InvalidParams, err, "content is not base64 (standard alphabet, with padding); leave encoding out to write it as text")
		}
	}
	err := m.Write(ctx, in.Session, in.Path, content, in.Mkdir)
	return writeResult{Written: true, Size: int64(len(content))}, err
}
