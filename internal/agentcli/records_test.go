package agentcli_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
)

func TestPlacesOfRecords(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return // their own places
	}
	c := config.Default()
	c.Logs.Dir = "/var/log/agents"
	for _, v := range []struct{ state, want string }{{"/s", "/s/conduit-mcp/agent"}, {"", "/home/me/.local/state/conduit-mcp/agent"}} {
		got := agentcli.Records(c, func(key string) (string, bool) {
			return map[string]string{"HOME": "/home/me", "XDG_STATE_HOME": v.state}[key], true
		})
		if want := []string{".mcp-conduit/audit", ".mcp-conduit/tasks", "/var/log/agents", ".mcp-conduit/logs", v.want}; !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
	b := newBench(t, plays("fake", "auto", "stdin"))
	b.do(t, nil)
	if found, err := filepath.Glob(filepath.Join(b.dir, ".mcp-conduit", "tasks")); err != nil || len(found) > 0 {
		t.Errorf("records of tasks in the working tree: %q", found)
	}
}
