package fault_test

import (
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestClip(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"short", "short"},
		{strings.Repeat("x", 80), strings.Repeat("x", 80)},
		{strings.Repeat("x", 81), strings.Repeat("x", 80) + "…"},
		{strings.Repeat("€", 27), strings.Repeat("€", 26) + "…"}, // 81 bytes, and 80 are no whole characters
	} {
		if got := fault.Clip(c.in); got != c.want {
			t.Errorf("Clip(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}
