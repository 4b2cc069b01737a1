package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
)

func TestAgentCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mcp-conduit.config.json"), []byte(`{"providers": {"none": {"binary": "/no/such/agent", "inputMode": "stdin", "args": []}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"CONDUIT_ALLOWED_PATHS": dir, "CONDUIT_PROJECT_ROOT": dir, "CONDUIT_LOG_FILE_PATH": "NONE"}
	var out, errs strings.Builder
	if code := Run([]string{"agent"}, env, strings.NewReader(""), &out, &errs); code != 0 || !strings.Contains(out.String(), "conduit-mcp agent") {
		t.Errorf("without a command: %d, %q", code, errs.String())
	}
	out.Reset()
	errs.Reset()
	if code := Run([]string{"agent", "health", "none"}, env, strings.NewReader(""), &out, &errs); code != 1 || !strings.Contains(out.String(), "none") {
		t.Errorf("health: %d, %q, %q", code, out.String(), errs.String())
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp-conduit.config.json"), []byte(`{"providers": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	errs.Reset()
	if code := Run([]string{"agent", "health"}, env, strings.NewReader(""), &out, &errs); code != 1 || !strings.Contains(errs.String(), "/providers") {
		t.Errorf("health with a bad configuration: %d, %q", code, errs.String())
	}
}

// What agents leave behind is not for path parameters.
func TestRecordsOfAgentsAreDenied(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sub/.mcp-conduit/audit/a.json", "sub/.mcp-conduit/logs/a.md", "sub/ours.txt"} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"CONDUIT_ALLOWED_PATHS": dir, "CONDUIT_PROJECT_ROOT": dir, "CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_TOOLSETS": "core,agent", "CONDUIT_JOURNAL_DIR": "NONE"}
	a, err := app.New(app.Options{Environ: env})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for args, want := range map[string]string{
		`{"operation":"content","sources":["sub/.mcp-conduit/audit/a.json"]}`: "ERR_FS_ACCESS_DENIED",
		`{"operation":"content","sources":["sub/.mcp-conduit/logs"]}`:         "ERR_FS_ACCESS_DENIED",
		`{"operation":"content","sources":["sub/ours.txt"]}`:                  `"content":"x"`,
	} {
		res, err := a.Call(t.Context(), "read", json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, want) {
			t.Errorf("%s: %s", args, text)
		}
	}
	env["MCP_CONDUIT_CONFIG"] = filepath.Join(dir, "missing.json")
	b, err := app.New(app.Options{Environ: env})
	if err == nil {
		t.Error("a configuration that is missing does not keep the server from starting")
	}
	b.Close()
}
