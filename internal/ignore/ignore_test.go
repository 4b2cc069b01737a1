package ignore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/ignore"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

func TestIgnored(t *testing.T) {
	for _, test := range []struct {
		rules, name string
		dir, want   bool
	}{
		{"", ".git", true, true},
		{"", "sub/.git", true, true},
		{"", ".gitignore", false, false},
		{"*.log", "a.log", false, true},
		{"*.log", "deep/er/a.log", false, true},
		{"*.log\n!keep.log", "keep.log", false, false},
		{"!keep.log\n*.log", "keep.log", false, true},
		{"build/", "build", true, true},
		{"build/", "build", false, false},
		{"build/", "src/build", true, true},
		{"/build", "build", false, true},
		{"/build", "src/build", false, false},
		{"doc/*.txt", "doc/a.txt", false, true},
		{"doc/*.txt", "doc/sub/a.txt", false, false},
		{"doc/*.txt", "x/doc/a.txt", false, false},
		{"**/foo", "foo", false, true},
		{"**/foo", "a/b/foo", false, true},
		{"**/foo/bar", "a/foo/bar", false, true},
		{"abc/**", "abc", true, false},
		{"abc/**", "abc/x", false, true},
		{"abc/**", "abc/x/y", false, true},
		{"a/**/b", "a/b", false, true},
		{"a/**/b", "a/x/y/b", false, true},
		{"# comment\n\n", "# comment", false, false},
		{`\#file`, "#file", false, true},
		{`\!file`, "!file", false, true},
		{"a[0-9].c", "a7.c", false, true},
		{"a[!0-9].c", "a7.c", false, false},
		{"a?c", "abc", false, true},
		{"{a,b}*", "ax", false, false},
		{"{a,b}*", "{a,b}x", false, true},
		{"trail  ", "trail", false, true},
		{`trail\ `, "trail ", false, true},
		{"windows\r\n*.o\r\n", "x.o", false, true},
		{"\ufeffmark", "mark", false, true},
		{"[", "[", false, false},
		{"/", "x", true, false},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, ".gitignore"), test.rules)
		var s *ignore.Stack
		if got := s.Enter(open(t, dir), "").Ignored(test.name, test.dir); got != test.want {
			t.Errorf("%q: Ignored(%q, %v) = %v", test.rules, test.name, test.dir, got)
		}
	}
}

func TestInnerRulesWin(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".gitignore"), "*.txt\n/sub/b.md")
	write(t, filepath.Join(dir, "sub/.gitignore"), "!a.txt\n/c.md")
	var none *ignore.Stack
	top := none.Enter(open(t, dir), "")
	sub := top.Enter(open(t, filepath.Join(dir, "sub")), "sub")
	deeper := sub.Enter(open(t, filepath.Join(dir, "sub")), "sub")
	for name, want := range map[string]bool{"sub/a.txt": false, "sub/b.txt": true, "sub/b.md": true, "sub/c.md": true, "sub/x/c.md": false} {
		if got := sub.Ignored(name, false); got != want {
			t.Errorf("Ignored(%q) = %v", name, got)
		}
		if got := deeper.Ignored(name, false); got != want {
			t.Errorf("entered twice: Ignored(%q) = %v", name, got)
		}
	}
	if top.Ignored("sub/c.md", false) {
		t.Error("the rules of a directory reach the one above it")
	}
}

func TestAbove(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".gitignore"), "outside")
	write(t, filepath.Join(dir, "repo/.git/HEAD"), "")
	write(t, filepath.Join(dir, "repo/.gitignore"), "*.log\n/a/b/x\n/c")
	write(t, filepath.Join(dir, "repo/a/.gitignore"), "!keep.log")
	write(t, filepath.Join(dir, "repo/a/b/.gitignore"), "own")
	s := ignore.Above(open(t, filepath.Join(dir, "repo/a/b")).Place())
	for name, want := range map[string]bool{"y.log": true, "keep.log": false, "x": true, "d/x": false, "c": false, "own": false, "outside": false} {
		if got := s.Ignored(name, false); got != want {
			t.Errorf("Ignored(%q) = %v", name, got)
		}
	}
	if ignore.Above(open(t, dir).Place()) != nil || ignore.Above(open(t, filepath.Join(dir, "repo")).Place()) != nil {
		t.Error("rules without a repository above")
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *walk.Dir {
	t.Helper()
	top := os.TempDir()
	r, _, err := roots.New(roots.Config{Allowed: []string{top}, Project: top})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Resolve(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := walk.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}
