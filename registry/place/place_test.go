package place_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func top(t *testing.T) place.Place {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return place.Place{Root: root, Name: ".", Abs: dir, Asked: dir}
}

func code(err error) fault.Code {
	c, _ := fault.Of(err)
	return c
}

func TestChildAndParent(t *testing.T) {
	p := top(t)
	c := p.Child("a").Child("b")
	if c.Name != filepath.Join("a", "b") || c.Abs != filepath.Join(p.Abs, "a", "b") || c.Root != p.Root {
		t.Errorf("child is %+v", c)
	}
	if up := c.Parent().Parent(); up.Name != "." || up.Abs != p.Abs {
		t.Errorf("parent of the parent is %+v", up)
	}
	if up := p.Parent(); up.Name != "." || up.Abs != p.Abs {
		t.Errorf("the parent of the root is %+v", up)
	}
}

func TestOpen(t *testing.T) {
	p := top(t)
	if err := os.WriteFile(filepath.Join(p.Abs, "f"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(p.Abs, "out")); err != nil {
		t.Fatal(err)
	}
	f, fi, err := p.Child("f").OpenFileOnly()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "hello" || fi.Size() != 5 {
		t.Errorf("%q, %d bytes, %v", b, fi.Size(), err)
	}
	if _, _, err := p.OpenFileOnly(); code(err) != fault.FSIsDirectory {
		t.Errorf("a directory as a file: %v", err)
	}
	if d, fi, err := p.Open(); err != nil || !fi.IsDir() {
		t.Errorf("a directory: %v", err)
	} else {
		d.Close()
	}
	if _, _, err := p.Child("out").Child("passwd").Open(); err == nil {
		t.Error("a link led out of the root")
	}
	_, _, err = p.Child("none").Open()
	var at *fs.PathError
	if !errors.As(err, &at) || at.Path != filepath.Join(p.Abs, "none") || code(err) != fault.FSNotFound {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := p.Child("none").Stat(); code(err) != fault.FSNotFound || !strings.Contains(err.Error(), p.Abs) {
		t.Errorf("the state of a missing file: %v", err)
	}
}

func TestOrdinary(t *testing.T) {
	for mode, ok := range map[fs.FileMode]bool{0o600: true, fs.ModeDir | 0o700: true, fs.ModeNamedPipe: false, fs.ModeSocket: false, fs.ModeDevice: false, fs.ModeSymlink: false} {
		if err := place.Ordinary("x", mode); (err == nil) != ok || (!ok && code(err) != fault.FSOperation) {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

func TestWithin(t *testing.T) {
	at := func(p string) string {
		abs, err := filepath.Abs(filepath.FromSlash(p))
		if err != nil {
			t.Fatal(err)
		}
		return abs
	}
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/a/b", "/a/b", true},
		{"/a/b/c", "/a/b", true},
		{"/a/bc", "/a/b", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
		{"/", "/", true},
		{"/a/..b", "/a", true},
	} {
		if got := place.Within(at(c.path), at(c.dir)); got != c.want {
			t.Errorf("Within(%s, %s) = %t", c.path, c.dir, got)
		}
	}
}

func TestStays(t *testing.T) {
	for _, c := range []struct {
		text, dir string
		want      bool
	}{
		{"x", ".", true},
		{"", ".", true},
		{"../x", "a", true},
		{"../x", ".", false},
		{"../../x", "a/b", true},
		{"../../../x", "a/b", false},
		{"x/../..", ".", false},
		{"./x//../y", "", true},
	} {
		if got := place.Stays(c.text, c.dir); got != c.want {
			t.Errorf("Stays(%q, %q) = %t", c.text, c.dir, got)
		}
	}
}
