// Package move adds write.move: files and directory trees moved.
package move

import (
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    write.Tool,
	Name:    "move",
	Summary: "Move or rename; of a link the link itself.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound, fault.FSIsFile,
		fault.FSIsDirectory, fault.FSAlreadyExists, fault.FSOperation, fault.FSReadFailed, fault.FSWriteFailed,
		fault.FSDeleteFailed, fault.TooDeep,
	},
	Examples: []registry.Example{
		{Title: "Rename a file", Args: `{"entries": [{"source_path": "draft.txt", "destination_path": "final.txt"}]}`},
		{Title: "Two files into a directory", Args: `{"entries": [{"source_path": "a.log", "destination_path": "logs"}, {"source_path": "b.log", "destination_path": "logs"}]}`},
	},
}

var build = write.Transfer(desc, "Moved", registry.Path.Entry, filetree.Move)
