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
	guest := filepath.Join(state, "workspaces", "a", "contents")
	if err := os.MkdirAll(guest, 0o755); err != nil {
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
		file := filepath.Join(guest, "dir", "file")
		want(file, false)
		for range 2 {
			if err := r.Allow(guest); err != nil {
				t.Fatal(err)
			}
		}
		want(file, true)
		want(guest, true)
		want(filepath.Join(guest, "key.pem"), false)
		want(filepath.Join(guest, "..", "metadata.json"), false)
		want(state, false)
		if !r.HoldsRoot(guest) || !r.HoldsRoot(filepath.Dir(guest)) {
			t.Error("the directory itself could be removed")
		}
		r.Revoke(guest)
		want(file, false)
	}
}
