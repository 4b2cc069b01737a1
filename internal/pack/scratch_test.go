package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// scratch is an allowed directory "in" beside "out", which is not allowed.
type scratch struct {
	t     testing.TB
	dir   string
	roots *roots.Roots
}

func newScratch(t testing.TB, denied ...string) scratch {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { discardAll(top) })
	dir := filepath.Join(top, "in")
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir, Denied: denied})
	if err != nil {
		t.Fatal(err)
	}
	return scratch{t, dir, r}
}

// discardAll makes every directory below top writable again.
func discardAll(top string) {
	filepath.WalkDir(top, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
}

func (s scratch) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s scratch) at(name string) place.Place {
	s.t.Helper()
	p, err := s.roots.Resolve(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s scratch) write(name string, content []byte) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	must(s.t, os.WriteFile(s.path(name), content, 0o644))
}

func (s scratch) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	must(s.t, err)
	return string(b)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s scratch) create(to string, o CreateOptions, sources ...string) (Report, error) {
	s.t.Helper()
	var list []Source
	for _, name := range sources {
		src := Source{Asked: s.path(name)}
		src.Place, src.Err = s.roots.Resolve(s.path(name))
		list = append(list, src)
	}
	return Create(s.t.Context(), atomicfile.New(), s.at(to), list, o)
}

const plenty = 10 << 30

func (s scratch) extract(from, to string, o ExtractOptions) (Extracted, error) {
	s.t.Helper()
	return s.extractWith(s.t.Context(), from, to, o)
}

func (s scratch) extractWith(ctx context.Context, from, to string, o ExtractOptions) (Extracted, error) {
	s.t.Helper()
	if o.MaxBytes == 0 {
		o.MaxBytes = plenty
	}
	return Extract(ctx, atomicfile.New(), s.at(from), s.at(to), o)
}

// tree lists all below a directory, one line each: path, type, permissions,
// time to the second, and content or target.
func (s scratch) tree(name string) []string {
	s.t.Helper()
	var list []string
	top := s.path(name)
	must(s.t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := os.Lstat(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, path)
		line := fmt.Sprintf("%s %v %d", rel, fi.Mode(), fi.ModTime().Unix())
		switch {
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d bytes, %x", len(b), sha256.Sum256(b))
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + target
		}
		list = append(list, line)
		return nil
	}))
	return list
}

// names lists the paths of all below the directory, sorted.
func (s scratch) names(name string) []string {
	s.t.Helper()
	var list []string
	must(s.t, filepath.WalkDir(s.path(name), func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(s.path(name), path); rel != "." {
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	}))
	return list
}

// untouched fails the test where something was written outside, or is in the
// allowed directory beyond what is named.
func (s scratch) untouched(names ...string) {
	s.t.Helper()
	have := s.names(".")
	slices.Sort(have)
	slices.Sort(names)
	if !slices.Equal(have, names) {
		s.t.Errorf("the directory holds %q, want %q", have, names)
	}
	if list, err := os.ReadDir(filepath.Join(s.dir, "..", "out")); err != nil || len(list) > 0 {
		s.t.Errorf("outside there is %v, %v", list, err)
	}
	if list, err := os.ReadDir(filepath.Join(s.dir, "..")); err != nil || len(list) != 2 {
		s.t.Errorf("above there is %v, %v", list, err)
	}
}

func wantCode(t testing.TB, err error, code fault.Code, contains ...string) {
	t.Helper()
	have, msg := fault.Of(err)
	if err == nil || have != code {
		t.Errorf("error is %s (%v), want %s", have, err, code)
		return
	}
	for _, part := range contains {
		if !strings.Contains(msg, part) {
			t.Errorf("message %q lacks %q", msg, part)
		}
	}
}

// An in is an entry of an archive that a test makes.
type in struct {
	name, content, link string
	hard                string
	mode                fs.FileMode // 0 for 0644, or 0755 of directories
	kind                byte        // of a tar entry, where it is not told by the rest
}

func (e in) perm() fs.FileMode {
	if strings.HasSuffix(e.name, "/") {
		return cmp.Or(e.mode, 0o755)
	}
	return cmp.Or(e.mode, 0o644)
}

var when = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)

func makeTar(t testing.TB, entries ...in) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if strings.HasSuffix(e.name, "/") {
			e.content = ""
		}
		h := &tar.Header{Name: e.name, Mode: int64(e.perm().Perm()), ModTime: when, Typeflag: tar.TypeReg, Size: int64(len(e.content))}
		if e.perm()&fs.ModeSetuid != 0 {
			h.Mode |= 0o7000
		}
		switch {
		case e.kind != 0:
			h.Typeflag = e.kind
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case e.hard != "":
			h.Typeflag, h.Linkname = tar.TypeLink, e.hard
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, e.content)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func makeTarGz(t testing.TB, entries ...in) []byte {
	t.Helper()
	return gzipped(t, makeTar(t, entries...))
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

func makeZip(t testing.TB, entries ...in) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		mode := e.perm()
		if e.link != "" {
			mode = fs.ModeSymlink | 0o777
		}
		if strings.HasSuffix(e.name, "/") {
			mode |= fs.ModeDir
		}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		must(t, err)
		if !mode.IsDir() {
			_, err = io.WriteString(f, e.content+e.link)
			must(t, err)
		}
	}
	must(t, w.Close())
	return b.Bytes()
}
