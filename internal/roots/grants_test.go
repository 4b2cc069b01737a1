package roots

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A directory among the server's own files is accessible while it is allowed,
// and nothing beside it ever is.
func TestAllowForATime(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, "state")
	granted := filepath.Join(state, "workspaces", "a", "contents")
	if err := os.MkdirAll(granted, 0o755); err != nil {
		t.Fatal(err)
	}
	allowed := filepath.Join(home, "allowed")
	if err := os.Mkdir(allowed, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{home, allowed} { // the state is inside, and outside
		r, _, err := New(Config{Allowed: []string{dir}, Project: dir, Denied: []string{"*.pem"}, State: []string{state}})
		if err != nil {
			t.Fatal(err)
		}
		want := func(path string, ok bool) {
			t.Helper()
			p, err := r.Resolve(path)
			if code, _ := fault.Of(err); (err == nil) != ok || !ok && code != fault.FSAccessDenied {
				t.Errorf("%s: %v", path, err)
			}
			if ok && (p.Abs != path || r.Denied(path)) {
				t.Errorf("%s is %s, denied %v", path, p.Abs, r.Denied(path))
			}
		}
		file := filepath.Join(granted, "dir", "file")
		want(file, false)
		for range 2 {
			if err := r.Allow(granted); err != nil {
				t.Fatal(err)
			}
		}
		want(file, true)
		want(granted, true)
		want(filepath.Join(granted, "key.pem"), false)
		want(filepath.Join(granted, "..", "metadata.json"), false)
		want(state, false)
		if !r.HoldsRoot(granted) || !r.HoldsRoot(filepath.Dir(granted)) {
			t.Error("the directory itself could be removed")
		}
		r.Revoke(granted)
		want(file, false)
	}
}

// Another directory that takes the name of an allowed one is not allowed, until
// it is allowed itself.
func TestAllowIsBoundToTheDirectory(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, "state")
	granted := filepath.Join(state, "contents")
	if err := os.MkdirAll(granted, 0o755); err != nil {
		t.Fatal(err)
	}
	r, _, err := New(Config{Allowed: []string{home}, Project: home, State: []string{state}})
	if err != nil {
		t.Fatal(err)
	}
	allow := func() {
		t.Helper()
		if err := r.Allow(granted); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(granted, "f")
	allow()
	if _, err := r.Resolve(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(granted, filepath.Join(state, "old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(granted, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, granted, filepath.Join(state, "old", "f")} {
		if _, err := r.Resolve(path); err == nil || !r.Denied(path) {
			t.Errorf("%s is allowed", path)
		}
	}
	allow()
	if _, err := r.Resolve(file); err != nil {
		t.Error(err)
	}
}
