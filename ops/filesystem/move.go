package filesystem

import (
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() {
	register(moveDesc, transfer(moveDesc, "Moved", registry.Path.Entry, filetree.Move))
}

var moveDesc = registry.Desc{
	Tool:    "move_items",
	Summary: "Move or rename files and directories, making missing parents; a file that exists is replaced.",
	Effect:  registry.Destructive,
	Errors: codes(fault.FSNotFound, fault.FSIsFile, fault.FSIsDirectory, fault.FSAlreadyExists, fault.FSOperation,
		fault.FSReadFailed, fault.FSWriteFailed, fault.FSDeleteFailed, fault.TooDeep),
	Examples: []registry.Example{
		{Title: "Rename a file", Args: `{"operations": [{"source": "draft.txt", "destination": "docs/final.txt"}]}`},
	},
}
