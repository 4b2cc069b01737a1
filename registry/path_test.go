package registry_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestNamesInsideArchives(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.zip", "odd!/b.zip", "odd!/b.zip!", "taken.zip", "taken.zip!/x"} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ raw, archive, inner string }{
		{"a.zip", "", ""},
		{"a.zip!/in/x", "a.zip", "in/x"},
		{"a.zip!/", "a.zip", "."},
		{"a.zip!/in//../../y/", "a.zip", "y"},
		{"a.zip!/b.zip!/x", "a.zip", "b.zip!/x"}, // nothing is told of archives in archives here
		{"odd!/b.zip!/x", "odd!/b.zip", "x"},
		{"odd!/b.zip!", "", ""},
		{"taken.zip!/x", "", ""},
		{"taken.zip!/y", "taken.zip", "y"},
		{"none.zip!/x", "", ""},
		{"odd!/new", "", ""},
	} {
		var m registry.Member
		if err := m.UnmarshalText([]byte(c.raw)); err != nil {
			t.Fatal(err)
		}
		m.Vet(r.Resolve)
		at, inner, ok := m.Archive()
		if ok != (c.archive != "") || inner != c.inner || ok && at.Abs != filepath.Join(r.Dirs()[0], c.archive) {
			t.Errorf("%s: %q in %q, %t; want %q in %q", c.raw, inner, at.Abs, ok, c.inner, c.archive)
		}
		_, err := m.Place()
		if code, _ := fault.Of(err); ok && code != fault.FSBadPathInput || !ok && err != nil {
			t.Errorf("%s: Place: %v", c.raw, err)
		}
	}
	var m registry.Member
	if err := m.UnmarshalText([]byte(filepath.Join(filepath.Dir(dir), "out.zip!/x"))); err != nil {
		t.Fatal(err)
	}
	m.Vet(r.Resolve)
	if _, err := m.Place(); !isDenied(err) {
		t.Errorf("outside: %v", err)
	}
}

func isDenied(err error) bool {
	code, _ := fault.Of(err)
	return code == fault.FSAccessDenied
}

func TestNamesDirectory(t *testing.T) {
	for raw, want := range map[string]bool{"": false, "a": false, "a/": true, "/": true, "a/.": false, "a/b": false} {
		var p registry.Path
		if err := p.UnmarshalText([]byte(raw)); err != nil {
			t.Fatal(err)
		}
		if got := p.NamesDirectory(); got != want {
			t.Errorf("%q: %t", raw, got)
		}
	}
}
