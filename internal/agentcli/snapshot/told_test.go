package snapshot_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
)

// TestNothingIsHidden: what a run does is told, whatever it also does to what
// git looks at.
func TestNothingIsHidden(t *testing.T) {
	inner := newTree(t, map[string]string{"s": "s\n"}).commit()
	for _, c := range []struct {
		name   string
		before func(x tree)
		do     func(x tree)
		want   []string
		line   string // of the diff
	}{
		{"by an ignore rule of the run", nil, func(x tree) { x.write(".gitignore", "*.o\nhidden\n"); x.write("hidden", "h\n") }, []string{"modified .gitignore", "added hidden"}, "+h"},
		{"by a directory that ignores itself", nil, func(x tree) { x.write("dir/.gitignore", "*\n"); x.write("dir/in/f", "h\n") }, []string{"added dir/.gitignore", "added dir/in/f"}, "+h"},
		{"by .git/info/exclude", nil, func(x tree) { x.write(".git/info/exclude", "hidden\n"); x.write("hidden", "h\n") }, []string{"added hidden"}, "+h"},
		{"by core.excludesFile", nil, func(x tree) {
			x.write(".git/mine", "hidden\n")
			x.git("config", "core.excludesFile", filepath.Join(x.dir, ".git", "mine"))
			x.write("hidden", "h\n")
		}, []string{"added hidden"}, "+h"},
		{"but what was ignored before is", nil, func(x tree) { x.write("new.o", "o\n"); x.write("sub/new.o", "o\n"); x.write(".git/info/exclude", "") }, nil, ""},
		{"what was ignored, and then no more", nil, func(x tree) { x.write(".gitignore", "") }, []string{"modified .gitignore", "added old.o"}, "+o"},
		{"assumed unchanged, since", nil, func(x tree) { x.git("update-index", "--assume-unchanged", "a"); x.write("a", "two\n") }, []string{"modified a"}, "+two"},
		{"assumed unchanged", func(x tree) { x.git("update-index", "--assume-unchanged", "a") }, func(x tree) { x.write("a", "two\n") }, []string{"modified a"}, "+two"},
		{"skipped", func(x tree) { x.git("update-index", "--skip-worktree", "a") }, func(x tree) { x.write("a", "two\n") }, []string{"modified a"}, "+two"},
		{"left out of a sparse checkout", func(x tree) { x.git("sparse-checkout", "set", "--no-cone", "/a", "/.gitignore") }, func(x tree) { x.write("a", "two\n") }, []string{"modified a"}, "+two"},
		{"not to be compared", func(x tree) { x.write(".gitattributes", "* -diff\n") }, func(x tree) { x.write("a", "two\n") }, []string{"modified a"}, "+two"},
		{"not to be compared, since", nil, func(x tree) { x.write(".git/info/attributes", "* -diff\n"); x.write("a", "two\n") }, []string{"modified a"}, "+two"},
		{"with the time and size of before", func(x tree) {
			x.git("config", "core.trustctime", "false")
			x.git("config", "core.checkStat", "minimal")
		}, func(x tree) {
			fi, err := os.Stat(filepath.Join(x.dir, "a"))
			if err != nil {
				x.Fatal(err)
			}
			x.write("a", "two\n")
			if err := os.Chtimes(filepath.Join(x.dir, "a"), time.Time{}, fi.ModTime()); err != nil {
				x.Fatal(err)
			}
		}, []string{"modified a"}, "+two"},
		{"in a submodule", func(x tree) { x.git("submodule", "--quiet", "add", inner.dir, "sub/m"); x.git("commit", "-qm", "m") }, func(x tree) {
			x.write("sub/m/s", "two\n")
			x.write("sub/m/new", "n\n")
		}, []string{"added sub/m/new", "modified sub/m/s"}, "+++ b/sub/m/new"},
		{"committed in a submodule", func(x tree) { x.git("submodule", "--quiet", "add", inner.dir, "sub/m"); x.git("commit", "-qm", "m") }, func(x tree) {
			m := tree{x, filepath.Join(x.dir, "sub", "m")}
			m.write("s", "two\n")
			m.git("commit", "-qam", "more")
		}, []string{"modified sub/m/s"}, "+two"},
		{"a submodule that goes", func(x tree) { x.git("submodule", "--quiet", "add", inner.dir, "sub/m"); x.git("commit", "-qm", "m") }, func(x tree) {
			if err := os.RemoveAll(filepath.Join(x.dir, "sub/m")); err != nil {
				x.Fatal(err)
			}
		}, []string{"deleted sub/m", "deleted sub/m/s"}, "-s"},
		{"a repository of one's own that goes", func(x tree) {
			tree{x, filepath.Join(x.dir, "own")}.write("f", "f\n")
			tree{x, filepath.Join(x.dir, "own")}.commit()
			x.git("add", "-A")
		}, func(x tree) {
			if err := os.RemoveAll(filepath.Join(x.dir, "own")); err != nil {
				x.Fatal(err)
			}
		}, []string{"deleted own"}, ""},
		{"in a repository of the run's own", nil, func(x tree) {
			m := tree{x, filepath.Join(x.dir, "own")}
			m.write("f", "f\n")
			m.commit()
			m.write("g", "g\n")
		}, []string{"added own", "added own/f", "added own/g"}, "+g"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTree(t, map[string]string{"a": "one\n", "sub/b": "b\n", ".gitignore": "*.o\n", "old.o": "o\n"}).commit()
			if c.before != nil {
				c.before(x)
			}
			time.Sleep(10 * time.Millisecond) // a file as old as the index is looked at in any case
			got, d := x.changes(snapshot.Options{}, func() { c.do(x) })
			if !slices.Equal(got, c.want) || c.line != "" && !strings.Contains(d.Diff, "\n"+c.line+"\n") || strings.Contains(d.Diff, "a/.git/") {
				t.Errorf("%q, not %q\n%s", got, c.want, d.Diff)
			}
		})
	}
}

// TestBaselineOfSubmodules: what is committed in one is no change of the
// working tree.
func TestBaselineOfSubmodules(t *testing.T) {
	inner := newTree(t, map[string]string{"s": "s\n"}).commit()
	x := newTree(t, map[string]string{"a": "one\n"}).commit()
	x.git("submodule", "--quiet", "add", inner.dir, "m")
	x.git("commit", "-qm", "m")
	s := snapshot.Open(t.Context(), x.dir, snapshot.Options{})
	defer s.Close()
	committed, err := s.Committed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d, err := s.Compare(t.Context(), committed, take(t, s)); err != nil || len(d.Changes) > 0 {
		t.Errorf("%q, %v", list(d), err)
	}
	x.write("m/s", "two\n")
	if d, err := s.Compare(t.Context(), committed, take(t, s)); err != nil || !slices.Equal(list(d), []string{"modified m/s"}) {
		t.Errorf("%q, %v", list(d), err)
	}
}

// TestKindsOfRepositories: what a repository says of how its files are read
// counts, and so does how it keeps them.
func TestKindsOfRepositories(t *testing.T) {
	for name, make := range map[string]func(x tree) tree{
		"SHA-256": func(x tree) tree { x.git("init", "-q", "--object-format=sha256"); return x.commit() },
		"a linked working tree": func(x tree) tree {
			x.commit()
			dir := filepath.Join(filepath.Dir(x.dir), "linked")
			x.git("worktree", "add", "-q", dir)
			return tree{x, dir}
		},
		"a split index": func(x tree) tree { x.commit().git("update-index", "--split-index"); return x },
		"line ends": func(x tree) tree {
			x.git("init", "-q")
			x.git("config", "core.autocrlf", "true")
			x.commit()
			x.write("a", "one\r\n") // the same, for git
			return x
		},
		"a setting without a value": func(x tree) tree {
			x.commit()
			x.write(".git/config", x.read(".git/config")+"[core]\n\tfilemode\n")
			return x
		},
		"bytes in a setting": func(x tree) tree {
			x.commit().git("config", "core.excludesFile", "/no such/\"file\\\n[core]")
			return x
		},
	} {
		x := make(newTree(t, map[string]string{"a": "one\n", "b": "b\n"}))
		got, d := x.changes(snapshot.Options{}, func() { x.write("b", "two\n"); _ = os.Chmod(filepath.Join(x.dir, "b"), 0o755) })
		if !slices.Equal(got, []string{"modified b"}) || !strings.Contains(d.Diff, "\n-b\n+two\n") || !strings.Contains(d.Diff, "new mode 100755") {
			t.Errorf("%s: %q\n%s", name, got, d.Diff)
		}
		s := snapshot.Open(t.Context(), x.dir, snapshot.Options{})
		status, err := s.Status(t.Context())
		committed, cerr := s.Committed(t.Context())
		all, derr := s.Compare(t.Context(), committed, take(t, s))
		if want := x.git("--no-optional-locks", "status", "--porcelain"); status != want || err != nil || cerr != nil || derr != nil || !slices.Equal(list(all), []string{"modified b"}) {
			t.Errorf("%s: status %q, %q, %v %v %v", name, status, list(all), err, cerr, derr)
		}
		s.Close()
	}
}
