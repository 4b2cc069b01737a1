package roots_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func (w *world) denied(want bool, names ...string) {
	w.Helper()
	for _, name := range names {
		if _, err := w.Resolve(w.at(name)); (code(err) == fault.FSAccessDenied) != want {
			w.Errorf("%s: %v, want denied %t", name, err, want)
		}
		if want && !w.DeniedName(filepath.Base(name)) && !w.Denied(filepath.Dir(w.at(name))) {
			w.Errorf("a walk would not ask for %s", name)
		}
	}
}

// A home directory that is a link does not lead round what is denied below it,
// however much of that is not there yet.
func TestDeniedBelowALinkedHome(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) {
		w.must(os.Mkdir(w.at("ok/real"), 0o755))
		w.link("real", "ok/home")
		c.Home = w.at("ok/home")
		c.Denied = []string{"~/.config/gh", "~/.netrc", "~/keys/*.pem", "~/[ab]/x"}
		c.State = []string{w.at("ok/home/.local/state/conduit/journal")}
	})
	for range 2 {
		w.denied(true, "ok/real/.config/gh", "ok/real/.config/gh/hosts", "ok/real/.netrc", "ok/real/keys/a.pem", "ok/real/b/x",
			"ok/real/.local/state/conduit/journal", "ok/real/.local/state/conduit/journal/x", "ok/home/.config/gh", "ok/home/.local/state/conduit/journal")
		w.denied(false, "ok/real/.config", "ok/real/keys/a", "ok/real/c/x", "ok/real/.local/state/conduit")
		w.must(os.MkdirAll(w.at("ok/real/.local/state/conduit/journal"), 0o755))
		w.must(os.MkdirAll(w.at("ok/real/.config/gh"), 0o755))
	}
}

// What is denied is so by the names it gets after the server was started.
func TestDeniedPlacesMadeLater(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) {
		c.Home, c.Denied = w.at("ok"), []string{"~/.config/gh", "~/.ssh", "~/deep/*/k"}
		c.State = []string{w.at("ok/.local/state/journal")}
	})
	for _, dir := range []string{"ok/dotfiles/gh", "ok/dotfiles/state/journal", "ok/keys", "two/down/a"} {
		w.must(os.MkdirAll(w.at(dir), 0o755))
	}
	later := []string{"ok/dotfiles/gh", "ok/dotfiles/gh/hosts", "ok/dotfiles/state/journal/x", "ok/keys", "ok/keys/id", "two/down/a/k"}
	w.denied(false, later...)
	w.link("dotfiles", "ok/.config")
	w.denied(true, later[:2]...)
	w.link("dotfiles", "ok/.local")
	w.denied(true, later[2])
	w.link("keys", "ok/.ssh")
	w.denied(true, later[3:5]...)
	w.link("../two/down", "ok/deep")
	w.denied(true, later...)
	w.denied(true, "ok/.ssh/id", "ok/.config/gh/x", "ok/deep/z/k")
	for _, name := range []string{"ok/.config", "ok/.local", "ok/.ssh", "ok/deep"} {
		w.must(os.Remove(w.at(name)))
	}
	w.denied(false, later...)
	w.denied(true, "ok/.ssh", "ok/.config/gh")
}
