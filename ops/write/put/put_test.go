package put

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestGolden(t *testing.T) { optest.Golden(t, registry.New(desc, build)) }

// What was kept says by which change; what is too large to be kept says so.
func TestResultsTellWhetherTheyCanBeUndone(t *testing.T) {
	b := optest.New(t, registry.New(desc, build), map[string]string{"CONDUIT_JOURNAL_DIR": t.TempDir(), "CONDUIT_JOURNAL_MAX_BYTES": "1048576"})
	for name, content := range map[string]string{"a.txt": "old", "c.txt": "c", "large.txt": strings.Repeat("x", 200_000)} {
		if err := os.WriteFile(filepath.Join(b.Dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var results []struct {
		Status   string `json:"status"`
		ChangeID string `json:"change_id"`
		Undo     *bool  `json:"undo"`
	}
	text := b.Text(t, `{"entries": [{"path": "a.txt", "content": "new"}, {"path": "large.txt", "content": "new"}, {"path": "missing/b.txt", "content": "x", "if_match": "none"}]}`)
	if err := json.Unmarshal([]byte(text), &results); err != nil || len(results) != 3 {
		t.Fatalf("%v: %s", err, text)
	}
	if r := results[0]; r.Status != "success" || len(r.ChangeID) != 11 || r.Undo != nil {
		t.Errorf("kept: %s", text)
	}
	if r := results[1]; r.Status != "success" || r.ChangeID != "" || r.Undo == nil || *r.Undo {
		t.Errorf("too large: %s", text)
	}
	if r := results[2]; r.Status != "error" || r.ChangeID != "" || r.Undo != nil {
		t.Errorf("failed: %s", text)
	}
}
