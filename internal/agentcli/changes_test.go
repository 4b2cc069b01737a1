package agentcli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
)

func TestChangesInADirtyTree(t *testing.T) {
	b := newBench(t, both(plays("fake", "auto", "stdin", "write mine.txt agent", "write sub/new.txt new", "binary pic.bin", "remove gone.txt", "out x"),
		func(c *config.Config) { c.Policy.TrackBinaryPaths = true }))
	b.write(t, "mine.txt", "committed\n")
	b.write(t, "gone.txt", "bye\n")
	b.write(t, ".gitignore", "*.tmp\n")
	b.repository(t)
	b.write(t, "mine.txt", "mine\n")      // changed and not committed
	b.write(t, "untracked.txt", "here\n") // new and not added
	b.write(t, "staged.txt", "staged\n")
	b.git(t, "add", "staged.txt")
	index, status := b.read(t, ".git/index"), b.git(t, "status", "--porcelain")
	r := b.do(t, func(r *agentcli.Request) { r.Allowlist = []string{"sub", "*.txt"} })
	if !r.OK || !slices.Equal(r.Result.Paths, []string{"gone.txt", "mine.txt", "pic.bin", "sub/new.txt"}) {
		t.Errorf("got %s", pretty(r))
	}
	if strings.Contains(r.Result.Diff, "committed") || strings.Contains(r.Result.Diff, "here") || !strings.Contains(r.Result.Diff, "-mine\n+agent\n") || strings.Contains(r.Result.Diff, "Binary") {
		t.Errorf("the diff is\n%s", r.Result.Diff)
	}
	if r.Git.Baseline.Status != status || !slices.Equal(r.Git.Baseline.Paths, []string{"mine.txt", "staged.txt", "untracked.txt"}) {
		t.Errorf("the baseline is %s", pretty(r.Git.Baseline))
	}
	if !slices.Equal(r.Git.Post.BinaryPaths, []string{"pic.bin"}) || !slices.Contains(r.Git.Post.Paths, "untracked.txt") {
		t.Errorf("afterwards %s", pretty(r.Git.Post))
	}
	var codes []string
	for _, w := range r.PolicyWarnings {
		codes = append(codes, w.Code+" "+strings.Fields(w.Message)[0])
	}
	if !slices.Equal(codes, []string{"POLICY_ALLOWLIST_DIRTY_BASELINE uncommitted", "POLICY_ALLOWLIST_VIOLATION pic.bin"}) {
		t.Errorf("warnings %q", codes)
	}
	if b.read(t, ".git/index") != index {
		t.Error("the repository's index was changed")
	}
	if out := b.git(t, "status", "--porcelain"); strings.Contains(out, ".mcp-conduit") {
		t.Errorf("records show in git status:\n%s", out)
	}
	if refs := b.git(t, "for-each-ref", "refs/conduit"); refs != "" {
		t.Errorf("references are left:\n%s", refs)
	}
}

func TestRepositoryKinds(t *testing.T) {
	t.Run("without a commit", func(t *testing.T) {
		b := newBench(t, plays("fake", "auto", "stdin", "write note.txt hi"))
		b.git(t, "init", "-q")
		b.write(t, "old.txt", "old\n")
		if r := b.do(t, nil); !r.OK || !slices.Equal(r.Result.Paths, []string{"note.txt"}) || !slices.Equal(r.Git.Post.Paths, []string{"note.txt", "old.txt"}) {
			t.Errorf("got %s", pretty(r))
		}
	})
	t.Run("below its top", func(t *testing.T) {
		b := newBench(t, plays("fake", "auto", "stdin", "write ../up.txt hi", "write here.txt hi"))
		b.repository(t)
		b.write(t, "deep/x", "")
		r := b.do(t, func(r *agentcli.Request) {
			var err error
			if r.Cwd, err = b.cwd.Guard.Resolve(filepath.Join(b.dir, "deep")); err != nil {
				t.Fatal(err)
			}
			r.Allowlist = []string{"**"}
		})
		if !r.OK || !slices.Equal(r.Result.Paths, []string{"../up.txt", "here.txt"}) || len(r.PolicyWarnings) != 2 {
			t.Errorf("got %s", pretty(r))
		}
	})
	t.Run("above what is allowed", func(t *testing.T) {
		outer := newBench(t, nil)
		outer.repository(t)
		outer.write(t, "in/x", "")
		b := benchIn(t, filepath.Join(outer.dir, "in"), plays("fake", "auto", "stdin", "write ../secret.txt hi", "write here.txt hi"))
		if r := b.do(t, nil); !r.OK || !slices.Equal(r.Result.Paths, []string{"here.txt"}) || strings.Contains(pretty(r.Git), "secret") {
			t.Errorf("got %s", pretty(r))
		}
	})
	t.Run("holding one without a commit", func(t *testing.T) {
		b := newBench(t, plays("fake", "auto", "stdin", "write inner/note.txt hi"))
		b.repository(t)
		b.write(t, "inner/x", "")
		(&bench{dir: filepath.Join(b.dir, "inner")}).git(t, "init", "-q")
		if r := b.do(t, nil); !r.OK || !slices.Equal(r.Result.Paths, []string{"inner/note.txt"}) {
			t.Errorf("got %s", pretty(r))
		}
	})
	t.Run("an agent that commits", func(t *testing.T) {
		b := newBench(t, plays("fake", "auto", "stdin", "write note.txt hi"))
		b.repository(t)
		test := "git add -A && git -c user.name=a -c user.email=a@example.org commit -qm done"
		r := b.do(t, func(r *agentcli.Request) { r.TestCommand = &test })
		if !r.OK || !slices.Equal(r.Result.Paths, []string{"note.txt"}) || b.git(t, "status", "--porcelain") != "" {
			t.Errorf("got %s", pretty(r))
		}
	})
}

func TestPlainDirectory(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "write a.txt two", "write new.txt new", "remove b.txt", "binary pic.bin", "write repo/in.txt x"))
	b.write(t, "a.txt", "one\n")
	b.write(t, "b.txt", "bye\n")
	b.write(t, "pic.bin", "\x00one")
	b.write(t, "repo/kept", "")
	(&bench{dir: filepath.Join(b.dir, "repo")}).git(t, "init", "-q")
	r := b.do(t, nil)
	want := "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n--- /dev/null\n+++ b/repo/in.txt\n@@ -0,0 +1 @@\n+x\n"
	if !r.OK || !slices.Equal(r.Result.Paths, []string{"a.txt", "b.txt", "new.txt", "pic.bin", "repo/in.txt"}) || r.Result.Diff != want {
		t.Errorf("got %s\n%s", pretty(r), r.Result.Diff)
	}
	if again := b.do(t, nil); !again.OK && len(again.Result.Paths) != 0 { // b.txt is gone, so the agent fails
		t.Errorf("the second run changed %v", again.Result.Paths)
	}
}

func TestWorktree(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "write README.md changed", "write new.txt new", "binary pic.bin"))
	b.repository(t)
	b.write(t, "untracked.txt", "here\n")
	test := "test -f untracked.txt"
	run := func(id string) *agentcli.Result {
		return b.do(t, func(r *agentcli.Request) { r.TaskID, r.Worktree, r.TestCommand = id, true, &test })
	}
	r := run("w")
	if !r.OK || !slices.Equal(r.Result.Paths, []string{"README.md", "new.txt", "pic.bin"}) || r.Worktree == nil || r.Worktree.Ref != "refs/conduit/w" || !r.Test.OK {
		t.Fatalf("got %s", pretty(r))
	}
	if b.read(t, "README.md") != "hello\n" {
		t.Error("the working tree was changed")
	}
	if out := b.git(t, "worktree", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("working trees are left:\n%s", out)
	}
	b.write(t, "other.txt", "by hand\n")
	applied, err := b.Apply(t.Context(), "w", b.cwd)
	if err != nil || !slices.Equal(applied.Paths, []string{"README.md", "new.txt", "pic.bin"}) || b.read(t, "README.md") != "changed\n" || len(b.read(t, "pic.bin")) != 6 {
		t.Fatalf("applied %v, %v", applied, err)
	}
	if refs := b.git(t, "for-each-ref", "refs/conduit"); refs != "" {
		t.Errorf("references are left:\n%s", refs)
	}
	if _, err := b.Apply(t.Context(), "w", b.cwd); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("applied twice: %v", err)
	}

	b.write(t, "README.md", "hello\n")
	if err := os.Remove(filepath.Join(b.dir, "new.txt")); err != nil {
		t.Fatal(err)
	}
	if r := run("conflict"); !r.OK {
		t.Fatal(pretty(r))
	}
	b.write(t, "README.md", "edited meanwhile\n")
	if _, err := b.Apply(t.Context(), "conflict", b.cwd); err == nil || !strings.Contains(err.Error(), "none were made") || !strings.Contains(err.Error(), "README.md") {
		t.Errorf("a conflict gave %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "new.txt")); err == nil || b.read(t, "README.md") != "edited meanwhile\n" {
		t.Error("half of the changes were made")
	}
}

func TestWorktreesSideBySide(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "tick 10", "write note.txt hi"))
	b.repository(t)
	for _, id := range []string{"a", "b", "c"} {
		r := b.request()
		r.TaskID, r.Worktree = id, true
		if _, err := b.Start(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		if s, err := b.Read(t.Context(), id, "", forever, b.cwd); err != nil || s.Status != task.Succeeded || s.Worktree.Ref == "" {
			t.Errorf("%s: %v %s", id, err, pretty(s))
		}
	}
}

func TestNoSecretShows(t *testing.T) {
	const provider, mine, long = "pr0vider-secret", "s3cret\"quoted\\value", "-----BEGIN KEY-----\nabcdefghijklmnop\n-----END KEY-----"
	b := newBench(t, both(plays("fake", "claude-stream", "echo", "environ", "env API_TOKEN",
		`out {"type":"assistant","session_id":"x","message":{"content":[{"type":"text","text":"it is s3cret\"quoted\\value"}]}}`, "write leak.txt pr0vider-secret", "err pr0vider-secret s3cret\"quoted\\value", "exit 1"),
		func(c *config.Config) {
			p := c.Providers["fake"]
			p.Env, p.EnvAllow = map[string]string{"PROVIDER_KEY": provider}, []string{"ALLOWED_KEY"}
			c.Providers["fake"] = p
		}))
	b.env["ALLOWED_KEY"], b.env["HIDDEN_KEY"] = "all0wed-secret", "not-passed-on"
	b.repository(t)
	var events strings.Builder
	r := b.request()
	r.Instructions = "The token is " + mine + "."
	r.Env = map[string]string{"API_TOKEN": mine, "PEM_KEY": long}
	res, err := b.Run(t.Context(), r, func(ev task.Event) { events.WriteString(ev.Text + "\n") })
	if err != nil {
		t.Fatal(err)
	}
	all := b.records(t)
	all["result"], all["events"] = res.Result.Diff+res.Runner.Stdout+res.Runner.Stderr+res.Prompt+strings.Join(res.Errors, "\n")+res.Result.Raw+res.Result.Summary, events.String()
	status, err := b.Read(t.Context(), res.TaskID, "", 0, b.cwd)
	if err != nil {
		t.Fatal(err)
	}
	all["status"] = pretty(status)
	quoted, _ := json.Marshal(mine)
	for name, text := range all {
		for _, secret := range []string{provider, mine, strings.Trim(string(quoted), `"`), "all0wed-secret", "not-passed-on", "abcdefghijklmnop"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q", name, secret)
			}
		}
	}
	if !strings.Contains(res.Runner.Stdout, "PROVIDER_KEY=[hidden]") || !strings.Contains(res.Runner.Stdout, "CONDUIT_AGENT_DEPTH=1") || strings.Contains(res.Runner.Stdout, "HIDDEN_KEY") {
		t.Errorf("the environment of the agent is\n%s", res.Runner.Stdout)
	}
	if len(res.PolicyWarnings) != 1 || res.PolicyWarnings[0].Code != "POLICY_SECRET_IN_DIFF" {
		t.Errorf("warnings: %s", pretty(res.PolicyWarnings))
	}
	for name := range b.records(t) {
		if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, fi.Mode(), err)
		}
	}
}

func TestNoRecordsWhereTheyAreOff(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "out x"))
	no := false
	r := b.do(t, func(r *agentcli.Request) { r.AuditEnabled, r.LogsEnabled = &no, &no })
	if !r.OK || r.AuditPath != "" || r.ExecutionLog != nil {
		t.Errorf("got %s", pretty(r))
	}
	for name := range b.records(t) {
		if !strings.HasPrefix(name, b.state()) && filepath.Base(name) != ".gitignore" {
			t.Errorf("%s was written", name)
		}
	}
}

func TestAnAgentCannotMoveTheRecords(t *testing.T) {
	outside := t.TempDir()
	b := newBench(t, plays("fake", "auto", "stdin", "out x", "write x y"))
	test := "mv .mcp-conduit/audit .mcp-conduit/was && ln -s " + outside + " .mcp-conduit/audit"
	if r := b.do(t, func(r *agentcli.Request) { r.TestCommand = &test }); !r.OK {
		t.Fatal(pretty(r))
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("the audit went to %v, %v", entries, err)
	}
	if entries, err := os.ReadDir(filepath.Join(b.dir, ".mcp-conduit", "was")); err != nil || len(entries) != 1 {
		t.Errorf("the audit is not where it was: %v, %v", entries, err)
	}
	r := b.request()
	if _, err := b.Run(t.Context(), r, nil); err == nil {
		t.Error("records are written through a link that leads outside")
	}
}
