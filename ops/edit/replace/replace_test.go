package replace

import (
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func op() *registry.Op { return registry.New(desc, build) }

func TestGolden(t *testing.T) { optest.Golden(t, op()) }

func TestConform(t *testing.T) {
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	tool, _ := set.Tool(desc.Tool)
	alone, err := registry.NewSet([]registry.Tool{tool}, []*registry.Op{op()})
	if err != nil {
		t.Fatal(err)
	}
	optest.Conform(t, alone)
}
