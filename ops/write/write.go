// Package write declares the write tool. Its ops live in the packages below it.
package write

import (
	"github.com/conduit-mcp/conduit-mcp/ops/core"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Tool is the tool's name. An op that uses it links in the tool as well.
const Tool = "write"

func init() {
	registry.RegisterTool(registry.Tool{
		Name:          Tool,
		Toolset:       core.Toolset,
		Discriminator: "action",
		Summary:       "Write, copy, move, delete and archive files; entries succeed or fail singly.",
		Echo:          true,
		Notices:       true,
	})
}
