package cmd

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
)

// contents are the files below dir and what they hold.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fi, ierr := d.Info()
		if ierr != nil {
			return ierr
		}
		files[path] = fi.Mode().String() + "\n" + string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Every change that a server makes to files can be undone, and the undoing too.
func TestEveryChangeCanBeUndone(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state") // inside, and denied all the same
	for name, content := range map[string]string{"a.txt": "one\ntwo\r\n", "b.txt": "bee\n", "tree/c.txt": "c\n", "tree/deep/d.txt": "d\n"} {
		full := filepath.Join(dir, "work", name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(dir, "work")
	env := map[string]string{"CONDUIT_ALLOWED_PATHS": dir, "CONDUIT_PROJECT_ROOT": work, "CONDUIT_JOURNAL_DIR": state, "CONDUIT_LOG_FILE_PATH": "NONE"}
	a, err := app.New(app.Options{Environ: env})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	call := func(tool, args string) string {
		t.Helper()
		res, err := a.Call(t.Context(), tool, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		text := res.Content[0].(*mcp.TextContent).Text
		if res.IsError {
			t.Fatalf("%s %s: %s", tool, args, text)
		}
		return text
	}
	ids := map[string]bool{}
	for _, c := range []struct{ tool, args string }{
		{"edit", `{"operation":"apply","changes":[{"path":"a.txt","edits":[{"old_text":"two","new_text":"2"}]},{"path":"b.txt","edits":[{"insert_at_line":1,"new_text":"zero"}]}]}`},
		{"edit", `{"operation":"replace","paths":["a.txt","b.txt"],"pattern":"e","replacement":"E"}`},
		{"edit", `{"operation":"patch","patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+eins\n two\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bee\n"}`},
		{"write", `{"action":"put","entries":[{"path":"a.txt","content":"x"},{"path":"n/e/w.txt","content":"x"}]}`},
		{"write", `{"action":"put","entries":[{"path":"a.txt","content":"x","write_mode":"append"}]}`},
		{"write", `{"action":"delete","entries":[{"path":"tree","recursive":true}]}`},
		{"write", `{"action":"move","entries":[{"source_path":"b.txt","destination_path":"a.txt"}]}`},
		{"write", `{"action":"copy","entries":[{"source_path":"b.txt","destination_path":"a.txt"}]}`},
	} {
		before := contents(t, work)
		text := call(c.tool, c.args)
		after := contents(t, work)
		if maps.Equal(before, after) {
			t.Fatalf("%s changed nothing: %s", c.args, text)
		}
		_, id, ok := strings.Cut(text, `"change_id":"`)
		if !ok {
			t.Fatalf("%s: no change_id: %s", c.args, text)
		}
		id, _, _ = strings.Cut(id, `"`)
		if ids[id] {
			t.Errorf("%s: change_id %s is not new", c.args, id)
		}
		ids[id] = true
		if got := call("list", `{"operation":"system_info","info_type":"recent_changes"}`); !strings.Contains(got, `{"recent_changes":[{"change_id":"`+id+`"`) {
			t.Errorf("after %s the latest change is not %s: %s", c.args, id, got)
		}
		call("edit", `{"operation":"undo"}`)
		if got := contents(t, work); !maps.Equal(got, before) {
			t.Errorf("undoing %s leaves\n%q\nwant\n%q", c.args, got, before)
		}
		call("edit", `{"operation":"undo"}`)
		if got := contents(t, work); !maps.Equal(got, after) {
			t.Errorf("undoing the undoing of %s leaves\n%q\nwant\n%q", c.args, got, after)
		}
		call("edit", `{"operation":"undo"}`)
	}
	for _, args := range []string{`{"operation":"content","sources":["` + state + `"]}`, `{"operation":"metadata","sources":["../state"]}`} {
		res, err := a.Call(t.Context(), "read", json.RawMessage(args))
		if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "ERR_FS_ACCESS_DENIED") {
			t.Errorf("the journal can be read: %s, %v", res.Content[0].(*mcp.TextContent).Text, err)
		}
	}
}
