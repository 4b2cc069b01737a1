// Package edit declares the edit tool and how its ops change files. They live in
// the packages below it.
package edit

import (
	"github.com/conduit-mcp/conduit-mcp/ops/core"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Tool is the tool's name. An op that uses it links in the tool as well.
const Tool = "edit"

func init() {
	registry.RegisterTool(registry.Tool{
		Name:          Tool,
		Toolset:       core.Toolset,
		Discriminator: "operation",
		Summary:       "Edit text files: only the edited bytes change; returns diffs.",
		Notices:       true,
	})
}
