package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/cmd"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
	_ "github.com/conduit-mcp/conduit-mcp/ops/agent"
)

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m)) }

// A terminal runs commands in a scratch directory.
type terminal struct {
	t     *testing.T
	dir   string
	stdin string
}

func newTerminal(t *testing.T, conf string) *terminal {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	conf = strings.ReplaceAll(conf, "$FAKE", agenttest.Fake)
	if err := os.WriteFile(filepath.Join(dir, "mcp-conduit.config.json"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return &terminal{t: t, dir: dir}
}

func (x *terminal) run(args ...string) (code int, stdout, stderr string) {
	x.t.Helper()
	var out, errs bytes.Buffer
	code = cmd.Run(append([]string{"agent"}, args...), map[string]string{
		"CONDUIT_ALLOWED_PATHS": x.dir, "CONDUIT_PROJECT_ROOT": x.dir, "PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"),
	}, strings.NewReader(x.stdin), &out, &errs)
	if found := toolWords.FindString(errs.String()); found != "" {
		x.t.Errorf("%q speaks of %q as tools do: %s", args, found, errs.String())
	}
	return code, out.String(), errs.String()
}

// toolWords are those that messages have for models.
var toolWords = regexp.MustCompile(`run_task|providers_health|task_[a-z]+|testCommand|taskId|(^|\s)cwd\b|\ballowlist entry|with worktree|^env:`)

// What to do next is told in words that the command line takes.
func TestWordsOfTheCommandLine(t *testing.T) {
	x := newTerminal(t, conf)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"show", "none"}, "agent tasks tells the known ones, and --cwd names the directory"},
		{[]string{"run", "--provider", "fake", "--id", "..", "x"}, `--id ".." must be`},
		{[]string{"run", "--provider", "fake", "--id", "a", "x"}, "succeeded"},
		{[]string{"run", "--provider", "fake", "--id", "a", "x"}, "choose another --id"},
		{[]string{"apply", "a"}, "did not run with --worktree"},
		{[]string{"run", "--provider", "fake", "--env", "=1", "x"}, `--env: "" is no name`},
		{[]string{"run", "--provider", "fake", "--worktree", "x"}, "--worktree needs a git repository"},
		{[]string{"run", "--provider", "fake", "--allow", "/x", "x"}, `--allow entry "/x" is absolute`},
		{[]string{"run", "--provider", "fake", "--test", "", "x"}, "--test is empty"},
		{[]string{"run", "--provider", "fake", ""}, "INSTRUCTIONS is empty"},
	} {
		if _, out, errs := x.run(c.args...); !strings.Contains(out+errs, c.want) {
			t.Errorf("%q: %s%s; want %q", c.args, out, errs, c.want)
		}
	}
}

const conf = `{"providers": {"fake": {"binary": "$FAKE", "inputMode": "stdin", "outputFormat": "codex-jsonl", "args": ["stdin", "say codex", "write note.txt hi"]},
	"bad": {"binary": "$FAKE", "inputMode": "stdin", "args": ["err it broke", "exit 3"]}}}`

func TestRun(t *testing.T) {
	x := newTerminal(t, conf)
	code, out, errs := x.run("run", "--provider", "fake", "Write a note.", "--id", "a", "--allow", "*.md", "--test", "true", "--env", "A=1")
	if code != 0 || out != "Wrote the note.\n\n--- /dev/null\n+++ b/note.txt\n@@ -0,0 +1 @@\n+hi\n" {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	for _, want := range []string{"session  x-1\n", "text     Wrote the note.\n", "warning  POLICY_ALLOWLIST_VIOLATION", "succeeded  task a, 1 files changed; audit " + x.dir} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr lacks %q:\n%s", want, errs)
		}
	}
	if code, out, errs = x.run("run", "--provider", "bad", "--json", "x"); code != 1 || !strings.Contains(out, `"class":"exit_code"`) {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	x.stdin = "From a file."
	if code, out, errs = x.run("run", "--provider", "fake", "--dry-run", "-"); code != 0 || !strings.Contains(out, "# 2.0 TASK\nFrom a file.\n") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	if code, out, _ = x.run("tasks"); code != 0 || strings.Count(out, "\n") != 2 || !strings.Contains(out, "succeeded    fake        a  "+x.dir) {
		t.Errorf("%d\n%s", code, out)
	}
	if code, out, errs = x.run("show", "--wait", "a"); code != 0 || !strings.HasPrefix(out, "Wrote the note.\n") || !strings.Contains(errs, "edit add note.txt") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	if code, out, _ = x.run("cancel", "a"); code != 0 || out != "succeeded\n" {
		t.Errorf("%d\n%s", code, out)
	}
	code, out, _ = x.run("tasks", "--json")
	var list []agentcli.Status
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list) != 2 {
		t.Errorf("%d %v\n%s", code, err, out)
	}
}

func TestApply(t *testing.T) {
	x := newTerminal(t, conf)
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = x.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	code, _, errs := x.run("run", "--provider", "fake", "--id", "w", "--worktree", "x")
	if code != 0 || !strings.Contains(errs, "in refs/conduit/w; conduit-mcp agent apply w takes them over") {
		t.Errorf("%d\n%s", code, errs)
	}
	if code, out, errs := x.run("apply", "w"); code != 0 || out != "note.txt\n" {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(x.dir, "note.txt")); err != nil {
		t.Error(err)
	}
}

func TestHealth(t *testing.T) {
	x := newTerminal(t, conf)
	if code, out, _ := x.run("health", "fake"); code != 0 || out != "fake         ok  fakecli 1.2.3\n" {
		t.Errorf("%d\n%s", code, out)
	}
	if code, out, _ := x.run("health", "--json", "none"); code != 1 || !strings.Contains(out, `"reason":"unknown provider"`) {
		t.Errorf("%d\n%s", code, out)
	}
}

func TestMisuse(t *testing.T) {
	x := newTerminal(t, conf)
	for _, args := range [][]string{{"fly"}, {"run"}, {"run", "--fast", "x"}, {"run", "a", "b"}, {"show"}, {"tasks", "x"}, {"run", "--provider", "fake", "--env", "A", "x"}} {
		if code, out, errs := x.run(args...); code != 2 || out != "" || !strings.Contains(errs, "usage: conduit-mcp agent") {
			t.Errorf("%q: %d\n%s\n%s", args, code, out, errs)
		}
	}
	for _, args := range [][]string{{"run", "--provider", "none", "x"}, {"run", "--provider", "fake", "--cwd", "/", "x"}, {"show", "none"}, {"apply", "none"}, {"cancel", "none"}, {"tasks", "--cwd", "/"}} {
		if code, out, errs := x.run(args...); code != 1 || out != "" || !strings.HasPrefix(errs, "conduit-mcp: ERR_") {
			t.Errorf("%q: %d\n%s\n%s", args, code, out, errs)
		}
	}
	x = newTerminal(t, `{"polcy": {}}`)
	if code, _, errs := x.run("health"); code != 1 || !strings.Contains(errs, "ERR_CONFIG_INVALID") || !strings.Contains(errs, "/polcy: unknown key") {
		t.Errorf("%d\n%s", code, errs)
	}
}
