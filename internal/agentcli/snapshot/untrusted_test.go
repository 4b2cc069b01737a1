package snapshot_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
)

// TestNothingOfTheRepositoryRuns: whatever a repository's own configuration
// names as a program, it is not started by looking at the repository.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the traps are shell commands
	}
	ran := filepath.Join(t.TempDir(), "ran")
	trap := func(name string) string { return "echo " + name + " >> " + ran + "; cat" }
	inner := newTree(t, map[string]string{"s": "s\n", ".gitattributes": "* filter=inner\n"}).commit()
	x := newTree(t, map[string]string{"a": "one\n", ".gitattributes": "* filter=x diff=x merge=x\nb filter=glob.al\n"}).commit()
	x.git("submodule", "--quiet", "add", inner.dir, "sub")
	x.git("commit", "-qm", "second")
	file := filepath.Join(t.TempDir(), "included")
	if err := os.WriteFile(file, []byte("[filter \"inc\"]\n\tclean = \""+trap("included")+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "trap.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho script $0 >> "+ran+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{x.dir, filepath.Join(x.dir, "sub")} {
		y := tree{t, dir}
		for key, value := range map[string]string{
			"filter.x.clean": trap("clean"), "filter.x.smudge": trap("smudge"), "filter.x.required": "true", "filter.p.process": trap("process"),
			"filter.inner.clean": trap("submodule clean"), "filter.glob.al.clean": trap("local for global"),
			"core.fsmonitor": script, "core.hooksPath": filepath.Join(x.dir, ".git", "hooks"), "diff.external": script, "diff.x.command": script, "diff.x.textconv": script,
			"merge.x.driver": script, "commit.gpgSign": "true", "gpg.program": script, "core.pager": script, "core.editor": script, "include.path": file,
			"core.sshCommand": script, "protocol.ext.allow": "always", "submodule.sub.ignore": "none", "diff.ignoreSubmodules": "none", "submodule.recurse": "true", "pager.status": "true",
			"alias.status": "!" + script, "alias.add": "!" + script,
		} {
			y.git("config", key, value)
		}
	}
	y := tree{t, filepath.Join(x.dir, ".git", "hooks")}
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit", "fsmonitor-watchman", "applypatch-msg"} {
		y.write(hook, "#!/bin/sh\necho hook "+hook+" >> "+ran+"\n")
		if err := os.Chmod(filepath.Join(y.dir, hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Remove(ran)
	x.write(".gitattributes", "* filter=x diff=x merge=x\np filter=p\ni filter=inc\nb filter=glob.al\n")

	g := snapshot.Open(t.Context(), x.dir, snapshot.Options{}).(*snapshot.Git)
	defer g.Close()
	check := func(when string) {
		t.Helper()
		if b, err := os.ReadFile(ran); err == nil {
			t.Errorf("%s ran:\n%s", when, b)
			_ = os.Remove(ran)
		}
	}
	if _, err := g.Status(t.Context()); err != nil {
		t.Error(err)
	}
	check("status")
	committed, err := g.Committed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := take(t, g)
	check("the first snapshot")
	for _, name := range []string{"a", "b", "p", "i", "sub/s"} {
		x.write(name, "two\n")
	}
	after := take(t, g)
	check("the second snapshot")
	d, err := g.Compare(t.Context(), before, after)
	if err != nil || !strings.Contains(d.Diff, "+two") || !slices.Contains(list(d), "modified a") {
		t.Errorf("%v %q\n%s", err, list(d), d.Diff)
	}
	check("comparing")
	w, err := g.Worktree(t.Context(), before, filepath.Join(t.TempDir(), "w"))
	if err != nil {
		t.Fatal(err)
	}
	check("making a working tree")
	if got := (tree{t, w.Dir}).read("a"); got != "one\n" {
		t.Errorf("in the working tree a is %q", got)
	}
	if err := g.SetRef(t.Context(), after, snapshot.Ref("x")); err != nil {
		t.Error(err)
	}
	if err := w.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	check("removing it")
	x.write("a", "one\n")
	for _, name := range []string{"b", "p", "i"} {
		x.remove(name)
	}
	x.write("sub/s", "s\n")
	if err := g.Apply(t.Context(), before, after); err != nil || x.read("a") != "two\n" {
		t.Errorf("%v: %q", err, x.read("a"))
	}
	check("applying")
	if err := g.DeleteRef(t.Context(), snapshot.Ref("x")); err != nil {
		t.Error(err)
	}
	if _, err := g.Compare(t.Context(), committed, after); err != nil {
		t.Error(err)
	}
	check("the end")
}

// TestTheUsersOwnFilters: those of the user's configuration are the user's
// wish, also where the repository names programs of the same name.
func TestTheUsersOwnFilters(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	home := tree{t, os.Getenv("HOME")}
	home.write(".gitconfig", "[filter \"up\"]\n\tclean = tr a-z A-Z\n")
	defer home.remove(".gitconfig")
	x := newTree(t, map[string]string{"a": "one\n", ".gitattributes": "* filter=up\n"}).commit()
	x.git("config", "filter.up.clean", "tr a-z b-y")
	_, d := x.changes(snapshot.Options{}, func() { x.write("a", "two\n") })
	if !strings.Contains(d.Diff, "+TWO\n") {
		t.Errorf("the diff is\n%s", d.Diff)
	}
}

// TestTheRepositoryStaysTheSame: an agent that points the repository elsewhere
// has nothing of that place told.
func TestTheRepositoryStaysTheSame(t *testing.T) {
	other := newTree(t, map[string]string{"secret": "hidden words\n"}).commit()
	for name, lead := range map[string]func(x tree){
		"core.worktree": func(x tree) { x.git("config", "core.worktree", other.dir) },
		"another .git": func(x tree) {
			if err := os.RemoveAll(filepath.Join(x.dir, ".git")); err != nil {
				t.Fatal(err)
			}
			x.write(".git", "gitdir: "+filepath.Join(other.dir, ".git")+"\n")
		},
	} {
		x := newTree(t, map[string]string{"a": "one\n"}).commit()
		s := snapshot.Open(t.Context(), x.dir, snapshot.Options{})
		before := take(t, s)
		lead(x)
		after, err := s.Take(t.Context())
		var d snapshot.Difference
		if err == nil {
			d, err = s.Compare(t.Context(), before, after)
		}
		if strings.Contains(d.Diff, "hidden") {
			t.Errorf("%s: %v\n%s", name, err, d.Diff)
		}
		s.Close()
		if name != "core.worktree" {
			continue
		}
		s = snapshot.Open(t.Context(), x.dir, snapshot.Options{})
		if s.Top() != x.dir {
			t.Errorf("opened, it is %s", s.Top())
		}
		s.Close()
	}
}
