// Command conduit-mcp is the MCP server with every standard operation.
package main

import (
	conduit "github.com/conduit-mcp/conduit-mcp/cmd"

	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
)

func main() { conduit.Main() }
