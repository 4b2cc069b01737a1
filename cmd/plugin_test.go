package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var exampleFile = regexp.MustCompile("(?ms)^`([a-z_./]+)`:\n\n```go\n(.*?)^```$")

// TestPlugin builds the module that DEVELOPMENT.md shows, runs its tests and
// calls its operation over stdio.
func TestPlugin(t *testing.T) {
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../DEVELOPMENT.md")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	files := map[string]string{
		"go.sum": string(sums),
		"go.mod": "module example.org/my-conduit\n\ngo 1.26.5\n\nrequire github.com/conduit-mcp/conduit-mcp v1.0.0\n\n" +
			"replace github.com/conduit-mcp/conduit-mcp => " + filepath.ToSlash(repository) + "\n",
	}
	for _, m := range exampleFile.FindAllStringSubmatch(string(doc), -1) {
		files[m[1]] = m[2]
	}
	if len(files) != 5 {
		t.Fatalf("DEVELOPMENT.md shows %d files, want 3", len(files)-2)
	}
	for name, content := range files {
		path := filepath.Join(module, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = module
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	binary := filepath.Join(module, "my-conduit.exe") // a name that every system takes
	run("build", "-o", binary, ".")
	run("vet", "./...")
	run("test", "./...")

	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "a.txt"), []byte("to be or not to be"), 0o644); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(binary)
	server.Env = append(os.Environ(), "CONDUIT_ALLOWED_PATHS="+data, "CONDUIT_PROJECT_ROOT="+data, "CONDUIT_LOG_FILE_PATH=NONE")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := json.Marshal(tools.Tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"words"`, `words: Count the words of text files.`, `"(words) Count only words of more bytes."`} {
		if !bytes.Contains(listed, []byte(want)) {
			t.Errorf("tools/list lacks %s", want)
		}
	}
	for _, c := range []struct{ source, want string }{
		{"a.txt", `[{"source":"a.txt","status":"success","words":6}]`},
		{"/etc/hostname", "ERR_FS_ACCESS_DENIED"}, // the guard is there without the operation doing anything
	} {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "read", Arguments: map[string]any{"operation": "words", "sources": []string{c.source}}})
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := res.Content[0].(*mcp.TextContent); !ok || !strings.Contains(text.Text, c.want) {
			t.Errorf("%s: got %+v, want %s", c.source, res.Content[0], c.want)
		}
	}
}
