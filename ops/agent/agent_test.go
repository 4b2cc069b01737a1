package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/tools/txtar"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/ops/agent"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m)) }

// family is the tools that are linked in, all of the family.
func family(t testing.TB) *registry.Set {
	t.Helper()
	set, err := registry.Linked(func(tool registry.Tool, _ registry.Desc) bool { return tool.Toolset == agent.Toolset })
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A bench is the family mounted over a scratch directory.
type bench struct {
	dir string
	app *app.App
	set *registry.Set
}

// newBench mounts the family with the configuration conf, in which $FAKE stands
// for the fake agent.
func newBench(t testing.TB, conf string, vars map[string]string) *bench {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: filepath.Join(base, "in"), set: family(t)}
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "config.json")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(conf, "$FAKE", agenttest.Fake)), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"CONDUIT_TOOLSETS": agent.Toolset, "CONDUIT_ALLOWED_PATHS": b.dir, "CONDUIT_PROJECT_ROOT": b.dir,
		"CONDUIT_LOG_FILE_PATH": "NONE", "MCP_CONDUIT_CONFIG": file, "PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}
	maps.Copy(settings, vars)
	b.app, err = app.New(app.Options{Environ: settings})
	t.Cleanup(b.app.Close)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) call(ctx context.Context, t testing.TB, tool, args string) string {
	t.Helper()
	res, err := b.app.Call(ctx, tool, json.RawMessage(strings.ReplaceAll(args, "$DIR", b.dir)))
	if err != nil {
		t.Fatal(err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if structured, _ := res.StructuredContent.(json.RawMessage); !res.IsError && string(structured) != text {
		t.Errorf("%s: the structured content is not that of the text:\n%.300s\n%.300s", tool, structured, text)
	}
	if len(text) > 32<<10 {
		t.Errorf("%s: a result of %d bytes", tool, len(text))
	}
	op := b.set.Ops(tool)[0]
	for _, m := range regexp.MustCompile(`"error_code":"([A-Z_]+)"`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(op.Errors, fault.Code(m[1])) {
			t.Errorf("%s: %s is not in Desc.Errors", tool, m[1])
		}
	}
	return text
}

func (b *bench) git(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	cmd.Dir = b.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (b *bench) write(t testing.TB, name, content string) {
	t.Helper()
	full := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// update is the flag of package optest.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

// TestGolden runs testdata/ops/<tool>/*.txtar. The parts of a case: config; env,
// KEY=VALUE a line; in/NAME files; git, where they are committed to a
// repository first; dirty/NAME files written after that; and in turn "call TOOL"
// and its want, and "wait NAME" for a file that an agent writes.
func TestGolden(t *testing.T) {
	for _, tool := range family(t).Tools() {
		cases, err := filepath.Glob(filepath.Join("..", "..", "testdata", "ops", tool.Name, "*.txtar"))
		if err != nil || len(cases) == 0 {
			t.Fatalf("no golden cases of %s", tool.Name)
		}
		for _, name := range cases {
			t.Run(tool.Name+"/"+strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
				t.Parallel()
				golden(t, name)
			})
		}
	}
}

func golden(t *testing.T, name string) {
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	conf, vars := "{}", map[string]string{}
	for _, f := range a.Files {
		switch f.Name {
		case "config":
			conf = string(f.Data)
		case "env":
			for line := range strings.Lines(string(f.Data)) {
				if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
					vars[k] = v
				}
			}
		}
	}
	b := newBench(t, conf, vars)
	have := ""
	for i, f := range a.Files {
		data := string(f.Data)
		kind, rest, _ := strings.Cut(f.Name, " ")
		switch {
		case strings.HasPrefix(f.Name, "in/"), strings.HasPrefix(f.Name, "dirty/"):
			_, file, _ := strings.Cut(f.Name, "/")
			b.write(t, file, data)
		case kind == "git":
			b.git(t, "init", "-q")
			b.git(t, "add", "-A")
			b.git(t, "commit", "-q", "-m", "first")
		case kind == "wait":
			agenttest.WaitFor(t, filepath.Join(b.dir, rest))
		case kind == "call":
			have = b.plain(b.call(t.Context(), t, rest, data))
		case kind == "want":
			if update() {
				a.Files[i].Data = []byte(have)
			} else if have != data {
				t.Errorf("%s: got\n%s\nwant\n%s", a.Files[i-1].Name, have, data)
			}
		}
	}
	if update() {
		if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var changing = []struct {
	form *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "$$TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z`), "$$STAMP"},
	{regexp.MustCompile(`("durationMs": )\d+`), "${1}0"},
}

// plain is a response indented, without what changes from run to run.
func (b *bench) plain(s string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(s), "", "  ") == nil {
		s = out.String()
	}
	s = strings.NewReplacer(b.dir, "$DIR", agenttest.Fake, "$FAKE").Replace(s)
	for _, c := range changing {
		s = c.form.ReplaceAllString(s, c.to)
	}
	return s + "\n"
}

func TestConformance(t *testing.T) { optest.Conform(t, family(t)) }

const hangs = `{"runner": {"timeoutSeconds": 3600}, "providers": {"fake": {"binary": "$FAKE", "inputMode": "stdin", "outputFormat": "codex-jsonl",
	"args": ["stdin", "say codex", "write started x", "waitfor go"]}}}`

func TestProgress(t *testing.T) {
	b := newBench(t, hangs, nil)
	var mu sync.Mutex
	var said []string
	last := int64(-1)
	ctx := registry.WithProgress(t.Context(), func(done, _ int64, message string) {
		mu.Lock()
		defer mu.Unlock()
		if done <= last || len([]rune(message)) > 200 {
			t.Errorf("progress %d after %d: %s", done, last, message)
		}
		last = done
		said = append(said, message)
		if strings.HasPrefix(message, "running for") {
			b.write(t, "go", "")
		}
	})
	answer := b.call(ctx, t, agent.RunTool, `{"provider": "fake", "instructions": "x"}`)
	if !strings.HasPrefix(answer, `{"ok":true`) {
		t.Error(answer)
	}
	if len(said) < 2 || said[0] != "started" || !strings.HasPrefix(said[len(said)-1], "running for ") {
		t.Errorf("said %q", said)
	}
}

func TestBackground(t *testing.T) {
	b := newBench(t, hangs, nil)
	answer := b.call(t.Context(), t, agent.RunTool, `{"provider": "fake", "instructions": "x", "taskId": "bg", "background": true}`)
	if !strings.Contains(answer, `"status":"queued"`) {
		t.Error(answer)
	}
	if s := b.call(t.Context(), t, agent.StatusTool, `{"taskId": "bg", "wait_ms": 100}`); !strings.Contains(s, `"status":"running"`) && !strings.Contains(s, `"status":"queued"`) {
		t.Error(s)
	}
	if s := b.call(t.Context(), t, agent.ApplyTool, `{"taskId": "bg"}`); !strings.Contains(s, "ERR_PRECONDITION_FAILED") {
		t.Error(s)
	}
	b.write(t, "go", "")
	if s := b.call(t.Context(), t, agent.StatusTool, `{"taskId": "bg", "wait_ms": 300000}`); !strings.Contains(s, `"status":"succeeded"`) || !strings.Contains(s, `"summary":"Wrote the note."`) {
		t.Error(s)
	}
}

func TestACancelledCallEndsTheAgent(t *testing.T) {
	b := newBench(t, hangs, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := b.app.Call(ctx, agent.RunTool, json.RawMessage(`{"provider": "fake", "instructions": "x", "taskId": "c"}`))
		ended <- err
	}()
	agenttest.WaitFor(t, filepath.Join(b.dir, "started"))
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled call has a reply")
	}
	if s := b.call(t.Context(), t, agent.StatusTool, `{"taskId": "c"}`); !strings.Contains(s, `"status":"cancelled"`) {
		t.Error(s)
	}
}

func TestLargeResult(t *testing.T) {
	b := newBench(t, `{"providers": {"fake": {"binary": "$FAKE", "inputMode": "stdin", "args": ["stdin", "huge 300000", "write big.txt `+strings.Repeat("long ", 4000)+`"]}}}`, nil)
	answer := b.call(t.Context(), t, agent.RunTool, `{"provider": "fake", "instructions": "x", "taskId": "big"}`)
	var r struct {
		OK        bool
		AuditPath string
		Truncated []string
		Result    struct{ Paths []string }
	}
	if err := json.Unmarshal([]byte(answer), &r); err != nil || !r.OK || !slices.Contains(r.Truncated, "runner.stdout") || !slices.Equal(r.Result.Paths, []string{"big.txt"}) {
		t.Fatalf("%v: %s", err, answer)
	}
	audit, err := os.ReadFile(r.AuditPath)
	if err != nil || len(audit) < 300000 {
		t.Errorf("the audit holds %d bytes, %v", len(audit), err)
	}
	if s := b.call(t.Context(), t, agent.StatusTool, `{"taskId": "big"}`); !strings.Contains(s, `"truncated"`) {
		t.Error(s)
	}
}

func TestBadConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte(`{"runner": {"timeoutSeconds": "120"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{Environ: map[string]string{"CONDUIT_TOOLSETS": agent.Toolset, "CONDUIT_LOG_FILE_PATH": "NONE", "MCP_CONDUIT_CONFIG": file}})
	a.Close()
	if code, message := fault.Of(err); code != fault.ConfigInvalid || !strings.Contains(message, "/runner/timeoutSeconds: must be a number, not a string") {
		t.Errorf("%s: %s", code, message)
	}
}

func TestWarm(t *testing.T) {
	checked := filepath.Join(t.TempDir(), "checked")
	b := newBench(t, `{"providers": {"fake": {"binary": "$FAKE", "inputMode": "stdin", "args": [], "healthCheck": {"timeoutMs": 3600000, "versionArgs": ["write `+filepath.ToSlash(checked)+` x", "hang"]}}}}`, nil)
	b.app.Env.Listed() // returns, although the check does not
	b.app.Env.Listed()
	agenttest.WaitFor(t, checked) // the check ends with the server
}

// TestRecordsAreNobodysBusiness: the records of tasks are denied to every path
// parameter.
func TestRecordsAreNobodysBusiness(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // elsewhere they have another place
	}
	b := newBench(t, `{"providers": {"fake": {"binary": "$FAKE", "inputMode": "stdin", "args": ["stdin", "out x"]}}}`, nil)
	b.call(t.Context(), t, agent.RunTool, `{"provider": "fake", "instructions": "x", "taskId": "private"}`)
	home := os.Getenv("HOME")
	found, err := filepath.Glob(filepath.Join(home, ".local", "state", "conduit-mcp", "agent", "tasks", "*", "private.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("records %q, %v", found, err)
	}
	a, err := app.New(app.Options{Environ: map[string]string{"CONDUIT_ALLOWED_PATHS": home, "CONDUIT_PROJECT_ROOT": home, "CONDUIT_TOOLSETS": agent.Toolset,
		"CONDUIT_LOG_FILE_PATH": "NONE", "PATH": os.Getenv("PATH"), "HOME": home}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	res, err := a.Call(t.Context(), agent.ListTool, json.RawMessage(`{"cwd": "`+filepath.Dir(found[0])+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "ERR_FS_ACCESS_DENIED") {
		t.Error(text)
	}
}
