package fileinfo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func TestPermissions(t *testing.T) {
	for _, c := range []struct {
		mode          fs.FileMode
		octal, letter string
	}{
		{0o644, "0644", "rw-r--r--"},
		{0o755 | fs.ModeDir, "0755", "rwxr-xr-x"},
		{0, "0000", "---------"},
		{0o755 | fs.ModeSetuid, "04755", "rwsr-xr-x"},
		{0o644 | fs.ModeSetuid, "04644", "rwSr--r--"},
		{0o755 | fs.ModeSetgid, "02755", "rwxr-sr-x"},
		{0o777 | fs.ModeDir | fs.ModeSticky, "01777", "rwxrwxrwt"},
		{0o776 | fs.ModeDir | fs.ModeSticky, "01776", "rwxrwxrwT"},
	} {
		i := fileinfo.Info{Mode: c.mode}
		if i.Octal() != c.octal || i.String() != c.letter {
			t.Errorf("%v: %s %s, want %s %s", c.mode, i.Octal(), i, c.octal, c.letter)
		}
	}
}

func TestParseMode(t *testing.T) {
	for octal, want := range map[string]fs.FileMode{
		"644": 0o644, "0755": 0o755, "000": 0, "4755": 0o755 | fs.ModeSetuid, "2750": 0o750 | fs.ModeSetgid, "1777": 0o777 | fs.ModeSticky,
	} {
		if got, err := fileinfo.ParseMode(octal); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", octal, got, err, want)
		}
	}
	for _, bad := range []string{"", "7", "77", "00644", "648", "-644", "+644", "0o644", "rwx", "6 4"} {
		if got, err := fileinfo.ParseMode(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, got)
		} else if code, _ := fault.Of(err); code != fault.InvalidParameter {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestISOIsUTCWithMilliseconds(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 123456789, time.FixedZone("", 2*3600))
	if got := fileinfo.ISO(at); got != "2024-05-01T10:00:00.123Z" {
		t.Error(got)
	}
}

func TestOfDoesNotFollowLinks(t *testing.T) {
	before := time.Now().Add(-2 * time.Second)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("hello"), 0o640); err != nil {
		t.Fatal(err)
	}
	past := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "f"), past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("f", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	base, err := place.NewBase(root)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) fileinfo.Info {
		t.Helper()
		p := place.Place{Root: root, Name: name, Abs: filepath.Join(dir, name)}
		i, err := fileinfo.Of(p)
		if err != nil {
			t.Fatal(err)
		}
		p.Base = base
		if j, err := fileinfo.Of(p); err != nil || j != i {
			t.Errorf("%s: by way of its base %+v, %v; want %+v", name, j, err, i)
		}
		return i
	}
	f := of("f")
	if f.Size != 5 || f.Type() != "file" || !f.Modified.Equal(past) || f.Links != 2 || f.Mode.Perm() != 0o640 {
		t.Errorf("f is %+v", f)
	}
	if f.Created.Before(before) || f.Changed.Before(before) || !f.Accessed.Equal(past) {
		t.Errorf("created %v, changed %v, accessed %v; the test began at %v", f.Created, f.Changed, f.Accessed, before)
	}
	fi, err := os.Lstat(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if from := fileinfo.From(fi); !from.Changed.Equal(f.Changed) || !from.Accessed.Equal(past) {
		t.Errorf("from package os: changed %v, accessed %v", from.Changed, from.Accessed)
	}
	if g := of("g"); g.ID != f.ID {
		t.Errorf("two names of one file have the IDs %v and %v", f.ID, g.ID)
	}
	if l := of("l"); !l.IsLink() || l.ID == f.ID {
		t.Errorf("the link is %+v", l)
	}
	if d := of("."); !d.IsDir() || d.Type() != "directory" {
		t.Errorf("the directory is %+v", d)
	}
	if _, err := fileinfo.Of(place.Place{Root: root, Name: "none", Abs: filepath.Join(dir, "none")}); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}
