package userdir_test

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/userdir"
)

func lookup(vars map[string]string) userdir.Lookup {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestDirectories(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return // where they lie elsewhere
	}
	home := t.TempDir()
	for _, c := range []struct {
		vars        map[string]string
		state, data string
	}{
		{map[string]string{"HOME": home}, filepath.Join(home, ".local/state"), filepath.Join(home, ".local/share")},
		{map[string]string{"HOME": home, "XDG_STATE_HOME": "/s", "XDG_DATA_HOME": "/d"}, "/s", "/d"},
		{map[string]string{"HOME": home, "XDG_STATE_HOME": "relative", "XDG_DATA_HOME": ""}, filepath.Join(home, ".local/state"), filepath.Join(home, ".local/share")},
	} {
		if state, data := userdir.State(lookup(c.vars)), userdir.Data(lookup(c.vars)); state != c.state || data != c.data {
			t.Errorf("%v: %s, %s; want %s, %s", c.vars, state, data, c.state, c.data)
		}
	}
}

// A server that is started without HOME has a home all the same.
func TestHomeOfTheUserDatabase(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, vars := range []map[string]string{{}, {"HOME": ""}, {"HOME": "relative"}} {
		if got := userdir.Home(lookup(vars)); got != u.HomeDir && u.HomeDir != os.Getenv("HOME") {
			t.Errorf("%v: %q, want %q", vars, got, u.HomeDir)
		}
		if got := userdir.Home(lookup(vars)); !filepath.IsAbs(got) {
			t.Errorf("%v: %q", vars, got)
		}
	}
}

func TestExpand(t *testing.T) {
	home := t.TempDir()
	for path, want := range map[string]string{"~": home, "~/a": filepath.Join(home, "a"), "~a": "~a", "/x/~": "/x/~", "a/~": "a/~", "": ""} {
		if got, ok := userdir.Expand(path, lookup(map[string]string{"HOME": home, "USERPROFILE": home})); got != want || !ok {
			t.Errorf("%s: %q, %v", path, got, ok)
		}
	}
}
