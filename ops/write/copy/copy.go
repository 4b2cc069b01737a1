// Package copy adds write.copy: files and directory trees copied.
package copy

import (
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    write.Tool,
	Name:    "copy",
	Summary: "Copy files and directories.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound, fault.FSIsFile,
		fault.FSIsDirectory, fault.FSAlreadyExists, fault.FSOperation, fault.FSReadFailed, fault.FSWriteFailed, fault.TooDeep,
	},
	Examples: []registry.Example{
		{Title: "A file", Args: `{"entries": [{"source_path": "config.json", "destination_path": "config.backup.json", "overwrite": false}]}`},
		{Title: "A directory into another", Args: `{"entries": [{"source_path": "src", "destination_path": "archive"}]}`},
	},
}

var build = write.Transfer(desc, "Copied", registry.Path.Place, filetree.Copy)
