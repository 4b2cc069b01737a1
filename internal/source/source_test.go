package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code fault.Code, words string) {
	t.Helper()
	if got, message := fault.Of(err); err == nil || got != code || !strings.Contains(message, words) {
		t.Errorf("%v (%s), want %s with %q", err, got, code, words)
	}
}

// A ref is a path, or one into an archive.
type ref struct {
	at    place.Place
	inner string
}

func (r ref) Archive() (place.Place, string, bool) { return r.at, r.inner, r.inner != "" }
func (r ref) Place() (place.Place, error)          { return r.at, nil }
func (r ref) String() string                       { return "as asked" }

// A member is put into an archive; with a link it is a symbolic link.
type member struct{ name, content, link string }

var when = time.Date(2025, 1, 30, 12, 0, 0, 0, time.UTC)

var members = []member{
	{name: "docs/"},
	{name: "docs/one.txt", content: "first\n"},
	{name: "docs/deep/er/two.html", content: "<!DOCTYPE html><p>second"},
	{name: "docs/deep/here", link: "er/two.html"},
	{name: "docs/loop", link: "loop"},
	{name: "docs/out", link: "/etc/passwd"},
	{name: "docs/secret.key", content: "denied"},
	{name: "docs/to-secret", link: "secret.key"},
	{name: "docs/up", link: "../top.bin"},
	{name: "gone", link: "nowhere"},
	{name: "linked", link: "docs"},
	{name: "top.bin", content: strings.Repeat("\x00\x01", 600_000)},
}

func zipped(t testing.TB) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: when}
		h.SetMode(0o640)
		switch {
		case m.link != "":
			h.SetMode(fs.ModeSymlink | 0o777)
		case strings.HasSuffix(m.name, "/"):
			h.SetMode(fs.ModeDir | 0o750)
		}
		w, err := z.CreateHeader(h)
		must(t, err)
		if m.link+m.content != "" {
			_, err = io.WriteString(w, m.link+m.content)
			must(t, err)
		}
	}
	must(t, z.Close())
	return out.Bytes()
}

func tarred(t testing.TB, packed bool) []byte {
	var out bytes.Buffer
	var to io.WriteCloser = struct {
		io.Writer
		io.Closer
	}{&out, io.NopCloser(nil)}
	if packed {
		to = gzip.NewWriter(&out)
	}
	w := tar.NewWriter(to)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o640, Size: int64(len(m.content)), ModTime: when, Linkname: m.link}
		switch {
		case m.link != "":
			h.Typeflag = tar.TypeSymlink
		case strings.HasSuffix(m.name, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o750
		}
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, m.content)
		must(t, err)
	}
	must(t, w.Close())
	must(t, to.Close())
	return out.Bytes()
}

// each runs f on an archive of members in each kind of format: one of which
// members are at hand, one in which they lie in one piece, and a stream.
func each(t *testing.T, f func(t *testing.T, dir string, at place.Place)) {
	for name, raw := range map[string][]byte{"a.zip": zipped(t), "a.tar": tarred(t, false), "a.tar.gz": tarred(t, true)} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
			f(t, dir, at(t, dir, name))
		})
	}
}

func at(t testing.TB, dir, name string) place.Place {
	t.Helper()
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir, Denied: []string{"*.key"}})
	must(t, err)
	p, err := r.Resolve(filepath.Join(dir, name))
	must(t, err)
	return p
}

func open(t testing.TB, at place.Place) *Archive {
	t.Helper()
	a, err := OpenArchive(t.Context(), at, "as asked")
	must(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

func TestFind(t *testing.T) {
	each(t, func(t *testing.T, dir string, at place.Place) {
		a := open(t, at)
		for name, want := range map[string]string{
			".": ".", "docs": "docs", "docs/one.txt": "docs/one.txt", "docs/deep": "docs/deep",
			"docs/deep/here": "docs/deep/er/two.html", "docs/up": "top.bin", "linked": "docs",
		} {
			if e, err := a.Find(name); err != nil || e.Name != want {
				t.Errorf("%s is %s, %v; want %s", name, e.Name, err, want)
			}
		}
		for _, c := range []struct {
			name  string
			code  fault.Code
			words string
		}{
			{"absent", fault.FSNotFound, at.Abs + "!/absent"},
			{"gone", fault.FSNotFound, at.Abs + "!/gone"},
			{"docs/out", fault.FSNotFound, "/etc/passwd, which is not in the archive"},
			{"docs/loop", fault.FSPathResolution, "loop"},
			{"docs/secret.key", fault.FSAccessDenied, "secret.key"},
			{"docs/to-secret", fault.FSAccessDenied, "to-secret"}, // as it was asked for
		} {
			_, err := a.Find(c.name)
			wantCode(t, err, c.code, c.words)
		}
		if e, err := a.Dir("linked"); err != nil || e.Name != "docs" {
			t.Errorf("%s, %v", e.Name, err)
		}
		_, err := a.Dir("top.bin")
		wantCode(t, err, fault.FSIsFile, "as asked is a file")
	})
}

// What is denied is listed nowhere, and counts nothing.
func TestListing(t *testing.T) {
	each(t, func(t *testing.T, dir string, at place.Place) {
		a := open(t, at)
		names := func(list []pack.Entry) (all []string) {
			for _, e := range list {
				all = append(all, e.Name)
			}
			return all
		}
		if have, want := names(a.Children("docs")), []string{"docs/deep", "docs/loop", "docs/one.txt", "docs/out", "docs/to-secret", "docs/up"}; !slices.Equal(have, want) {
			t.Errorf("%q, want %q", have, want)
		}
		walked := func(name string, levels int, after string) string {
			var all []string
			deep := a.Walk(name, levels, after, func(rel string, _ pack.Entry) { all = append(all, rel) })
			return fmt.Sprintf("%s (%d)", strings.Join(all, " "), deep)
		}
		for _, c := range []struct {
			name   string
			levels int
			after  string
			want   string
		}{
			{".", 0, "", "docs gone linked top.bin (1)"},
			{"docs", 0, "", "deep loop one.txt out to-secret up (1)"},
			{"docs", 1, "", "deep deep/er deep/here loop one.txt out to-secret up (1)"},
			{"docs", 9, "", "deep deep/er deep/er/two.html deep/here loop one.txt out to-secret up (0)"},
			{"docs", 9, "deep/er/two.html", "deep/here loop one.txt out to-secret up (0)"},
			{"docs/deep/er", 9, "", "two.html (0)"},
		} {
			if have := walked(c.name, c.levels, c.after); have != c.want {
				t.Errorf("%+v: %s", c, have)
			}
		}
		if have := a.Size("docs"); have != int64(len("first\n")+len("<!DOCTYPE html><p>second")) {
			t.Errorf("docs has %d bytes", have)
		}
		types, err := a.Types(t.Context(), map[string]bool{"docs/one.txt": true, "docs/deep/er/two.html": true, "top.bin": true, "docs/up": true})
		must(t, err)
		if want := map[string]string{"docs/one.txt": "text/plain", "docs/deep/er/two.html": "text/html", "top.bin": "application/octet-stream"}; fmt.Sprint(types) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", types, want)
		}
		link, ok := a.Lookup("docs/up")
		if i := a.Info(link); !ok || !i.IsLink || i.LinkTarget != "../top.bin" || i.Octal != "" || i.Path != at.Abs+"!/docs/up" {
			t.Errorf("%+v", i)
		}
		one, _ := a.Lookup("docs/one.txt")
		if i := a.Info(one); i.Name != "one.txt" || i.Size != 6 || i.Octal != "0640" || i.Modified != "2025-01-30T12:00:00.000Z" || i.Created != i.Modified {
			t.Errorf("%+v", i)
		}
	})
}

// A file is read and described alike on disk and in an archive.
func TestOpenAndStat(t *testing.T) {
	each(t, func(t *testing.T, dir string, archive place.Place) {
		must(t, os.WriteFile(filepath.Join(dir, "one.txt"), []byte("first\n"), 0o640))
		must(t, os.Chmod(filepath.Join(dir, "one.txt"), 0o640))
		must(t, os.Chtimes(filepath.Join(dir, "one.txt"), when, when))
		disk, packed := ref{at: at(t, dir, "one.txt")}, ref{archive, "docs/one.txt"}
		for _, r := range []ref{disk, packed} {
			f, err := Open(t.Context(), r)
			must(t, err)
			b, err := io.ReadAll(f)
			if err != nil || string(b) != "first\n" || filepath.Base(f.Name) != "one.txt" || filepath.Base(f.Path) != "one.txt" {
				t.Errorf("%q, %v, named %s, at %s", b, err, f.Name, f.Path)
			}
			if onDisk := r.inner == ""; (f.Disk != nil) != onDisk || onDisk != (f.Size == 6) {
				t.Errorf("size %d, on disk %v", f.Size, f.Disk != nil)
			}
			must(t, f.Close())
			i, err := Stat(t.Context(), r)
			if err != nil || i.Name != "one.txt" || i.MIMEType != "text/plain" || i.Size != 6 || i.Octal() != "0640" || !i.Modified.Equal(when) || i.Created.IsZero() != (r.inner != "") {
				t.Errorf("%+v, %v", i, err)
			}
		}
		f, err := Open(t.Context(), ref{archive, "docs/deep/here"})
		must(t, err)
		if want := archive.Abs + "!/docs/deep/er/two.html"; f.Path != want || f.Name != "docs/deep/er/two.html" {
			t.Errorf("%s is at %s, want %s", f.Name, f.Path, want)
		}
		must(t, f.Close())
		top, err := Stat(t.Context(), ref{archive, "."})
		if err != nil || !top.IsDir() || top.Name != filepath.Base(archive.Abs) || top.MIMEType != "" {
			t.Errorf("%+v, %v", top, err)
		}
		_, err = Open(t.Context(), ref{archive, "docs"})
		wantCode(t, err, fault.FSIsDirectory, "docs")
		_, err = Stat(t.Context(), ref{archive, "absent"})
		wantCode(t, err, fault.FSNotFound, "absent")
		_, err = Open(t.Context(), ref{at(t, dir, "one.txt"), "inside"})
		wantCode(t, err, fault.ArchiveDetect, "as asked")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if filepath.Ext(archive.Abs) != ".zip" { // of which the list is at hand
			if _, err := Open(ctx, packed); err == nil {
				t.Error("opened though the call had ended")
			}
		}
	})
}

// The first bytes of a stream can be read again, and the rest once in order.
func TestStream(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), Replayed/10+1000)
	s, err := NewStream(bytes.NewReader(content))
	must(t, err)
	b := make([]byte, 4096)
	for _, offset := range []int{0, Replayed - 5000, 7} {
		if n, err := s.ReadAt(b, int64(offset)); err != nil || !bytes.Equal(b[:n], content[offset:offset+4096]) {
			t.Errorf("at %d: %d, %v", offset, n, err)
		}
	}
	if n, err := s.ReadAt(b, Replayed-1000); err != nil || n != 4096 || !bytes.Equal(b, content[Replayed-1000:Replayed+3096]) {
		t.Errorf("across: %d, %v", n, err)
	}
	if _, err := s.ReadAt(b, Replayed); err == nil {
		t.Error("what the stream has passed was read again")
	}
	rest := content[Replayed+3096:]
	b = make([]byte, len(rest)+1)
	if n, err := s.ReadAt(b, Replayed+3096); err != io.EOF || !bytes.Equal(b[:n], rest) {
		t.Errorf("the rest: %d of %d, %v", n, len(rest), err)
	}
	small, err := NewStream(strings.NewReader("few"))
	must(t, err)
	if n, err := small.ReadAt(b[:10], 0); err != io.EOF || string(b[:n]) != "few" {
		t.Errorf("%d, %v", n, err)
	}
}
