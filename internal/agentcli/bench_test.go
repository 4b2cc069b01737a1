package agentcli_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("AGENTCLI_TEST_SERVER"); dir != "" {
		serveUntilKilled(dir)
		return
	}
	os.Exit(agenttest.Main(m))
}

// A bench is an engine over a scratch directory.
type bench struct {
	*agentcli.Engine
	dir  string
	cwd  place.Place
	conf *config.Config
	env  map[string]string
}

// newBench makes an engine whose providers, of the given output formats, run
// the fake agent with steps; set adjusts the configuration.
func newBench(t testing.TB, set func(*config.Config)) *bench {
	t.Helper()
	return benchWith(t, set, nil)
}

// benchWith is newBench with other services.
func benchWith(t testing.TB, set func(*config.Config), adjust func(*agentcli.Services)) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return benchOver(t, dir, set, adjust)
}

// benchIn is an engine over dir, such as another server has.
func benchIn(t testing.TB, dir string, set func(*config.Config)) *bench {
	t.Helper()
	return benchOver(t, dir, set, nil)
}

func benchOver(t testing.TB, dir string, set func(*config.Config), adjust func(*agentcli.Services)) *bench {
	t.Helper()
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Home: dir, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: dir, conf: config.Default(), env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}}
	if b.cwd, err = r.Resolve(dir); err != nil {
		t.Fatal(err)
	}
	b.conf.Runner.Retry.DelaySeconds = 0.01
	if set != nil {
		set(b.conf)
	}
	s := services(dir)
	s.Lookup = func(k string) (string, bool) { v, ok := b.env[k]; return v, ok }
	if adjust != nil {
		adjust(&s)
	}
	b.Engine = agentcli.New(b.conf, s)
	t.Cleanup(func() { b.Close() })
	return b
}

func services(dir string) agentcli.Services {
	return agentcli.Services{Log: slog.New(slog.DiscardHandler), Now: time.Now, Lookup: os.LookupEnv, Places: []string{dir}, State: stateOf(dir), Words: someWords}
}

// someWords are words that only these tests speak, but for those whose places
// they look at.
var someWords = agentcli.Words{Health: "<health>", Cancel: "task_cancel", List: "<list>", Wait: "<wait>", Instructions: "<instructions>", Test: "<test>",
	Allowlist: "<allowlist>", Worktree: "<worktree>", Env: "<env>", Cwd: "<cwd>", TaskID: "<id>", Cursor: "<cursor>"}

// plays has provider id run the steps.
func plays(id, format string, steps ...string) func(*config.Config) {
	return func(c *config.Config) {
		none, model := "", "--model"
		c.Providers[id] = config.Provider{Type: config.JSONCLI, Binary: agenttest.Fake, InputMode: config.Stdin, Args: steps, InputFlag: &none, ModelFlag: &model,
			OutputFormat: format, Permissions: "edits",
			HealthCheck: config.HealthCheck{VersionArgs: []string{"--version"}, AuthOutputMode: config.AuthText, TimeoutMs: 5000, SuccessExitCodes: []int{0}}}
	}
}

func both(fs ...func(*config.Config)) func(*config.Config) {
	return func(c *config.Config) {
		for _, f := range fs {
			f(c)
		}
	}
}

func (b *bench) request() agentcli.Request {
	return agentcli.Request{Provider: "fake", Instructions: "Write a note.", Cwd: b.cwd}
}

// do runs a task of provider fake; set adjusts the request.
func (b *bench) do(t testing.TB, set func(*agentcli.Request)) *agentcli.Result {
	t.Helper()
	r := b.request()
	if set != nil {
		set(&r)
	}
	res, err := b.Run(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// write makes a file below the bench.
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

func (b *bench) read(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// git runs git in the bench.
func (b *bench) git(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// repository makes the bench a repository with one commit of its files.
func (b *bench) repository(t testing.TB) {
	t.Helper()
	b.git(t, "init", "-q")
	b.write(t, "README.md", "hello\n")
	b.git(t, "add", "-A")
	b.git(t, "commit", "-q", "-m", "first")
}

// state is where the records of tasks are kept.
func (b *bench) state() string { return stateOf(b.dir) }

func stateOf(dir string) string {
	return filepath.Join(os.Getenv("HOME"), "state", strings.NewReplacer("/", "_", "\\", "_", ":", "_").Replace(dir))
}

// records returns the content of every file below .mcp-conduit and of the
// records of tasks, by name.
func (b *bench) records(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, dir := range []string{filepath.Join(b.dir, ".mcp-conduit"), b.state()} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(name)
			files[name] = string(content)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return files
}

func pretty(v any) string {
	b, _ := json.MarshalIndent(v, "", "  ")
	return string(b)
}
