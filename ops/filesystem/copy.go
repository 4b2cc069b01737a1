package filesystem

import (
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() {
	register(copyDesc, transfer(copyDesc, "Copied", registry.Path.Place, filetree.Copy))
}

var copyDesc = registry.Desc{
	Tool:    "copy_items",
	Summary: "Copy files and directories, making missing parents; files that exist are replaced, directories merged.",
	Effect:  registry.Destructive,
	Errors: codes(fault.FSNotFound, fault.FSIsFile, fault.FSIsDirectory, fault.FSOperation,
		fault.FSReadFailed, fault.FSWriteFailed, fault.TooDeep),
	Examples: []registry.Example{
		{Title: "Keep the old version of a file", Args: `{"operations": [{"source": "config.json", "destination": "config.backup.json"}]}`},
	},
}
