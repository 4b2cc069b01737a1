package snapshot_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "snapshot-test-")
	if err != nil {
		panic(err)
	}
	os.Setenv("HOME", home) // no configuration of the user's counts
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Setenv("TMPDIR", home) // what is left there is ours
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// A tree is a directory of files.
type tree struct {
	testing.TB
	dir string
}

func newTree(t testing.TB, files map[string]string) tree {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := tree{t, dir}
	for name, content := range files {
		x.write(name, content)
	}
	return x
}

func (x tree) write(name, content string) {
	x.Helper()
	full := filepath.Join(x.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		x.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		x.Fatal(err)
	}
}

func (x tree) read(name string) string {
	b, err := os.ReadFile(filepath.Join(x.dir, name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (x tree) remove(name string) {
	x.Helper()
	if err := os.Remove(filepath.Join(x.dir, name)); err != nil {
		x.Fatal(err)
	}
}

func (x tree) git(args ...string) string {
	x.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = x.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// commit makes the tree a repository with one commit.
func (x tree) commit() tree {
	x.Helper()
	x.git("init", "-q")
	x.git("add", "-A")
	x.git("commit", "-q", "-m", "first")
	return x
}

// changes runs f between two snapshots and tells what they differ in.
func (x tree) changes(o snapshot.Options, f func()) ([]string, snapshot.Difference) {
	x.Helper()
	s := snapshot.Open(x.Context(), x.dir, o)
	defer s.Close()
	return compared(x, s, f)
}

func compared(x tree, s snapshot.Space, f func()) ([]string, snapshot.Difference) {
	x.Helper()
	before := take(x, s)
	f()
	after := take(x, s)
	d, err := s.Compare(x.Context(), before, after)
	if err != nil {
		x.Fatal(err)
	}
	return list(d), d
}

func take(x testing.TB, s snapshot.Space) snapshot.Snapshot {
	x.Helper()
	got, err := s.Take(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	return got
}

// list words changes, such as "modified a" or "added binary b".
func list(d snapshot.Difference) []string {
	var words []string
	for _, c := range d.Changes {
		kind := ""
		if c.Binary {
			kind = "binary "
		}
		words = append(words, c.Status+" "+kind+c.Path)
	}
	return words
}

// TestChanges: what is told is the same of a repository and of a directory that
// is none.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(x tree)
		want []string
		diff []string // lines of it
	}{
		{"nothing", func(tree) {}, nil, nil},
		{"an edit", func(x tree) { x.write("a", "two\n") }, []string{"modified a"}, []string{"-one", "+two"}},
		{"the same again", func(x tree) { x.write("a", "one\n") }, nil, nil},
		{"a file more, in a directory more", func(x tree) { x.write("new/er/b", "b\n") }, []string{"added new/er/b"}, []string{"+b"}},
		{"an empty one", func(x tree) { x.write("empty", "") }, []string{"added empty"}, nil},
		{"a file less", func(x tree) { x.remove("sub/c") }, []string{"deleted sub/c"}, []string{"-c"}},
		{"a name with blanks and quotes", func(x tree) { x.write("ä \"b\"\tc", "x\n") }, []string{"added ä \"b\"\tc"}, []string{"+x"}},
		{"bytes", func(x tree) { x.write("pic", "\x00\x01") }, []string{"added binary pic"}, nil},
		{"other bytes", func(x tree) { x.write("bytes", "\x00b") }, []string{"modified binary bytes"}, nil},
		{"a mode", func(x tree) { _ = os.Chmod(filepath.Join(x.dir, "a"), 0o755) }, []string{"modified a"}, nil},
		{"a link", func(x tree) { _ = os.Symlink("a", filepath.Join(x.dir, "l")) }, []string{"added l"}, nil},
		{"a file for a link", func(x tree) { x.remove("link"); x.write("link", "a\n") }, []string{"modified link"}, nil},
		{"a directory for a file", func(x tree) { x.remove("a"); x.write("a/b", "b\n") }, []string{"deleted a", "added a/b"}, nil},
		{"several", func(x tree) { x.write("a", "two\n"); x.write("b", "b\n"); x.remove("sub/c") }, []string{"modified a", "added b", "deleted sub/c"}, []string{"-one", "+two", "+b", "-c"}},
	} {
		for _, repository := range []bool{true, false} {
			x := newTree(t, map[string]string{"a": "one\n", "sub/c": "c\n", "bytes": "\x00a"})
			if err := os.Symlink("a", filepath.Join(x.dir, "link")); err != nil {
				t.Fatal(err)
			}
			if repository {
				x.commit()
				x.write("untracked", "u\n")
				x.write("sub/c", "c\n")
			}
			got, d := x.changes(snapshot.Options{}, func() { c.do(x) })
			if !slices.Equal(got, c.want) {
				t.Errorf("%s (repository: %t): %q, not %q\n%s", c.name, repository, got, c.want, d.Diff)
			}
			for _, line := range c.diff {
				if !strings.Contains(d.Diff, "\n"+line+"\n") {
					t.Errorf("%s (repository: %t): no line %q in\n%s", c.name, repository, line, d.Diff)
				}
			}
			if strings.Contains(d.Diff, "Binary") || c.diff == nil && strings.Contains(d.Diff, "\n@@") && !strings.Contains(c.name, "for a") && !strings.Contains(c.name, "link") {
				t.Errorf("%s (repository: %t): the diff is\n%s", c.name, repository, d.Diff)
			}
		}
	}
}

// TestNothingOfTheRepositoryChanges: neither its index nor its references, and
// what was staged stays so.
func TestNothingOfTheRepositoryChanges(t *testing.T) {
	x := newTree(t, map[string]string{"a": "one\n"}).commit()
	x.write("staged", "s\n")
	x.git("add", "staged")
	x.write("staged", "changed since\n")
	index, refs, status := x.read(".git/index"), x.git("for-each-ref"), x.git("status", "--porcelain")
	got, _ := x.changes(snapshot.Options{}, func() { x.write("a", "two\n"); x.write("b", "b\n") })
	x.write("a", "one\n")
	x.remove("b")
	if !slices.Equal(got, []string{"modified a", "added b"}) || x.read(".git/index") != index || x.git("for-each-ref") != refs || x.git("status", "--porcelain") != status {
		t.Errorf("%q, status %s", got, x.git("status", "--porcelain"))
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "conduit-index-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("indexes are left: %q", left)
	}
}

func TestWhatCounts(t *testing.T) {
	everything := func(string) bool { return true }
	below := func(top string) func(string) bool {
		return func(dir string) bool { return strings.HasPrefix(dir, top) }
	}
	for _, c := range []struct {
		name   string
		dir    string
		within func(x tree) func(string) bool
		hide   string
		want   []string
		status string
	}{
		{"all of the repository", "", nil, "", []string{"modified a", "modified sub/c"}, " M a\n M sub/c\n"},
		{"from below its top", "sub", func(tree) func(string) bool { return everything }, "", []string{"modified ../a", "modified c"}, " M a\n M sub/c\n"},
		{"below what may be seen", "sub", func(x tree) func(string) bool { return below(filepath.Join(x.dir, "sub")) }, "", []string{"modified c"}, " M sub/c\n"},
		{"but for what is left out", "", nil, "sub", []string{"modified a"}, " M a\n"},
	} {
		x := newTree(t, map[string]string{"a": "one\n", "sub/c": "c\n"}).commit()
		o := snapshot.Options{}
		if c.within != nil {
			o.Within = c.within(x)
		}
		if c.hide != "" {
			o.Exclude = []string{filepath.Join(x.dir, c.hide)}
		}
		s := snapshot.Open(t.Context(), filepath.Join(x.dir, c.dir), o)
		got, d := compared(x, s, func() { x.write("a", "two\n"); x.write("sub/c", "d\n") })
		status, err := s.Status(t.Context())
		if !slices.Equal(got, c.want) || status != c.status || err != nil || strings.Contains(d.Diff, "a/a ") != strings.Contains(status, " a\n") {
			t.Errorf("%s: %q, status %q, %v\n%s", c.name, got, status, err, d.Diff)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBeforeTheFirstCommit(t *testing.T) {
	x := newTree(t, map[string]string{"old": "o\n"})
	x.git("init", "-q")
	s := snapshot.Open(t.Context(), x.dir, snapshot.Options{})
	defer s.Close()
	committed, err := s.Committed(t.Context())
	if err != nil || !s.Repository() {
		t.Fatal(err)
	}
	d, err := s.Compare(t.Context(), committed, take(t, s))
	if err != nil || !slices.Equal(list(d), []string{"added old"}) {
		t.Errorf("%q, %v", list(d), err)
	}
}

func TestHashes(t *testing.T) {
	big := strings.Repeat("0123456789\n", 100_000)
	x := newTree(t, map[string]string{"big": big, "gone": "g\n", "repo/.git/x": "x", ".git/kept": "x", "out/x": "x"})
	s := snapshot.Hashes(x.dir, snapshot.Options{Exclude: []string{filepath.Join(x.dir, "out")}})
	got, d := compared(x, s, func() {
		x.write("big", big+"more")
		x.remove("gone")
		x.write("repo/.git/x", "not looked at")
		x.write("repo/y", "y\n")
		x.write("out/x", "nor this")
	})
	if !slices.Equal(got, []string{"modified big", "deleted gone", "added repo/y"}) || strings.Contains(d.Diff, "0123") || !strings.Contains(d.Diff, "-g\n") {
		t.Errorf("%q\n%.500s", got, d.Diff)
	}
	if s.Repository() || s.Top() != x.dir {
		t.Errorf("%s", s.Top())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(ctx); err == nil {
		t.Error("it goes on when nobody waits any more")
	}
}

// TestWorktree: what is done in a working tree of its own is kept, and brought
// into the first one, whole or not at all.
func TestWorktree(t *testing.T) {
	x := newTree(t, map[string]string{"a": "one\n", "b": "b\n"}).commit()
	x.write("untracked", "u\n")
	g := snapshot.Open(t.Context(), x.dir, snapshot.Options{}).(*snapshot.Git)
	defer g.Close()
	before := take(t, g)
	w, err := g.Worktree(t.Context(), before, filepath.Join(t.TempDir(), "w"))
	if err != nil {
		t.Fatal(err)
	}
	in := tree{t, w.Dir}
	if in.read("untracked") != "u\n" {
		t.Error("the working tree is not in the state of the snapshot")
	}
	in.write("a", "two\n")
	in.write("bytes", "\x00\x01")
	in.remove("b")
	space := snapshot.Open(t.Context(), w.Dir, snapshot.Options{})
	after := take(t, space)
	space.Close()
	const ref = "refs/conduit/x"
	if snapshot.Ref("x") != ref {
		t.Error(snapshot.Ref("x"))
	}
	if err := g.SetRef(t.Context(), after, ref); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.Dir); err == nil || strings.Count(x.git("worktree", "list"), "\n") != 1 {
		t.Error("the working tree is left")
	}
	x.write("a", "by hand\n")
	if err := g.Apply(t.Context(), before, after); code(err) != fault.PreconditionFailed || !strings.Contains(err.Error(), "a: ") {
		t.Errorf("what does not fit: %v", err)
	}
	if x.read("b") != "b\n" || !strings.Contains(x.read("bytes"), "no such file") && runtime.GOOS != "windows" {
		t.Error("half of it was done")
	}
	x.write("a", "one\n")
	if err := g.Apply(t.Context(), before, after); err != nil || x.read("a") != "two\n" || x.read("bytes") != "\x00\x01" || x.read("b") == "b\n" {
		t.Errorf("%v, a is %q", err, x.read("a"))
	}
	if err := g.Apply(t.Context(), after, after); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
	x.git("gc", "-q", "--prune=now")
	if d, err := g.Compare(t.Context(), before, after); err == nil && !slices.Equal(list(d), []string{"modified a", "deleted b", "added binary bytes"}) {
		t.Errorf("%q", list(d))
	} else if err != nil && !strings.Contains(err.Error(), before.Tree) {
		t.Errorf("what was kept is gone: %v", err)
	}
	if err := g.DeleteRef(t.Context(), ref); err != nil || x.git("for-each-ref", "refs/conduit") != "" {
		t.Errorf("the reference is left: %v", err)
	}
}

func code(err error) fault.Code {
	c, _ := fault.Of(err)
	return c
}
