// Package write declares the write tool. Its ops live in the packages below it.
package write

import "github.com/conduit-mcp/conduit-mcp/registry"

// Tool is the tool's name. An op that uses it links in the tool as well.
const Tool = "write"

func init() {
	registry.RegisterTool(registry.Tool{
		Name:          Tool,
		Discriminator: "action",
		Summary:       "Create, change, copy, move and delete local files, several in one call. Each entry succeeds or fails by itself; results come in the order of entries.",
		Echo:          true,
		Notices:       true,
	})
}
