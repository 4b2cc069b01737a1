package zipws

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A testHost allows the directory of archives, and counts workspaces.
type testHost struct {
	*roots.Roots
	allowed map[string]bool
}

func (h *testHost) Allow(dir string) error { h.allowed[dir] = true; return nil }
func (h *testHost) Revoke(dir string)      { delete(h.allowed, dir) }

// A scratch is a manager over a directory for archives, and one for its state.
type scratch struct {
	*Workspaces
	t    testing.TB
	dir  string
	host *testHost
}

// newWorkspaces are those over what is in base.
func newWorkspaces(base string) (*Workspaces, *testHost, error) {
	dir := filepath.Join(base, "archives")
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Home: dir, Project: dir})
	if err != nil {
		return nil, nil, err
	}
	s := Settings{MaxSize: 1 << 30, MaxFiles: 100_000, MaxOpen: 32}
	h := &testHost{r, map[string]bool{}}
	return New(Options{Settings: s, Data: filepath.Join(base, "state"), Host: h, Log: slog.New(slog.DiscardHandler), Now: time.Now, Words: someWords()}), h, nil
}

func newScratch(t testing.TB) *scratch {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return scratchIn(t, base)
}

func scratchIn(t testing.TB, base string) *scratch {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(base, "archives"), 0o755); err != nil {
		t.Fatal(err)
	}
	m, h, err := newWorkspaces(base)
	if err != nil {
		t.Fatal(err)
	}
	return &scratch{m, t, filepath.Join(base, "archives"), h}
}

func (s *scratch) path(name string) string { return filepath.Join(s.dir, name) }

func (s *scratch) at(name string) place.Place {
	s.t.Helper()
	p, err := s.host.Resolve(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *scratch) put(name string, content []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), content, 0o640); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scratch) get(name string) []byte {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *scratch) open(name string, o OpenOptions) Opened {
	s.t.Helper()
	opened, err := s.Open(s.t.Context(), s.at(name), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return opened
}

func (s *scratch) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scratch) write(name, content string) {
	s.t.Helper()
	s.must(s.Write(s.t.Context(), "", Name(name), []byte(content), true))
}

func (s *scratch) read(name string) string {
	s.t.Helper()
	var b bytes.Buffer
	_, err := s.Read(s.t.Context(), "", Name(name), 0, -1, &b)
	s.must(err)
	return b.String()
}

// entriesOf lists what is in a directory, sorted.
func entriesOf(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range list {
		all = append(all, e.Name())
	}
	return all
}

func wantCode(t testing.TB, err error, code fault.Code, words ...string) {
	t.Helper()
	got, message := Of(err)
	if err == nil || got != code {
		t.Errorf("error is %v (%s), want %s", err, got, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(message, w) {
			t.Errorf("message %q lacks %q", message, w)
		}
	}
}

// A file is an entry that zipOf writes.
type file struct {
	name, content string
	header        func(*zip.FileHeader)
}

var entryTime = time.Date(2025, 1, 30, 12, 0, 0, 0, time.UTC)

func zipOf(t testing.TB, comment string, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: entryTime}
		if f.header != nil {
			f.header(h)
		}
		w, err := z.CreateHeader(h)
		if err == nil && !strings.HasSuffix(f.name, "/") {
			_, err = io.WriteString(w, f.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.SetComment(comment); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// listing is what an archive holds, checksums verified, one entry a line.
func listing(t testing.TB, path string) string {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer z.Close()
	var out strings.Builder
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatalf("%s: %s: %v", path, f.Name, err)
		}
		fmt.Fprintf(&out, "%s %d %q\n", f.Name, f.Method, content)
	}
	return out.String()
}

// leftovers fails the test for anything that a killed process may have left and
// the next call should have removed.
func (s *scratch) leftovers() {
	s.t.Helper()
	for _, name := range entriesOf(s.t, s.dir) {
		if atomicfile.IsTemp(name) {
			s.t.Errorf("%s is left beside the archive", name)
		}
	}
	state := filepath.Dir(filepath.Join(s.Data, "x"))
	spaces := entriesOf(s.t, filepath.Join(state, workspacesDir))
	for _, name := range spaces {
		if strings.HasPrefix(name, ".") {
			s.t.Errorf("the directory %s is left", name)
			continue
		}
		in := entriesOf(s.t, filepath.Join(state, workspacesDir, name))
		want := 5 // contents, mark, metadata, directory, stamps
		if slices.ContainsFunc(in, func(n string) bool { return strings.HasPrefix(n, "removed-") }) {
			want++
		}
		if len(in) != want || slices.Contains(in, tempName) {
			s.t.Errorf("the workspace %s holds %v", name, in)
		}
	}
	for _, name := range entriesOf(s.t, filepath.Join(state, locksDir)) {
		if name != allLock && !slices.Contains(spaces, name) {
			s.t.Errorf("the lock %s is left", name)
		}
	}
}

// goroot is where the go command has its sources.
func goroot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// someWords are words that only these tests speak.
func someWords() (w Words) {
	v := reflect.ValueOf(&w).Elem()
	for i := range v.NumField() {
		v.Field(i).SetString("<" + v.Type().Field(i).Name + ">")
	}
	return w
}
