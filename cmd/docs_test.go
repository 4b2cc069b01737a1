package cmd

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/internal/docs"
	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

var update = flag.Bool("update", false, "rewrite the generated documentation and snapshots")

// fresh fails unless the file, below the repository's root, holds want. With
// -update it is written.
func fresh(t *testing.T, name, want, command string) {
	t.Helper()
	path := filepath.Join("..", filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what the code says (%v); run %s and read the difference", name, err, command)
	}
}

func registered(t *testing.T) *registry.Set {
	t.Helper()
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// settings are those of set and of the server.
func settings(t *testing.T, set *registry.Set) []registry.Setting {
	t.Helper()
	own, err := app.ServerSettings()
	if err != nil {
		t.Fatal(err)
	}
	return set.Settings(own...)
}

func TestReference(t *testing.T) {
	set := registered(t)
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	codes, err := docs.Codes("../registry/fault/codes.go")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	for name, text := range map[string]string{"tools": docs.Tools(set), "settings": docs.Settings(settings(t, set)), "errors": codes} {
		if readme, err = docs.Replace(readme, name, text); err != nil {
			t.Fatal(err)
		}
	}
	fresh(t, "README.md", readme, "make docs")
}

func TestExampleEnvironment(t *testing.T) {
	fresh(t, ".env.example", docs.Environment(settings(t, registered(t))), "make docs")
}

func TestSnapshots(t *testing.T) {
	vars := map[string]string{"CONDUIT_TOOLSETS": "all", "CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_ALLOWED_PATHS": t.TempDir()}
	a, err := app.New(app.Options{Environ: vars})
	t.Cleanup(a.Close)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, tool := range a.Mux.Tools() {
		b, err := json.MarshalIndent(tool, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		name := "testdata/tools/" + tool.Name + ".json"
		want = append(want, filepath.FromSlash("../"+name))
		fresh(t, name, string(b)+"\n", "make snapshots")
	}
	got, err := filepath.Glob("../testdata/tools/*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("snapshots are %q, want %q", got, want)
	}
}

// TestSnippets checks that what people may copy from the documents is JSON.
func TestSnippets(t *testing.T) {
	fence := regexp.MustCompile("(?ms)^```json\n(.*?)^```$")
	for _, name := range []string{"README.md", "DEVELOPMENT.md", "SECURITY.md"} {
		b, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		found := fence.FindAllSubmatch(b, -1)
		if name == "README.md" && len(found) < 10 {
			t.Errorf("README.md has %d JSON snippets; the pattern does not find them", len(found))
		}
		for _, m := range found {
			if !json.Valid(m[1]) {
				t.Errorf("%s: not valid JSON:\n%s", name, m[1])
			}
		}
	}
}
