// Package core declares the toolset that read, write, list, find and edit are
// in.
package core

import (
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Toolset is the name by which CONDUIT_TOOLSETS picks these tools.
const Toolset = "core"

func init() {
	registry.RegisterToolset(registry.Toolset{
		Name:    Toolset,
		Summary: "Read, write, list, find and edit files; read web pages, images and archives, and compare texts.",
		Default: true,
		Instructions: []registry.Instruction{
			{
				Text:  "Paths are absolute, ~/… or relative to the project root, inside the allowed directories (list, operation system_info, tells them).",
				Needs: []string{"list.system_info"},
			},
			{
				Text:  `Batches take several items in one call; each item has its own status. view:"lean" answers in plain text with fewest tokens.`,
				Needs: []string{"read.content"},
			},
		},
		Own: change.Own,
	})
}
