package write_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/conduit-mcp/conduit-mcp/ops/write/copy"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/delete"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/move"
	_ "github.com/conduit-mcp/conduit-mcp/ops/write/put"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

// What was kept says by which change; what is too large to be kept says so.
func TestResultsTellWhetherTheyCanBeUndone(t *testing.T) {
	const transfer = `{"entries": [{"source_path": "a.txt", "destination_path": "b.txt"}, {"source_path": "c.txt", "destination_path": "large.txt"}, {"source_path": "none", "destination_path": "d.txt"}]}`
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ op, args string }{
		{"copy", transfer},
		{"move", transfer},
		{"delete", `{"entries": [{"path": "a.txt"}, {"path": "large.txt"}, {"path": "none"}]}`},
		{"put", `{"entries": [{"path": "a.txt", "content": "new"}, {"path": "large.txt", "content": "new"}, {"path": "missing/b.txt", "content": "x", "if_match": "none"}]}`},
	} {
		t.Run(c.op, func(t *testing.T) {
			ops := set.Ops("write")
			i := slices.IndexFunc(ops, func(op *registry.Op) bool { return op.Name == c.op })
			b := optest.New(t, ops[i], map[string]string{"CONDUIT_JOURNAL_DIR": t.TempDir(), "CONDUIT_JOURNAL_MAX_BYTES": "1048576"})
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
			text := b.Text(t, c.args)
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
		})
	}
}
