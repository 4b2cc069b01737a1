// Package read declares the read tool. Its ops live in the packages below it.
package read

import (
	"github.com/conduit-mcp/conduit-mcp/ops/core"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Tool is the tool's name. An op that uses it links in the tool as well.
const Tool = "read"

// AtOnce is how many sources of a call are worked on at the same time: enough
// that those which wait for a network do not wait for each other.
const AtOnce = 8

func init() {
	registry.RegisterTool(registry.Tool{
		Name:          Tool,
		Toolset:       core.Toolset,
		Discriminator: "operation",
		Summary:       "Read files and URLs, results in the order of sources.",
		Notices:       true,
	})
}
