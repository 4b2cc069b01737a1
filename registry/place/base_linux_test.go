package place_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// based is top with the Base of its root.
func based(t *testing.T) place.Place {
	t.Helper()
	p := top(t)
	var err error
	if p.Base, err = place.NewBase(p.Root); err != nil {
		t.Fatal(err)
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStraight(t *testing.T) {
	p := based(t)
	at := func(name string) string { return filepath.Join(p.Abs, name) }
	must(t, os.MkdirAll(at("dir/deep"), 0o755))
	must(t, os.WriteFile(at("dir/f"), nil, 0o000))
	must(t, os.Symlink("dir", at("in")))
	must(t, os.Symlink("f", at("dir/last")))
	must(t, os.Symlink("nothing", at("dangling")))
	must(t, os.Symlink(t.TempDir(), at("out")))
	must(t, os.Symlink("/proc/self/root", at("magic")))
	for name, want := range map[string]bool{
		".": true, "dir": true, "dir/deep": true, "dir/f": true, "new": true, "dir/new": true, "dir/deep/new": true,
		"in": false, "in/f": false, "in/new": false, "dir/last": false, "dangling": false, "dangling/x": false, "out": false, "out/x": false,
		"magic": false, "magic/etc": false, "dir/f/x": false, "new/new": false, "..": false, "../x": false, "/etc": false,
		strings.Repeat("n", 256): false, "a\x00": false,
	} {
		if got := p.Base.FreeOfLinks(name); got != want {
			t.Errorf("%.40q: %t", name, got)
		}
	}
}

func TestOpenInOneCall(t *testing.T) {
	p := based(t)
	at := func(name string) string { return filepath.Join(p.Abs, name) }
	must(t, os.MkdirAll(at("a/b"), 0o755))
	must(t, os.WriteFile(at("a/b/f"), []byte("hello"), 0o600))
	must(t, os.Symlink("b", at("a/link")))
	must(t, os.Symlink("/etc", at("out")))
	must(t, syscall.Mkfifo(at("fifo"), 0o600))
	file := p.Child("a").Child("b").Child("f")
	f, fi, err := file.OpenFileOnly()
	must(t, err)
	b, err := io.ReadAll(f)
	if f.Close(); err != nil || string(b) != "hello" || fi.Size() != 5 || fi.Name() != "f" || f.Name() != file.Abs {
		t.Errorf("%q, %v; %s of %d bytes, opened as %s", b, err, fi.Name(), fi.Size(), f.Name())
	}
	if d, fi, err := p.Child("a").Open(); err != nil || !fi.IsDir() {
		t.Errorf("a directory: %v", err)
	} else {
		must(t, os.Rename(at("a"), at("away")))
		list, err := d.ReadDir(-1)
		if err != nil || len(list) != 2 {
			t.Errorf("in it: %v, %v", list, err)
		}
		for _, e := range list {
			if _, err := e.Info(); err != nil {
				t.Errorf("its entries are looked up by path: %v", err)
			}
		}
		d.Close()
		must(t, os.Rename(at("away"), at("a")))
	}
	if _, _, err := p.Child("fifo").Open(); code(err) != fault.FSOperation {
		t.Errorf("a FIFO: %v", err)
	}
	if _, _, err := p.Child("out").Child("passwd").Open(); err == nil {
		t.Error("a link led outside")
	}
	if _, _, err := p.Child("a").Child("none").Open(); code(err) != fault.FSNotFound || !strings.Contains(err.Error(), at("a/none")) {
		t.Errorf("a missing file: %v", err)
	}

	// Creating, once and again, and adding to it.
	born := p.Child("a").Child("born")
	umask := syscall.Umask(0)
	defer syscall.Umask(umask)
	for range 2 {
		f, fi, err := born.OpenFile(os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
		must(t, err)
		if _, err := f.WriteString("x"); err != nil || fi.Mode() != 0o640 {
			t.Errorf("mode %v, %v", fi.Mode(), err)
		}
		must(t, f.Close())
	}
	if b, err := os.ReadFile(born.Abs); err != nil || string(b) != "xx" {
		t.Errorf("%q, %v", b, err)
	}
	if _, _, err := born.OpenFile(os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); code(err) != fault.FSAlreadyExists {
		t.Errorf("made anew: %v", err)
	}
}

// A place below a handle of its own, as package walk makes them, keeps to that
// handle.
func TestBaseIsOfTheRootAlone(t *testing.T) {
	p := based(t)
	must(t, os.Mkdir(filepath.Join(p.Abs, "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(p.Abs, "f"), []byte("above"), 0o600))
	must(t, os.WriteFile(filepath.Join(p.Abs, "sub/f"), []byte("below"), 0o600))
	sub, err := p.Root.OpenRoot("sub")
	must(t, err)
	defer sub.Close()
	q := p.Child("sub").Child("f")
	q.Root, q.Name = sub, "f"
	f, _, err := q.Open()
	must(t, err)
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "below" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestOpenPath(t *testing.T) {
	p := based(t)
	at := func(name string) string { return filepath.Join(p.Abs, name) }
	must(t, os.Mkdir(at("dir"), 0o755))
	must(t, os.WriteFile(at("dir/closed"), []byte("hello"), 0o000))
	must(t, os.Symlink("dir", at("link")))
	must(t, syscall.Mkfifo(at("fifo"), 0o600))
	for name, want := range map[string]os.FileMode{
		"dir": os.ModeDir | 0o755, "dir/closed": 0, "link": os.ModeSymlink | 0o777, "fifo": os.ModeNamedPipe | 0o600,
	} {
		q := p
		q.Name, q.Abs = name, at(name)
		f, err := q.OpenPath()
		must(t, err)
		fi, err := f.Stat()
		if err != nil || fi.Mode() != want || fi.Name() != filepath.Base(name) {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
		if _, err := f.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s can be read", name)
		}
		f.Close()
	}
	for _, name := range []string{"none", "link/closed", "../x"} {
		q := p
		q.Name = name
		if f, err := q.OpenPath(); err == nil {
			t.Errorf("%s is %s", name, f.Name())
		}
	}
	if _, err := top(t).Child("dir").OpenPath(); err == nil {
		t.Error("a place without a base was pinned")
	}
}
