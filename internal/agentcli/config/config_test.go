package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return full
}

func TestPrecedenceAndDefaults(t *testing.T) {
	dir := t.TempDir()
	c, err := config.Load("", dir)
	if err != nil || c.File != "" || !slices.Equal(c.IDs(), []string{"claude", "codex", "gemini", "opencode"}) {
		t.Fatalf("without a file: %+v, %v", c, err)
	}
	if c.Idle(c.Providers["codex"]) != 2*time.Minute || c.Hard() != time.Hour || c.Runner.Retry.MaxAttempts != 2 || c.Delay() != 2*time.Second || c.Runner.MaxDepth != 1 ||
		!c.Audit.Enabled || c.Audit.Dir != ".mcp-conduit/audit" || !c.Logs.Enabled || c.Logs.Dir != ".mcp-conduit/logs" || c.Policy.RequireTestCommand || c.Policy.TrackBinaryPaths {
		t.Errorf("defaults: %+v", c)
	}
	if got := c.Records(); !slices.Equal(got, []string{".mcp-conduit/audit", ".mcp-conduit/tasks", ".mcp-conduit/logs"}) {
		t.Errorf("records in %q", got)
	}
	write(t, dir, config.FileName, `{"runner": {"timeoutSeconds": 1.5, "maxSeconds": 7}, "audit": {"enabled": false}}`)
	if c, err = config.Load("", dir); err != nil || c.Idle(config.Provider{}) != 1500*time.Millisecond || c.Hard() != 7*time.Second || c.Audit.Enabled || c.Audit.Dir == "" || c.File == "" {
		t.Errorf("in the directory: %+v, %v", c, err)
	}
	named := write(t, t.TempDir(), "other.json", `{"runner": {"timeoutSeconds": 9, "timeoutMs": 50}}`)
	if c, err = config.Load(named, dir); err != nil || c.Idle(config.Provider{}) != 50*time.Millisecond || c.Idle(config.Provider{TimeoutMs: 7}) != 7*time.Millisecond || !c.Audit.Enabled {
		t.Errorf("named: %+v, %v", c, err)
	}
	if _, err = config.Load(filepath.Join(dir, "none.json"), dir); code(err) != fault.ConfigInvalid {
		t.Errorf("a missing file that was named gave %v", err)
	}
}

func TestProviders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "agents/mine.json", `{"binary": "mine", "inputMode": "arg", "args": ["go"], "inputFlag": "", "outputFormat": "jsonl", "resultPath": "/a/b"}`)
	write(t, dir, "agents/other.json", `{"type": "acp", "binary": "other", "args": ["--acp"]}`)
	write(t, dir, "agents/README", `not one`)
	file := write(t, dir, "c.json", `{"server": {"name": "x", "version": "1", "protocolVersion": "2025-11-25"}, "providersDir": "agents", "providers": {
		"codex": {"model": "m"}, "mine": {"env": {"A": "b"}}, "gemini": {"binary": "g", "inputMode": "arg", "args": [], "healthCheck": {"timeoutMs": 5}}}}`)
	c, err := config.Load(file, t.TempDir())
	if err != nil || !slices.Equal(c.IDs(), []string{"claude", "codex", "gemini", "mine", "opencode", "other"}) {
		t.Fatalf("%v, %v", c, err)
	}
	if p := c.Providers["codex"]; p.Model != "m" || p.OutputFormat != "codex-jsonl" || len(p.Args) == 0 || p.InputMode != config.Stdin {
		t.Errorf("an adjusted one: %+v", p)
	}
	if p := c.Providers["gemini"]; p.OutputFormat != "auto" || len(p.Args) != 0 || *p.InputFlag != "--prompt" || *p.ModelFlag != "--model" || p.HealthCheck.TimeoutMs != 5 ||
		!slices.Equal(p.HealthCheck.VersionArgs, []string{"--version"}) || !slices.Equal(p.HealthCheck.SuccessExitCodes, []int{0}) {
		t.Errorf("a replaced one: %+v", p)
	}
	if p := c.Providers["mine"]; *p.InputFlag != "" || p.Env["A"] != "b" || p.ResultPath != "/a/b" || p.Type != config.JSONCLI {
		t.Errorf("one of a file, adjusted: %+v", p)
	}
	if p := c.Providers["other"]; p.Type != config.ACP || p.Permissions != "edits" {
		t.Errorf("an acp one: %+v", p)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{`{`, "line 1, column 2: unexpected EOF"},
		{"{\n  \"a\": trx\n}", "line 2, column 11"},
		{`{} {}`, "there is more after the JSON value"},
		{``, "line 1, column 1: EOF"},
		{`[]`, "the whole file: must be an object, not an array"},
		{`{"polcy": {}}`, "/polcy: unknown key; valid here: audit, logs, policy, providers, providersDir, runner, server"},
		{`{"policy": {"requireTestCommand": "yes"}}`, "/policy/requireTestCommand: must be true or false, not a string"},
		{`{"runner": {"timeoutSeconds": "120"}}`, "/runner/timeoutSeconds: must be a number, not a string"},
		{`{"runner": {"timeoutSeconds": 0}}`, "/runner/timeoutSeconds: must be more than 0"},
		{`{"runner": {"timeoutMs": 1.5}}`, "/runner/timeoutMs: must be a whole number, not the number 1.5"},
		{`{"runner": {"timeoutMs": -1}}`, "/runner/timeoutMs: must not be negative"},
		{`{"runner": {"retry": {"maxAttempts": null}}}`, "/runner/retry/maxAttempts: must be a whole number, not null"},
		{`{"runner": {"envAllow": ["A", 1]}}`, "/runner/envAllow/1: must be a string, not the number 1"},
		{`{"audit": {"dir": ""}}`, "/audit/dir: must not be empty"},
		{`{"providers": []}`, "/providers: must be an object, not an array"},
		{`{"providers": {"a/b": {}}}`, "/providers/a~1b/binary: required"},
		{`{"providers": {"x": {"binary": "x", "args": []}}}`, "/providers/x/inputMode: required"},
		{`{"providers": {"x": {"binary": "x", "inputMode": "stdin"}}}`, "/providers/x/args: required"},
		{`{"providers": {"x": {"binary": "x", "inputMode": "file", "args": []}}}`, `/providers/x/inputMode: is "file"; it must be one of stdin, arg`},
		{`{"providers": {"codex": {"type": "cli"}}}`, `/providers/codex/type: is "cli"; it must be one of json-cli, acp`},
		{`{"providers": {"codex": {"outputFormat": "xml"}}}`, `/providers/codex/outputFormat: is "xml"; it must be one of auto, json, jsonl, claude-stream`},
		{`{"providers": {"codex": {"env": {"A": 1}}}}`, "/providers/codex/env/A: must be a string, not the number 1"},
		{`{"providers": {"codex": {"healthCheck": {"authOutputMode": "xml"}}}}`, "/providers/codex/healthCheck/authOutputMode: is"},
		{`{"providers": {"codex": {"resultPath": "a.b"}}}`, "/providers/codex/resultPath: must be a JSON pointer"},
		{`{"providers": {"codex": {"permissions": "some"}}}`, "/providers/codex/permissions: is"},
		{`{"providersDir": "none"}`, "/providersDir: "},
		{`{"x": "` + strings.Repeat("y", 1<<20) + `"}`, "is larger than"},
	} {
		dir := t.TempDir()
		file := write(t, dir, config.FileName, c.content)
		_, err := config.Load("", dir)
		if code(err) != fault.ConfigInvalid || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%.80s: %v; want %q", c.content, err, c.want)
		}
	}
	dir := t.TempDir()
	write(t, dir, "agents/x.json", `{"binary": 1}`)
	write(t, dir, config.FileName, `{"providersDir": "agents"}`)
	if _, err := config.Load("", dir); code(err) != fault.ConfigInvalid || !strings.Contains(err.Error(), "x.json: /binary: must be a string") {
		t.Errorf("a bad file of providersDir gave %v", err)
	}
}

func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	c, _ := fault.Of(err)
	return c
}
