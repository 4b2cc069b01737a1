package zipfs_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/tools/txtar"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/ops/zipfs"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the tools answer")

// A bench is all zipfs tools over a scratch directory.
type bench struct {
	dir, out, state string
	app             *app.App
}

// newBench mounts the tools with settings.
func newBench(t *testing.T, env map[string]string) *bench {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: filepath.Join(base, "in"), out: filepath.Join(base, "out"), state: filepath.Join(base, "state")}
	for _, dir := range []string{b.dir, b.out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	settings := map[string]string{"CONDUIT_TOOLSETS": zipfs.Toolset, "CONDUIT_ALLOWED_PATHS": b.dir, "CONDUIT_PROJECT_ROOT": b.dir, "HOME": b.dir,
		"CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_ZIP_DATA_DIR": b.state}
	maps.Copy(settings, env)
	b.app, err = app.New(app.Options{Environ: settings})
	t.Cleanup(b.app.Close)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// call runs a tool and returns the text of its answer.
func (b *bench) call(t *testing.T, tool, args string) (string, *mcp.CallToolResult) {
	t.Helper()
	res, err := b.app.Call(t.Context(), tool, json.RawMessage(b.show(args)))
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text, res
}

func (b *bench) show(s string) string {
	return strings.NewReplacer("$DIR", b.dir, "$OUT", b.out, "$STATE", b.state).Replace(s)
}

var (
	uuid      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
)

func (b *bench) pretty(s string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(s), "", "  ") == nil {
		s = out.String()
	}
	s = strings.NewReplacer(b.dir, "$DIR", b.out, "$OUT", b.state, "$STATE").Replace(s)
	s = uuid.ReplaceAllString(s, "$$ID")
	return timestamp.ReplaceAllStringFunc(s, func(at string) string {
		if when, err := time.Parse(time.RFC3339, at); err == nil && time.Since(when).Abs() < time.Hour {
			return "$TIME"
		}
		return at
	})
}

func (b *bench) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pack makes an archive of files, in order.
func pack(t *testing.T, files []txtar.File) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: time.Date(2025, 1, 30, 12, 0, 0, 0, time.UTC)}
		if f.Name == "mimetype" || strings.HasSuffix(f.Name, "/") {
			h.Method = zip.Store
		}
		name, target, link := strings.Cut(f.Name, " -> ")
		if link {
			h.Name = name
			h.SetMode(os.ModeSymlink | 0o777)
			f.Data = []byte(target)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write(f.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tarball makes a tar.gz of one file.
func tarball(t *testing.T, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: "dir/file.txt", Mode: 0o644, Size: int64(len(content)), ModTime: time.Date(2025, 1, 30, 12, 0, 0, 0, time.UTC)})
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err = errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestGolden runs testdata/ops/zipfs_*/*.txtar of the repository. A case has:
//
//	env             settings, KEY=VALUE a line
//	in/NAME         a file in the allowed directory, $DIR
//	zip/NAME!ENTRY  an entry of the archive $DIR/NAME, "ENTRY -> TARGET" a link
//	before          what happens first, one a line: TOOL ARGUMENTS,
//	                write F "go-quoted", repeat F N "go-quoted", remove F,
//	                encrypt, method, understate and damage F (make its first
//	                entry unreadable), zip F (a bomb), tar F "content"
//	call            the arguments
//	want            the response, indented; $TIME for the present, $ID for ids
//	after/NAME      the content of $DIR/NAME after the call
//	after/NAME!     the entries of an archive after the call
func TestGolden(t *testing.T) {
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Join("..", "..", "testdata", "ops")
	for _, tool := range set.Tools() {
		if tool.Toolset != zipfs.Toolset {
			continue
		}
		cases, err := filepath.Glob(filepath.Join(top, tool.Name, "*.txtar"))
		if err != nil || len(cases) == 0 {
			t.Errorf("no golden cases of %s", tool.Name)
		}
		seen := ""
		for _, path := range cases {
			t.Run(tool.Name+"/"+strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
				seen += golden(t, tool.Name, path)
			})
		}
		for _, code := range set.Ops(tool.Name)[0].Errors {
			if !strings.Contains(seen, strconv.Quote(string(code))) && !slices.Contains(elsewhere, string(code)) && !(tool.Name == "zipfs_open" && code == zipws.ConflictDetected) {
				t.Errorf("no case of %s has the code %s", tool.Name, code)
			}
		}
	}
}

// elsewhere are codes that files alone cannot cause; tests of their own do, as
// of an archive that is modified while it is opened.
var elsewhere = []string{string(zipws.Locked), string(zipws.IOError), string(zipws.AccessDenied), string(zipws.SyncFailed)}

func golden(t *testing.T, tool, path string) string {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string) string {
		for _, f := range a.Files {
			if f.Name == name {
				return string(f.Data)
			}
		}
		return ""
	}
	env := map[string]string{}
	for line := range strings.Lines(part("env")) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[k] = v
		}
	}
	b := newBench(t, env)
	archives := map[string][]txtar.File{}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "in/"); ok {
			b.write(t, filepath.Join(b.dir, name), string(f.Data))
		}
		if name, ok := strings.CutPrefix(f.Name, "zip/"); ok {
			archive, entry, _ := strings.Cut(name, "!")
			f.Name = entry
			archives[archive] = append(archives[archive], f)
		}
	}
	for name, files := range archives {
		b.write(t, filepath.Join(b.dir, name), string(pack(t, files)))
	}
	for line := range strings.Lines(part("before")) {
		if line = strings.TrimSpace(line); line != "" {
			b.prepare(t, b.show(line))
		}
	}
	text, res := b.call(t, tool, part("call"))
	got := map[string]string{"want": b.pretty(text)}
	if structured, err := json.Marshal(res.StructuredContent); !res.IsError && (err != nil || b.pretty(string(structured)) != got["want"]) {
		t.Errorf("structured content is %s", structured)
	}
	if failed := strings.HasPrefix(text, `{"error":`); failed != res.IsError {
		t.Errorf("isError is %v: %s", res.IsError, text)
	}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "after/"); ok {
			got[f.Name] = b.after(t, name)
		}
	}
	if *update {
		if !slices.ContainsFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" }) {
			a.Files = append(a.Files, txtar.File{Name: "want"})
		}
		for i, f := range a.Files {
			if have, ok := got[f.Name]; ok {
				a.Files[i].Data = []byte(strings.TrimSuffix(have, "\n") + "\n")
			}
		}
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, have := range got {
		if want := part(name); strings.TrimSpace(want) != strings.TrimSpace(have) {
			t.Errorf("%s is\n%s\nwant\n%s", name, have, want)
		}
	}
	return text
}

// prepare does one line of before.
func (b *bench) prepare(t *testing.T, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	name, text, _ := strings.Cut(rest, " ")
	at := name
	if !filepath.IsAbs(at) {
		at = filepath.Join(b.dir, at)
	}
	unquote := func(s string) string {
		u, err := strconv.Unquote(s)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return u
	}
	switch verb {
	case "write":
		b.write(t, at, unquote(text))
	case "repeat":
		count, what, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		b.write(t, at, strings.Repeat(unquote(what), n))
	case "remove":
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
	case "zip": // an archive of one entry that is much smaller than its content
		b.write(t, at, string(pack(t, []txtar.File{{Name: "zeros", Data: make([]byte, 2<<20)}})))
	case "tar":
		b.write(t, at, string(tarball(t, unquote(text))))
	case "method", "encrypt", "understate", "damage":
		raw, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		record := bytes.Index(raw, []byte("PK\x01\x02"))
		switch verb {
		case "encrypt":
			raw[record+8] |= 1
		case "method":
			raw[record+10] = 99
		case "understate":
			raw[record+24] = 3
		case "damage":
			raw[30+len("mimetype")+9+2] ^= 1 // 9 is the length of its extra field
		}
		b.write(t, at, string(raw))
	default:
		if text, res := b.call(t, verb, rest); res.IsError {
			t.Fatalf("%s: %s", line, text)
		}
	}
}

// after tells what a file holds, or an archive.
func (b *bench) after(t *testing.T, name string) string {
	t.Helper()
	name, archive := strings.CutSuffix(name, "!")
	if !archive {
		content, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil {
			return "(missing)"
		}
		return string(content)
	}
	z, err := zip.OpenReader(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
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
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s method %d: %q\n", f.Name, f.Method, content)
	}
	return out.String()
}

// The files of an open session are for other tools, and only while it is open.
func TestWorkspaceIsAllowedWhileOpen(t *testing.T) {
	b := newBench(t, nil)
	b.write(t, filepath.Join(b.dir, "a.zip"), string(pack(t, []txtar.File{{Name: "a", Data: []byte("a")}})))
	file := filepath.Join(b.state, "workspaces", "a", "contents", "a")
	b.prepare(t, `zipfs_open {"path": "a.zip"}`)
	if _, err := b.app.Env.Paths.Resolve(file); err != nil {
		t.Error(err)
	}
	b.prepare(t, `zipfs_close {}`)
	if _, err := b.app.Env.Paths.Resolve(file); err == nil {
		t.Error("the directory of a closed session is allowed")
	}
}

// A session that another server closed and this one opens again under its name
// has another directory, which is allowed in its turn.
func TestWorkspaceMadeAnewIsAllowed(t *testing.T) {
	b := newBench(t, nil)
	b.write(t, filepath.Join(b.dir, "a.zip"), string(pack(t, []txtar.File{{Name: "a", Data: []byte("a")}})))
	other := newBench(t, map[string]string{"CONDUIT_ZIP_DATA_DIR": b.state, "CONDUIT_ALLOWED_PATHS": b.dir, "CONDUIT_PROJECT_ROOT": b.dir})
	b.prepare(t, `zipfs_open {"path": "a.zip"}`)
	other.prepare(t, `zipfs_close {}`)
	b.prepare(t, `zipfs_open {"path": "a.zip"}`)
	if _, err := b.app.Env.Paths.Resolve(filepath.Join(b.state, "workspaces", "a", "contents", "a")); err != nil {
		t.Error(err)
	}
}
