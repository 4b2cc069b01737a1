// Package list declares the list tool. Its ops live in the packages below it.
package list

import (
	"github.com/conduit-mcp/conduit-mcp/ops/core"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Tool is the tool's name. An op that uses it links in the tool as well.
const Tool = "list"

func init() {
	registry.RegisterTool(registry.Tool{
		Name:          Tool,
		Toolset:       core.Toolset,
		Discriminator: "operation",
		Summary:       "List directories; tell about the server.",
		Notices:       true,
	})
}
