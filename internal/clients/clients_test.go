package clients_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/conduit-mcp/conduit-mcp/internal/clients"
)

// parse reads a snippet as its client does: where the command is, what it is,
// and its environment.
func parse(t *testing.T, c clients.Client, text string) (command string, env map[string]string, more map[string]any) {
	t.Helper()
	var file map[string]map[string]map[string]any
	var err error
	if c.TOML {
		err = toml.Unmarshal([]byte(text), &file)
	} else {
		var any map[string]map[string]map[string]any
		err = json.Unmarshal([]byte(text), &any)
		file = any
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", c.ID, err, text)
	}
	key := map[string]string{"codex": "mcp_servers", "opencode": "mcp", "vscode": "servers", "zed": "context_servers"}[c.ID]
	if key == "" {
		key = "mcpServers"
	}
	entry := file[key]["conduit"]
	if len(file) != 1 || len(file[key]) != 1 || entry == nil {
		t.Fatalf("%s: not below %s:\n%s", c.ID, key, text)
	}
	variables := "env"
	switch v := entry["command"].(type) {
	case string:
		command = v
	case []any:
		command, variables = v[0].(string), "environment"
	}
	env = map[string]string{}
	given, ok := entry[variables].(map[string]any)
	if !ok {
		t.Errorf("%s: no %s:\n%s", c.ID, variables, text)
	}
	for name, v := range given {
		env[name] = v.(string)
	}
	delete(entry, "command")
	delete(entry, variables)
	return command, env, entry
}

// Clients read from a snippet what went into it, whatever stands in a path.
func TestSnippetsAreRead(t *testing.T) {
	for _, s := range []clients.Server{
		{Command: "/usr/local/bin/conduit-mcp", Env: map[string]string{"CONDUIT_ALLOWED_PATHS": "/home/me/a:/home/me/b", "CONDUIT_READ_ONLY": "true"}},
		{Command: `C:\Program Files\conduit\conduit-mcp.exe`, Env: map[string]string{"CONDUIT_ALLOWED_PATHS": `C:\Users\me\a;D:\é "b" <&>`}},
		{Command: "/tmp/a\nb\t\x7f'\u2028", Env: map[string]string{"X": "=#[]{}"}},
		{Command: "conduit-mcp"},
	} {
		for _, c := range clients.All {
			command, env, _ := parse(t, c, c.Snippet(s))
			if command != s.Command || !maps.Equal(env, s.Env) {
				t.Errorf("%s reads %q, %q; want %q, %q", c.ID, command, env, s.Command, s.Env)
			}
		}
	}
}

// What a client requires beside command and environment is there.
func TestMembers(t *testing.T) {
	for id, want := range map[string]string{
		"claude-desktop": `{}`, "claude-code": `{"type":"stdio"}`, "vscode": `{"type":"stdio"}`, "zed": `{"args":[]}`, "codex": `{}`,
		"opencode": `{"enabled":true,"type":"local"}`, "cursor": `{}`, "gemini": `{}`, "copilot-cli": `{"args":[],"tools":["*"],"type":"local"}`,
		"cline": `{"args":[],"disabled":false}`, "jetbrains": `{"args":[]}`, "lm-studio": `{}`, "windsurf": `{}`,
	} {
		c, ok := clients.Find(id)
		if !ok {
			t.Errorf("%s is not known", id)
			continue
		}
		_, _, more := parse(t, c, c.Snippet(clients.Server{Command: "x"}))
		if got, err := json.Marshal(more); err != nil || string(got) != want {
			t.Errorf("%s has %s, want %s", id, got, want)
		}
	}
	if _, ok := clients.Find("none"); ok || len(clients.All) != 13 {
		t.Errorf("%d clients", len(clients.All))
	}
	if !slices.IsSortedFunc(clients.All, func(a, b clients.Client) int {
		return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title))
	}) {
		t.Error("not sorted by title")
	}
}
