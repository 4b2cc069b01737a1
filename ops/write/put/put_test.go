package put

import (
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestGolden(t *testing.T) { optest.Golden(t, registry.New(desc, build)) }
