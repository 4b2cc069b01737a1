package all_test

import (
	"strings"
	"testing"

	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestConform(t *testing.T) {
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	optest.Conform(t, set)
}

func TestToolsets(t *testing.T) {
	toolsets, err := registry.Toolsets()
	if err != nil {
		t.Fatal(err)
	}
	var linked []string
	for _, t := range toolsets {
		linked = append(linked, t.Name)
	}
	if got := strings.Join(linked, " "); got != "agent core filesystem zipfs" {
		t.Errorf("Toolsets() = %s", got)
	}
	set, err := registry.Linked(func(tool registry.Tool, op registry.Desc) bool {
		return tool.Toolset == "core" && op.Effect == registry.ReadOnly
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range set.Tools() {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "find list read" {
		t.Errorf("what only reads: %s", got)
	}
}
