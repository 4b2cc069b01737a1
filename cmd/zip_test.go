package cmd

import (
	stdzip "archive/zip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
)

// The files of an open workspace are for the core tools too, and nothing else
// of the state directory is.
func TestWorkspaceAmongCoreTools(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "work", "report.zip")
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	w := stdzip.NewWriter(f)
	for name, content := range map[string]string{"a.txt": "alpha\n", "b.txt": "beta\n"} {
		e, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(e, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"CONDUIT_ALLOWED_PATHS": filepath.Join(dir, "work"), "CONDUIT_PROJECT_ROOT": filepath.Join(dir, "work"), "CONDUIT_LOG_FILE_PATH": "NONE",
		"CONDUIT_TOOLSETS": "core,zipfs", "CONDUIT_ZIP_DATA_DIR": filepath.Join(dir, "state"), "CONDUIT_JOURNAL_DIR": "NONE"}
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
		return res.Content[0].(*mcp.TextContent).Text
	}
	var opened struct {
		Path string `json:"workspace_path"`
	}
	if text := call("zipfs_open", `{"path":"`+archive+`"}`); json.Unmarshal([]byte(text), &opened) != nil || opened.Path == "" {
		t.Fatal(text)
	}
	put := `{"action":"put","entries":[{"path":"` + filepath.Join(opened.Path, "a.txt") + `","content":"changed\n"}]}`
	if text := call("write", put); !strings.Contains(text, "File overwritten.") {
		t.Error(text)
	}
	if text := call("list", `{"operation":"entries","path":"`+filepath.Dir(opened.Path)+`"}`); !strings.Contains(text, "ERR_FS_ACCESS_DENIED") {
		t.Error(text)
	}
	if text := call("zipfs_close", `{}`); !strings.Contains(text, "UNSAVED_CHANGES") || !strings.Contains(text, "a.txt") {
		t.Error(text)
	}
	if text := call("zipfs_close", `{"sync":true}`); !strings.Contains(text, `"synced":true`) {
		t.Error(text)
	}
	if text := call("read", `{"operation":"content","sources":["report.zip!/a.txt"],"view":"lean"}`); text != "changed\n" {
		t.Errorf("the archive holds %q", text)
	}
	if text := call("write", put); !strings.Contains(text, "ERR_FS_ACCESS_DENIED") {
		t.Error(text)
	}
	var out, errs strings.Builder
	if code := Run([]string{"zip", "ls", "nothing"}, env, strings.NewReader(""), &out, &errs); code != 4 {
		t.Errorf("zip ls without a session: %d, %q %q", code, out.String(), errs.String())
	}
	if Run([]string{"zip"}, env, strings.NewReader(""), &out, &errs); !strings.Contains(out.String()+errs.String(), "conduit-mcp zip") {
		t.Errorf("zip without a command: %q %q", out.String(), errs.String())
	}
}
