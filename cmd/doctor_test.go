package cmd

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/clients"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// doctored runs doctor and returns its report.
func doctored(t *testing.T, env map[string]string, args ...string) (r report) {
	t.Helper()
	var out, errs strings.Builder
	code := Run(append([]string{"doctor", "--json"}, args...), env, strings.NewReader(""), &out, &errs)
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || code != 0 {
		t.Fatalf("%d, %v: %s%s", code, err, out.String(), errs.String())
	}
	return r
}

// environment is what a client would start the server with: its own variables
// and those of the configuration.
func environment(t *testing.T, own map[string]string, configuration any) map[string]string {
	t.Helper()
	b, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Servers map[string]struct{ Env map[string]string } `json:"mcpServers"`
	}
	if err := json.Unmarshal(b, &file); err != nil || len(file.Servers) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	env := maps.Clone(own)
	maps.Copy(env, file.Servers[clients.Name].Env)
	return env
}

// A client that is configured as doctor says starts the server that doctor has
// checked: no protection is lost on the way, wherever the client starts it.
func TestClientsGetWhatWasChecked(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, elsewhere := filepath.Join(dir, "home"), filepath.Join(dir, "elsewhere")
	for _, d := range []string{"home/.ssh", "home/proj/secret", "elsewhere", "temp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "temp"))
	own := map[string]string{"HOME": home, "USERPROFILE": home}
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	// Every setting with a value other than its default.
	everything := map[string]string{"CONDUIT_TOOLSETS": "all", "CONDUIT_DENIED_PATHS": "~/proj/secret" + string(os.PathListSeparator) + "*.key"}
	for _, s := range settings(t, set) {
		switch _, given := everything[s.Env]; {
		case given || s.Secret || s.Env == "CONDUIT_ALLOWED_PATHS" || s.Env == "MCP_CONDUIT_CONFIG":
		case s.Kind == "boolean":
			everything[s.Env] = map[string]string{"true": "no", "false": "yes"}[s.Default]
		case s.Kind == "integer":
			everything[s.Env] = strings.TrimLeft(s.Default[:len(s.Default)-1], "-") + "7"
		case s.Kind == "state" || s.Kind == "data":
			everything[s.Env] = "state-" + s.Env
		}
	}
	everything["CONDUIT_LOG_FILE_PATH"], everything["CONDUIT_PROJECT_ROOT"] = "a.log", filepath.Join(home, "proj")
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"defaults":   {},
		"read only":  {env: map[string]string{"CONDUIT_READ_ONLY": "true"}},
		"arguments":  {args: []string{"./proj"}},
		"everything": {env: everything, args: []string{"~/proj", "~/.ssh"}},
		"off":        {env: map[string]string{"CONDUIT_JOURNAL_DIR": "none", "CONDUIT_LOG_FILE_PATH": "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(home)
			env := maps.Clone(own)
			maps.Copy(env, c.env)
			checked := doctored(t, env, c.args...)
			env = environment(t, own, checked.Snippet)
			if _, set := env["CONDUIT_ALLOWED_PATHS"]; set != (c.args != nil) {
				t.Errorf("the configuration has CONDUIT_ALLOWED_PATHS: %v", set)
			}
			t.Chdir(elsewhere)
			started := doctored(t, env)
			if !reflect.DeepEqual(started.Allowed, checked.Allowed) || !reflect.DeepEqual(started.Denied, checked.Denied) || !reflect.DeepEqual(started.Toolsets, checked.Toolsets) {
				t.Errorf("allowed %q, denied %q, %v; checked were %q, %q, %v", started.Allowed, started.Denied, started.Toolsets, checked.Allowed, checked.Denied, checked.Toolsets)
			}
			values := func(r report) map[string]any {
				m := map[string]any{}
				for _, s := range r.Settings {
					m[s.Variable] = s.Value
				}
				if c.env["CONDUIT_PROJECT_ROOT"] == "" {
					delete(m, "CONDUIT_PROJECT_ROOT") // each client's own
				}
				return m
			}
			if got, want := values(started), values(checked); !reflect.DeepEqual(got, want) {
				t.Errorf("started %v\nchecked %v", got, want)
			}
		})
	}
}

// A secret is in nothing that doctor shows, and said to be left out.
func TestDoctorShowsNoSecret(t *testing.T) {
	var out, errs strings.Builder
	code := Run([]string{"doctor", "--json", t.TempDir()}, map[string]string{"HOME": t.TempDir(), "CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_HTTP_PROXY": "http://user:hush@127.0.0.1:1"}, strings.NewReader(""), &out, &errs)
	if code != 0 || strings.Contains(out.String(), "hush") || !strings.Contains(out.String(), "CONDUIT_HTTP_PROXY") || !strings.Contains(out.String(), `"(set)"`) {
		t.Errorf("%d: %s%s", code, out.String(), errs.String())
	}
}

// Each client's page and doctor show the same.
func TestDoctorShowsWhatThePageShows(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/clients/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range clients.IDs() {
		var out, errs strings.Builder
		env := map[string]string{"HOME": dir, "CONDUIT_ALLOWED_PATHS": dir}
		if code := Run([]string{"doctor", "--quiet", "--client", id}, env, strings.NewReader(""), &out, &errs); code != 0 || errs.Len() > 0 {
			t.Fatalf("%s: %d, %s", id, code, errs.String())
		}
		shown := strings.NewReplacer(self, "/usr/local/bin/conduit-mcp", dir, "/home/me/projects").Replace(out.String())
		if _, section, ok := strings.Cut(string(page), "`--client "+id+"`"); !ok || !strings.Contains(section[:strings.Index(section, "```\n")+3], "\n"+shown+"```") {
			t.Errorf("the page does not have what doctor --client %s shows:\n%s", id, shown)
		}
		out.Reset()
		if Run([]string{"doctor", "--client", id}, env, strings.NewReader(""), &out, &errs); !strings.Contains(out.String()[:strings.Index(out.String(), "\nAllowed")], "\n}\n") && id != "codex" {
			t.Errorf("%s: the configuration does not come first:\n%s", id, out.String())
		}
	}
	var out, errs strings.Builder
	if code := Run([]string{"doctor", "--client", "none"}, nil, strings.NewReader(""), &out, &errs); code != 2 || !strings.Contains(errs.String(), "claude-code, claude-desktop") {
		t.Errorf("an unknown client: %d, %s", code, errs.String())
	}
}
