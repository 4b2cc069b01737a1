//go:build unix

package chown

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestGolden(t *testing.T) { optest.Golden(t, registry.New(desc, build)) }

func TestChown(t *testing.T) {
	b := optest.New(t, registry.New(desc, build), nil)
	if err := os.WriteFile(filepath.Join(b.Dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	got := b.Text(t, fmt.Sprintf(`{"entries": [{"path": "f", "uid": %d, "gid": %d}]}`, uid, gid))
	want := fmt.Sprintf(`[{"status":"success","action_performed":"chown","path":"f","uid":%d,"gid":%d}]`, uid, gid)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
