// Package all links in the standard operations.
package all

import (
	_ "github.com/conduit-mcp/conduit-mcp/ops/agent"
	_ "github.com/conduit-mcp/conduit-mcp/ops/edit/apply"
	_ "github.com/conduit-mcp/conduit-mcp/ops/edit/patch"
	_ "github.com/conduit-mcp/conduit-mcp/ops/edit/replace"
	_ "github.com/conduit-mcp/conduit-mcp/ops/edit/undo"
	_ "github.com/conduit-mcp/conduit-mcp/ops/filesystem"
	_ "github.com/conduit-mcp/conduit-mcp/ops/find"
	_ "github.com/conduit-mcp/conduit-mcp/ops/list/entries"
	_ "github.com/conduit-mcp/conduit-mcp/ops/list/sysinfo"
	_ "github.com/conduit-mcp/conduit-mcp/ops/read/content"
	_ "github.com/conduit-mcp/conduit-mcp/ops/read/diff"
	_ "github.com/conduit-mcp/conduit-mcp/ops/read/metadata"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/archive"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/chmod"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/chown"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/copy"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/delete"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/mkdir"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/move"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/put"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/touch"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/unarchive"
	_ "github.com/conduit-mcp/conduit-mcp/ops/zipfs"
)
