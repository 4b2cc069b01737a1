//go:build unix

package cmd_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadingMakesNoFiles runs what only looks, in a server with its default
// settings and in one that may only read: neither leaves anything in the home
// directory but what was there.
func TestReadingMakesNoFiles(t *testing.T) {
	reads := []struct{ tool, args string }{
		{"list", `{"operation":"entries","path":"."}`},
		{"list", `{"operation":"system_info","info_type":"server_capabilities"}`},
		{"list", `{"operation":"system_info","info_type":"recent_changes"}`},
		{"read", `{"operation":"content","sources":["proj/f"]}`},
		{"read", `{"operation":"metadata","sources":["proj/f"]}`},
		{"find", `{"base_path":".","match_criteria":[{"type":"content_pattern","pattern":"text"}]}`},
	}
	dry := []struct{ tool, args string }{
		{"edit", `{"operation":"apply","dry_run":true,"changes":[{"path":"proj/f","edits":[{"old_text":"text","new_text":"new"}]}]}`},
		{"edit", `{"operation":"replace","dry_run":true,"paths":["proj/f"],"pattern":"text","replacement":"new"}`},
		{"edit", `{"operation":"patch","dry_run":true,"patch":"--- a/proj/f\n+++ b/proj/f\n@@ -1 +1 @@\n-text\n+new\n"}`},
	}
	for name, c := range map[string]struct {
		env   map[string]string
		calls []struct{ tool, args string }
	}{
		"default":   {nil, append(reads[:len(reads):len(reads)], dry...)},
		"read only": {map[string]string{"CONDUIT_READ_ONLY": "true"}, reads},
	} {
		t.Run(name, func(t *testing.T) {
			env := maps.Clone(c.env)
			p := start(t, env, "./")
			if err := os.Mkdir(filepath.Join(p.home, "proj"), 0o755); err != nil {
				t.Fatal(err)
			}
			p.file("proj/f", "text\n")
			p.handshake()
			for id, call := range c.calls {
				p.send(toolCall(id, call.tool, call.args))
				if r := p.reply(); r.Error != nil || r.Result.IsError || strings.Contains(r.Result.Content[0].Text, `"error_code"`) {
					t.Errorf("%s: %+v", call.args, r)
				}
			}
			p.in.Close()
			p.ends(0)
			var found []string
			err := filepath.WalkDir(p.home, func(path string, _ fs.DirEntry, err error) error {
				found = append(found, strings.TrimPrefix(path, p.home))
				return err
			})
			if got := strings.Join(found, " "); err != nil || got != " /proj /proj/f" {
				t.Errorf("in the home directory: %s, %v", got, err)
			}
		})
	}
}
