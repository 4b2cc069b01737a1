//go:build unix

package filetree

import (
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestChmodChangesTheEntryAlone(t *testing.T) {
	s := newScratch(t)
	if err := os.Mkdir(s.path("d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path("d/f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"d/f": 0o751 | fs.ModeSetuid, "d": 0o700} {
		if err := Chmod(s.at(name), mode); err != nil {
			t.Error(err)
		}
		if fi, err := os.Stat(s.path(name)); err != nil || fi.Mode()&^fs.ModeDir != mode {
			t.Errorf("%s has %v, %v", name, fi.Mode(), err)
		}
	}
	if err := Chown(s.at("d/f"), os.Getuid(), os.Getgid()); err != nil {
		t.Error(err)
	}
	if err := syscall.Mkfifo(s.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fault.Code{".": fault.FSAccessDenied, "none": fault.FSNotFound, "fifo": fault.FSOperation} {
		for what, err := range map[string]error{"chmod": Chmod(s.at(name), 0o700), "chown": Chown(s.at(name), os.Getuid(), os.Getgid())} {
			if code, message := fault.Of(err); code != want {
				t.Errorf("%s %s: %s %s, want %s", what, name, code, message, want)
			}
		}
	}
}

// A directory that has become a link since it was checked is not followed out.
func TestChmodStaysInside(t *testing.T) {
	s := newScratch(t)
	if err := os.WriteFile(s.path("f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	out := s.path("../out/f")
	if err := os.WriteFile(out, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p := s.at("f")
	if err := os.Remove(s.path("f")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../out/f", s.path("f")); err != nil {
		t.Fatal(err)
	}
	if err := Chmod(p, 0o777); err == nil {
		t.Error("chmod through a link that was put there meanwhile")
	}
	if err := Chown(p, os.Getuid(), os.Getgid()); err == nil {
		t.Error("chown through a link that was put there meanwhile")
	}
	if fi, err := os.Stat(out); err != nil || fi.Mode() != 0o644 {
		t.Errorf("the file outside has %v, %v", fi.Mode(), err)
	}
}

func TestOntoNamesTheResult(t *testing.T) {
	s := newScratch(t)
	for _, d := range []string{"a", "b", "c"} {
		if err := os.Mkdir(s.path(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"a/one": "new", "b/one": "old", "b/two": "2", "f": "f"} {
		if err := os.WriteFile(s.path(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := atomicfile.New()
	if r, err := Copy(t.Context(), w, s.at("a"), s.at("b"), Options{Onto: true}); err != nil || r.Into != s.path("b") {
		t.Errorf("%+v, %v", r, err)
	}
	for name, want := range map[string]string{"b/one": "new", "b/two": "2"} {
		if got, err := os.ReadFile(s.path(name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
	_, file := Copy(t.Context(), w, s.at("f"), s.at("b"), Options{Onto: true})
	_, moved := Move(t.Context(), w, s.at("f"), s.at("b"), Options{Onto: true})
	_, dir := Move(t.Context(), w, s.at("a"), s.at("c"), Options{Onto: true})
	for _, c := range []struct {
		err  error
		want fault.Code
	}{{file, fault.FSIsDirectory}, {moved, fault.FSIsDirectory}, {dir, fault.FSAlreadyExists}} {
		if code, message := fault.Of(c.err); code != c.want {
			t.Errorf("%s %s, want %s", code, message, c.want)
		}
	}
	if _, err := os.Stat(s.path("b/f")); err == nil {
		t.Error("the file went into the directory")
	}
}
