package roots_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// below makes the project root one of two allowed directories.
func below(t *testing.T, denied ...string) *world {
	return newWorld(t, func(w *world, c *roots.Config) {
		c.Allowed, c.Project = []string{w.at("two"), w.at("ok")}, w.at("ok")
		for _, d := range denied {
			c.Denied = append(c.Denied, w.at(d))
		}
	})
}

func TestResolveBelowTakesRelativePaths(t *testing.T) {
	w := below(t)
	w.link("dir/f", "ok/inside")
	for raw, name := range map[string]string{
		".": ".", "f": "f", "./f": "f", "dir/": "dir", "dir/deep/../f": "dir/f", "new/file": "new/file", "inside": "dir/f",
		"%2e%2e": "%2e%2e", "./~": "~", "a~": "a~", "dir/..": ".",
	} {
		p, err := w.ResolveBelow(raw)
		if err != nil || filepath.ToSlash(p.Name) != name || p.Abs != w.at("ok/"+name) || p.Root.Name() != w.at("ok") {
			t.Errorf("%s: %q, %s, %v; want %s", raw, p.Name, p.Abs, err, name)
		}
	}
}

func TestResolveBelowRefusesTheRest(t *testing.T) {
	w := below(t, "ok/dir/deep")
	w.link(w.at("two/f"), "ok/toallowed")
	w.link("../out", "ok/ld")
	w.link("../out/none", "ok/dangling")
	for raw, want := range map[string]string{
		w.at("ok/dir/f"):      "here dir/f",
		w.at("ok"):            "here .",
		w.at("two/f"):         "such as src/main.go",
		"/":                   "is not a relative path",
		"~":                   "is not a relative path",
		"~/f":                 "is not a relative path",
		"..":                  "(resolved to " + w.base + ") is outside the project root " + w.at("ok"),
		"../two/f":            "(resolved to " + w.at("two/f") + ") is outside",
		"../ok-evil/f":        "is outside the project root",
		"dir/../../out/f":     "is outside the project root",
		"nope/../../out/new":  "is outside the project root",
		"toallowed":           "is outside the project root",
		"ld/f":                "is outside the project root",
		"ld/":                 "is outside the project root",
		"dangling":            "is outside the project root",
		"dir/deep":            "denied by a rule",
		"dir/deep/new":        "denied by a rule",
		"dir/../dir/deep/../": "",
	} {
		p, err := w.ResolveBelow(raw)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		if code, message := fault.Of(err); code != fault.FSAccessDenied || !strings.Contains(message, want) {
			t.Errorf("%s: %+v, %s %s; want %q", raw, p, code, message, want)
		}
	}
	for raw, want := range map[string]fault.Code{"": fault.FSBadPathInput, "a\x00": fault.FSBadPathInput, "~root/f": fault.FSPathResolution} {
		if code, message := fault.Of(second(w.ResolveBelow(raw))); code != want {
			t.Errorf("%q: %s %s, want %s", raw, code, message, want)
		}
	}
}

func second[A any](_ A, err error) error { return err }

// What is resolved on the way, such as the targets of links in a tree, keeps to
// the project root as well, and neither kind of root is given away.
func TestPlacesBelowKeepToTheProject(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) {
		c.Allowed, c.Project = []string{w.at("ok"), w.at("ok/dir"), w.at("two")}, w.at("ok")
	})
	p, err := w.ResolveBelow("f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Guard.Resolve(w.at("two/f")); err == nil {
		t.Error("a further path may lie in another allowed directory")
	}
	if q, err := p.Guard.Resolve(w.at("ok/dir/f")); err != nil || q.Abs != w.at("ok/dir/f") {
		t.Errorf("a further path in the project: %v", err)
	}
	for name, want := range map[string]bool{"ok": true, "ok/dir": true, "ok/dir/deep": false, "ok/f": false} {
		if got := p.Guard.HoldsRoot(w.at(name)); got != want {
			t.Errorf("%s holds a root: %v", name, got)
		}
	}
	if w.HoldsRoot(w.at("ok/f")) || !w.HoldsRoot(w.at("ok")) {
		t.Error("the other tools' roots are not what they were")
	}
}

func TestResolveBelowWithoutProject(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) { c.Project = w.at("ok/later") })
	if code, message := fault.Of(second(w.ResolveBelow("f"))); code != fault.FSPathResolution || !strings.Contains(message, "CONDUIT_PROJECT_ROOT") {
		t.Errorf("%s %s", code, message)
	}
	w.must(os.Mkdir(w.at("ok/later"), 0o755))
	if p, err := w.ResolveBelow("f"); err != nil || p.Abs != w.at("ok/later/f") {
		t.Errorf("once it is there: %v", err)
	}
}

// A project root that came to lead elsewhere is not opened.
func TestResolveBelowStaysAllowed(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) { c.Project = w.at("ok/later") })
	w.link("../out", "ok/later")
	if p, err := w.ResolveBelow("f"); code(err) != fault.FSAccessDenied {
		t.Errorf("%s, %v", p.Abs, err)
	}
}
