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

// longestFamily is how many lines a family with one of everything may take.
const longestFamily = 150

// TestPlugin builds the module that DEVELOPMENT.md shows, runs its tests, and
// drives all that its operation and its family add.
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
	if len(files) != 7 {
		t.Fatalf("DEVELOPMENT.md shows %d files, want 5", len(files)-2)
	}
	if n := strings.Count(files["notes/notes.go"], "\n"); n > longestFamily {
		t.Errorf("the example of a family has %d lines, %d are enough", n, longestFamily)
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
	state := filepath.Join(t.TempDir(), "state")
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + data, "CONDUIT_ALLOWED_PATHS=" + filepath.Dir(state) + string(os.PathListSeparator) + data,
		"CONDUIT_PROJECT_ROOT=" + data, "CONDUIT_LOG_FILE_PATH=NONE", "CONDUIT_JOURNAL_DIR=NONE", "NOTES_DIR=" + state, "NOTES_MAX=20"}
	server := exec.Command(binary)
	server.Env = append(environ, "CONDUIT_TOOLSETS=core,notes")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := json.Marshal(tools.Tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"words"`, `words: Count the words of text files.`, `"(words) Count only words of more bytes."`, `"notes_add"`, `"notes_list"`} {
		if !bytes.Contains(listed, []byte(want)) {
			t.Errorf("tools/list lacks %s", want)
		}
	}
	if text := session.InitializeResult().Instructions; !strings.HasSuffix(text, "notes_add keeps what is worth remembering.") {
		t.Errorf("instructions: %s", text)
	}
	for _, c := range []struct {
		tool, want string
		args       map[string]any
	}{
		{"read", `[{"source":"a.txt","status":"success","words":6}]`, map[string]any{"operation": "words", "sources": []string{"a.txt"}}},
		{"read", "ERR_FS_ACCESS_DENIED", map[string]any{"operation": "words", "sources": []string{"/etc/hostname"}}}, // the guard is there without the operation doing anything
		{"notes_list", `{"calls":1}`, map[string]any{}},
		{"notes_add", `{"status":"success"}`, map[string]any{"name": "first", "text": "Remember."}},
		{"notes_add", "ERR_INVALID_PARAMETER", map[string]any{"name": "long", "text": "more than twenty bytes"}}, // the second name of the setting
		{"notes_list", `{"names":["first"],"calls":4}`, map[string]any{}},
		{"read", "ERR_FS_ACCESS_DENIED", map[string]any{"operation": "content", "sources": []string{filepath.Join(state, "first.txt")}}},
	} {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := res.Content[0].(*mcp.TextContent); !ok || !strings.Contains(text.Text, c.want) {
			t.Errorf("%s %v: got %+v, want %s", c.tool, c.args, res.Content[0], c.want)
		}
	}
	session.Close()
	if b, err := os.ReadFile(filepath.Join(state, "count")); err != nil || string(b) != "1" {
		t.Errorf("the background work left %q, %v", b, err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"notes", "show", "first"}, 0, "Remember.\n"},
		{[]string{"notes", "show", "first", "--json"}, 0, `{"text":"Remember."}`},
		{[]string{"notes", "show", "none", "--json"}, 4, `"error_code":"ERR_FS_NOT_FOUND"`},
		{[]string{"notes", "sho"}, 2, `unknown command "sho"; did you mean show?`},
		{[]string{"__complete", "notes", "show", ""}, 0, "first\n"},
		{[]string{"doctor", "--strict"}, 0, "Short texts that outlive a conversation."},
		{[]string{"call", "read.content", `{"sources": ["` + filepath.ToSlash(filepath.Join(state, "first.txt")) + `"]}`}, 1, "ERR_FS_ACCESS_DENIED"}, // not served, and closed all the same
	} {
		command := exec.Command(binary, c.args...)
		command.Env = environ
		out, err := command.CombinedOutput()
		if got := command.ProcessState.ExitCode(); got != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %d, %v\n%s", c.args, got, err, out)
		}
	}
	command := exec.Command(binary, "doctor")
	command.Env = append(environ, "CONDUIT_TOOLSETS=notes")
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "NOTES_MAX_BYTES                            20 (from NOTES_MAX)") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
}
