package cmd

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/internal/clients"
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

// TestReference keeps the generated pages below docs fresh, and none there that
// is of nothing.
func TestReference(t *testing.T) {
	set := registered(t)
	toolsets, err := registry.Toolsets()
	if err != nil {
		t.Fatal(err)
	}
	codes, err := docs.Codes("../registry/fault/codes.go")
	if err != nil {
		t.Fatal(err)
	}
	const written = "\n\nWritten by `make docs` from the code.\n\n"
	pages := map[string]string{
		"docs/settings.md": "# Settings\n\nSettings are environment variables; one that is set but empty counts as unset. `--env-file FILE` reads those that\nthe environment lacks from a file like [.env.example](../.env.example). A bad value keeps the server from starting, and\n`conduit-mcp doctor` says why." + written + docs.Settings(settings(t, set)),
		"docs/errors.md":   "# Error codes" + written + codes,
	}
	for _, ts := range toolsets {
		pages["docs/tools/"+ts.Name+".md"] = docs.Toolset(ts, set)
	}
	for name, text := range pages {
		fresh(t, name, text, "make docs")
	}
	found, err := filepath.Glob("../docs/tools/*")
	if err != nil || len(found) != len(toolsets) {
		t.Errorf("docs/tools has %q, %v; there are %d toolsets", found, err, len(toolsets))
	}
	fresh(t, ".env.example", docs.Environment(settings(t, set)), "make docs")
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
	var pages []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, name := range pages {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := fence.FindAllSubmatch(b, -1)
		if strings.HasSuffix(name, "core.md") && len(found) < 10 {
			t.Errorf("%s has %d JSON snippets; the pattern does not find them", name, len(found))
		}
		for _, m := range found {
			if !json.Valid(m[1]) {
				t.Errorf("%s: not valid JSON:\n%s", name, m[1])
			}
		}
	}
}

var (
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
	link   = regexp.MustCompile(`\]\(([^)#:]*)(?:#[^)]*)?\)`)
)

// README.md is short and shows the common form of configuration; what documents
// link to exists.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(readme) > 16<<10 {
		t.Errorf("README.md has %d bytes", len(readme))
	}
	_, section, _ := strings.Cut(docs.Clients(), "`--client "+clients.Default+"`")
	snippet := section[strings.Index(section, "```json"):]
	if snippet = snippet[:strings.Index(snippet, "```\n")+4]; !strings.Contains(string(readme), snippet) {
		t.Errorf("README.md does not have\n%s", snippet)
	}
	links := 0
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/*/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllSubmatch(fenced.ReplaceAll(b, nil), -1) {
				if target := string(m[1]); target != "" {
					links++
					if _, err := os.Stat(filepath.Join(filepath.Dir(page), target)); err != nil {
						t.Errorf("%s links to %s: %v", page, target, err)
					}
				}
			}
		}
	}
	if links < 20 {
		t.Errorf("%d links were looked at", links)
	}
}

// Every package has its place in the layout, and nothing is there that is not.
func TestLayout(t *testing.T) {
	b, err := os.ReadFile("../DEVELOPMENT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, layout, _ := strings.Cut(string(b), "```text\n")
	_, layout, _ = strings.Cut(layout, "\ninternal/")
	layout, _, _ = strings.Cut(layout, "\ndocs/")
	var named []string
	for _, m := range regexp.MustCompile(`\b([a-z]+)/(?:\s|$)`).FindAllStringSubmatch(layout, -1) {
		named = append(named, m[1])
	}
	found, err := os.ReadDir("../internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range found {
		if !slices.Contains(named, dir.Name()) {
			t.Errorf("internal/%s is not in the layout", dir.Name())
		}
	}
	for _, name := range named {
		if _, err := os.Stat("../internal/" + name); err != nil && name != "docs" && name != "tools" && name != "clients" {
			t.Errorf("the layout has internal/%s, which is not there", name)
		}
	}
}

// A page of clients shows what doctor shows.
func TestClients(t *testing.T) {
	fresh(t, "docs/clients/README.md", docs.Clients(), "make docs")
}
