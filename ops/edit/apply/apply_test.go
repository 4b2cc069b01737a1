package apply

import (
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
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

func TestEditsThatAreNone(t *testing.T) {
	text := func(s string) *string { return &s }
	for say, e := range map[string]item{
		".new_text is required; ":                    {Old: "a"},
		" names no place":                            {New: text("x")},
		" names more than one place":                 {Old: "a", First: 1, New: text("")},
		" has an end_line but no start_line":         {Last: 1, New: text("")},
		": occurrence and expect_count belong":       {First: 1, Expect: 1},
		": position belongs to insert_at_line":       {Old: "a", Position: "after", New: text("")},
		".new_text is required with insert_at_line;": {At: 1, New: text("")},
	} {
		code, message := fault.Of(e.check(2))
		if code != fault.InvalidParameter || !strings.HasPrefix(message, "edits[2]"+say) {
			t.Errorf("%s %q, want one that says %q", code, message, say)
		}
	}
}
