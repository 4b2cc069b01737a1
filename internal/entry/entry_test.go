package entry_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

// open opens dir as the one allowed directory.
func open(t *testing.T, dir string) *walk.Dir {
	t.Helper()
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	at, err := r.Resolve(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := walk.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	begun := time.Now()
	write(t, filepath.Join(dir, "a.txt"), `{"a": 1}`)
	modified := time.Date(2030, 5, 1, 12, 0, 0, 123e6, time.FixedZone("", 7200))
	if err := os.Chtimes(filepath.Join(dir, "a.txt"), time.Time{}, modified); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	i, err := entry.Of(t.Context(), d, walk.Entry{Name: "a.txt"})
	if err != nil {
		t.Fatal(err)
	}
	if i.Path != filepath.Join(d.Place().Abs, "a.txt") || i.Type != "file" || i.Size != 8 || i.MIMEType != "application/json" ||
		i.Modified != "2030-05-01T10:00:00.123Z" || i.Children != nil {
		t.Errorf("%+v", i)
	}
	// The clocks of file systems tick more slowly than ours.
	created, err := time.Parse(time.RFC3339, i.Created)
	if err != nil || created.Before(begun.Add(-time.Second)) || created.After(time.Now()) {
		t.Errorf("created_at_iso = %s, %v; the file was made at %s", i.Created, err, begun)
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(filepath.Join(dir, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	i, err := entry.Of(t.Context(), open(t, dir), walk.Entry{Name: "sub", Type: fs.ModeDir})
	if err != nil || i.Type != "directory" || int64(i.Size) != want.Size() || i.MIMEType != "" || i.Octal != "0700" || i.Permissions != "rwx------" {
		t.Errorf("%+v, %v; want the system's size %d", i, err, want.Size())
	}
}

func TestLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "real.txt"), "hello")
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret.txt")
	write(t, outside, "secret")
	for name, target := range map[string]string{"file": "real.txt", "dir": "sub", "broken": "gone", "abroad": outside, "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, dir)
	for _, c := range []struct {
		name, kind, mime, target string
		told                     bool
	}{
		{"file", "file", "text/plain", "real.txt", true},
		{"dir", "directory", "", "sub", true},
		{"broken", "file", "", "gone", false},
		{"abroad", "file", "", outside, false},
		{"loop", "file", "", "loop", false},
	} {
		i, err := entry.Of(t.Context(), d, walk.Entry{Name: c.name, Type: fs.ModeSymlink})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		told := i.Size != entry.Untold && i.Octal != "" && i.Permissions != ""
		if !i.IsLink || i.Type != c.kind || i.MIMEType != c.mime || i.LinkTarget != c.target || told != c.told || i.Modified == "" {
			t.Errorf("%s: %+v", c.name, i)
		}
	}
}

func TestVanished(t *testing.T) {
	_, err := entry.Of(t.Context(), open(t, t.TempDir()), walk.Entry{Name: "gone"})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := entry.Of(ctx, open(t, t.TempDir()), walk.Entry{Name: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		size     entry.Size
		children *[]entry.Info
		want     string
	}{
		{0, nil, `"size_bytes":0`},
		{1 << 40, nil, `"size_bytes":1099511627776`},
		{entry.Unknown, nil, `"size_bytes":null`},
		{entry.Untold, nil, ``},
		{entry.Untold, &[]entry.Info{}, `"children":[]`},
	} {
		b, err := json.Marshal(entry.Info{Size: c.size, Children: c.children, Sized: true})
		got := strings.TrimPrefix(string(b), `{"name":"","path":"","type":"",`)
		got = strings.Replace(got, `"created_at_iso":"","modified_at_iso":""`, "", 1)
		if got = strings.Trim(got, ",}"); err != nil || got != c.want {
			t.Errorf("%d, %v: %s, %v; want %s", c.size, c.children, b, err, c.want)
		}
	}
}
