package entry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

func TestNameThatIsNotUTF8(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "caf\xe9.txt"), "hello")
	write(t, filepath.Join(dir, "real \uFFFD"), "hello")
	if err := os.Symlink("caf\xe9.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	for _, c := range []struct {
		name, shown, target string
		mode                fs.FileMode
		lossy               bool
	}{
		{"caf\xe9.txt", "caf\uFFFD.txt", "", 0, true},
		{"real \uFFFD", "real \uFFFD", "", 0, false},
		{"link", "link", "caf\uFFFD.txt", fs.ModeSymlink, false},
	} {
		i, err := entry.Of(t.Context(), d, walk.Entry{Name: c.name, Type: c.mode})
		if err != nil {
			t.Fatal(err)
		}
		if i.Name != c.shown || i.NameLossy != c.lossy || i.Path != filepath.Join(d.Place().Abs, c.shown) || i.Size != 5 || i.LinkTarget != c.target {
			t.Errorf("%q: %+v", c.name, i)
		}
	}
}

// What can be told of a file is told where it cannot be read.
func TestFileThatCannotBeRead(t *testing.T) {
	i, err := entry.Of(t.Context(), open(t, "/proc/self"), walk.Entry{Name: "mem"})
	if err != nil || i.Type != "file" || i.MIMEType != "" || i.Permissions != "rw-------" {
		t.Errorf("%+v, %v", i, err)
	}
}
