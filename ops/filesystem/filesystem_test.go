package filesystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/rewrite"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

// family returns the ops of this package.
func family(t testing.TB) *registry.Set {
	t.Helper()
	set, err := registry.Linked(func(tool registry.Tool, _ registry.Desc) bool { return tool.Toolset == Toolset })
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func op(t testing.TB, tool string) *registry.Op {
	t.Helper()
	list := family(t).Ops(tool)
	if len(list) != 1 {
		t.Fatalf("%s has %d ops", tool, len(list))
	}
	return list[0]
}

func TestGolden(t *testing.T) {
	ops := family(t).AllOps()
	if len(ops) != 14 {
		t.Fatalf("%d tools", len(ops))
	}
	for _, op := range ops {
		t.Run(op.ID(), func(t *testing.T) { optest.Golden(t, op) })
	}
}

func TestConform(t *testing.T) { optest.Conform(t, family(t)) }

// maxList is what tools/list of the toolset may take, in bytes.
const maxList = 12 << 10

func TestToolsFit(t *testing.T) {
	set := family(t)
	a, err := app.New(app.Options{Environ: map[string]string{"CONDUIT_TOOLSETS": Toolset, "CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_JOURNAL_DIR": "NONE"}})
	t.Cleanup(a.Close)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(mcp.ListToolsResult{Tools: a.Mux.Tools()})
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > maxList {
		t.Errorf("tools/list takes %d bytes, at most %d are allowed", len(b), maxList)
	}
	for _, tool := range set.Tools() {
		if !tool.Rooted {
			t.Errorf("%s may leave the project root", tool.Name)
		}
	}
}

// put writes a file of the bench.
func put(t testing.TB, b *optest.Bench, name, content string) {
	t.Helper()
	full := filepath.Join(b.Dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func holds(t testing.TB, b *optest.Bench, name string) string {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(b.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func TestStats(t *testing.T) {
	b := optest.New(t, op(t, "stat_items"), nil)
	put(t, b, "d/f.txt", "hello")
	past := time.Date(2001, 2, 3, 4, 5, 6, 7e6, time.UTC)
	if err := os.Chtimes(filepath.Join(b.Dir, "d/f.txt"), past.Add(time.Hour), past); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(b.Dir, "d/f.txt"), 0o640); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"l": "d/f.txt", "d/ld": "../d"} {
		if err := os.Symlink(target, filepath.Join(b.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	var got []statResult
	if err := json.Unmarshal([]byte(b.Text(t, `{"paths": ["d/f.txt", "l", "d", "d/ld", "d/ld/f.txt"]}`)), &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		path            string
		file, dir, link bool
	}{{"d/f.txt", true, false, false}, {"l", true, false, true}, {"d", false, true, false}, {"d/ld", false, true, true}, {"d/ld/f.txt", true, false, false}} {
		s := got[i].Stats
		if got[i].Status != "success" || s == nil {
			t.Fatalf("%s: %+v", want.path, got[i])
		}
		if s.Path != want.path || s.IsFile != want.file || s.IsDirectory != want.dir || s.IsLink != want.link {
			t.Errorf("%s: %+v", want.path, s)
		}
		if want.file && (s.Size != 5 || s.Mode != "640" || s.Modified != "2001-02-03T04:05:06.007Z" || s.Accessed != "2001-02-03T05:05:06.007Z" ||
			s.Changed < "2020" || s.Created < "2020" || int(s.UID) != os.Getuid()) {
			t.Errorf("%s: %+v", want.path, s)
		}
	}
}

func TestListWithStats(t *testing.T) {
	b := optest.New(t, op(t, "list_files"), nil)
	put(t, b, "d/f.txt", "hello")
	if err := os.WriteFile(filepath.Join(b.Out, "secret"), []byte("what lies outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"d/in": "../d", "d/out": filepath.Join(b.Out, "secret")} {
		if err := os.Symlink(target, filepath.Join(b.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	var got []struct {
		Path  string
		Stats stats
	}
	if err := json.Unmarshal([]byte(b.Text(t, `{"path": "d", "include_stats": true}`)), &got); err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	f, in, out := got[0], got[1], got[2]
	if f.Path != "d/f.txt" || f.Stats.Path != "d/f.txt" || !f.Stats.IsFile || f.Stats.Size != 5 || f.Stats.Mode != "644" {
		t.Errorf("the file: %+v", f)
	}
	if in.Path != "d/in/" || in.Stats.Path != "d/in" || !in.Stats.IsDirectory || !in.Stats.IsLink {
		t.Errorf("the link: %+v", in)
	}
	if out.Path != "d/out" || out.Stats.IsFile || out.Stats.Size == 17 || !out.Stats.IsLink || out.Stats.Mode == "600" {
		t.Errorf("the link outside: %+v", out)
	}
	var file stats
	if err := json.Unmarshal([]byte(b.Text(t, `{"path": "d/f.txt"}`)), &file); err != nil || file.Path != "d/f.txt" || !file.IsFile || file.Size != 5 {
		t.Errorf("of a file: %+v, %v", file, err)
	}
}

func TestLargeFilesAreReadWhole(t *testing.T) {
	b := optest.New(t, op(t, "read_content"), nil)
	want := strings.Repeat("<a href=\"x\">é</a>\n", 40_000)
	put(t, b, "big.txt", want)
	text := b.Text(t, `{"paths": ["big.txt", "big.txt"]}`)
	if strings.Contains(text, `\u003c`) {
		t.Error("made fit for HTML")
	}
	var got []struct{ Content string }
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != 2 {
		t.Fatal(err)
	}
	for i := range got {
		if got[i].Content != want {
			t.Errorf("%d bytes, want %d", len(got[i].Content), len(want))
		}
	}
}

// Bytes outside of what is changed stay as they are, whatever tool changes them.
func TestChangesAreFaithful(t *testing.T) {
	const before = "\xef\xbb\xbfone\r\ntwo\n\tthree\r\n\tfour\xff\r\nfive"
	for _, c := range []struct{ tool, args, after string }{
		{"edit_file", `{"changes": [{"path": "f", "search_pattern": "three\nfour\ufffd", "start_line": 1}]}`, ""},
		{"edit_file", `{"changes": [{"path": "f", "search_pattern": "one", "start_line": 1, "replace_content": "1\n1.5"}]}`, "\xef\xbb\xbf1\r\n1.5\r\ntwo\n\tthree\r\n\tfour\xff\r\nfive"},
		{"edit_file", `{"changes": [{"path": "f", "search_pattern": "three", "start_line": 2, "replace_content": "if {\n\tx\n}"}]}`, "\xef\xbb\xbfone\r\ntwo\n\tif {\r\n\t\tx\r\n\t}\r\n\tfour\xff\r\nfive"},
		{"edit_file", `{"changes": [{"path": "f", "start_line": 6, "replace_content": "six"}, {"path": "f", "start_line": 2, "replace_content": "1.5"}]}`, "\xef\xbb\xbfone\r\n1.5\ntwo\n\tthree\r\n\tfour\xff\r\nfive\r\nsix"},
		{"edit_file", `{"changes": [{"path": "f", "search_pattern": "e$", "start_line": 3, "replace_content": "$&\n!", "use_regex": true, "match_occurrence": 1}]}`, "\xef\xbb\xbfone\r\ntwo\n\tthree\r\n!\r\n\tfour\xff\r\nfive"},
		{"apply_diff", `{"changes": [{"path": "f", "diffs": [{"search": "one\ntwo", "replace": "1\n2\n", "start_line": 1, "end_line": 2}, {"search": "five", "replace": "5", "start_line": 5, "end_line": 5}]}]}`, "\xef\xbb\xbf1\r\n2\n\tthree\r\n\tfour\xff\r\n5"},
		{"apply_diff", `{"changes": [{"path": "f", "diffs": [{"search": "", "replace": "2.5\n2.6", "start_line": 3, "end_line": 2}]}]}`, "\xef\xbb\xbfone\r\ntwo\n2.5\r\n2.6\r\n\tthree\r\n\tfour\xff\r\nfive"},
		{"replace_content", `{"paths": ["f"], "operations": [{"search": "o", "replace": "0\n"}, {"search": "^\t", "replace": "  ", "use_regex": true}]}`, "\xef\xbb\xbf0\r\nne\r\ntw0\n\n  three\r\n  f0\r\nur\xff\r\nfive"},
	} {
		b := optest.New(t, op(t, c.tool), nil)
		put(t, b, "f", before)
		if err := os.Chmod(filepath.Join(b.Dir, "f"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := c.after
		if want == "" { // a miss
			want = before
		}
		text := b.Text(t, c.args)
		if got := holds(t, b, "f"); got != want {
			t.Errorf("%s %s: %q, want %q (%s)", c.tool, c.args, got, want, text)
		}
		if fi, err := os.Stat(filepath.Join(b.Dir, "f")); err != nil || fi.Mode() != 0o600 {
			t.Errorf("%s: the mode is %v, %v", c.tool, fi.Mode(), err)
		}
	}
}

// What is destroyed can be brought back by the id in the results.
func TestChangesAreKept(t *testing.T) {
	for tool, args := range map[string]string{
		"write_content":   `{"items": [{"path": "f", "content": "new"}]}`,
		"delete_items":    `{"paths": ["f"]}`,
		"move_items":      `{"operations": [{"source": "f", "destination": "g"}]}`,
		"copy_items":      `{"operations": [{"source": "h", "destination": "f"}]}`,
		"replace_content": `{"paths": ["f"], "operations": [{"search": "o", "replace": "0"}]}`,
		"edit_file":       `{"changes": [{"path": "f", "start_line": 1, "replace_content": "x"}]}`,
		"apply_diff":      `{"changes": [{"path": "f", "diffs": [{"search": "old", "replace": "new", "start_line": 1, "end_line": 1}]}]}`,
	} {
		dir := filepath.Join(t.TempDir(), "journal")
		b := optest.New(t, op(t, tool), map[string]string{"CONDUIT_JOURNAL_DIR": dir})
		put(t, b, "f", "old\n")
		put(t, b, "h", "other\n")
		if text := b.Text(t, args); !strings.Contains(text, `"change_id":"`) {
			t.Errorf("%s: %s", tool, text)
		}
	}
}

// A call of which every item failed is an error, whatever shape its result has.
func TestFailuresAreErrors(t *testing.T) {
	for tool, args := range map[string]string{
		"stat_items":      `{"paths": ["none"]}`,
		"replace_content": `{"paths": ["none"], "operations": [{"search": "o", "replace": "0"}]}`,
		"edit_file":       `{"changes": [{"path": "none", "start_line": 1, "replace_content": "x"}]}`,
		"apply_diff":      `{"changes": [{"path": "none", "diffs": [{"search": "", "replace": "new", "start_line": 1, "end_line": 0}]}]}`,
	} {
		b := optest.New(t, op(t, tool), nil)
		put(t, b, "f", "old\n")
		res, err := b.Call(t.Context(), args)
		if err != nil || !res.IsError {
			t.Errorf("%s: %v, %v", tool, res, err)
		}
		res, err = b.Call(t.Context(), strings.Replace(args, `"none"`, `"f"`, 1))
		if err != nil || res.IsError {
			t.Errorf("%s with a file: %v, %v", tool, res, err)
		}
	}
}

func TestSearchShowsTheFirstMatches(t *testing.T) {
	b := optest.New(t, op(t, "search_files"), nil)
	put(t, b, "a.txt", strings.Repeat("xx\n", maxHits))
	put(t, b, "b.txt", strings.Repeat("y", 3*maxShown)+"z")
	res, err := b.Call(t.Context(), `{"regex": "x"}`)
	if err != nil || len(res.Content) != 2 {
		t.Fatal(res, err)
	}
	var got struct{ Results []hit }
	if err := json.Unmarshal([]byte(res.Content[0].(*mcp.TextContent).Text), &got); err != nil || len(got.Results) != maxHits {
		t.Errorf("%d results, %v", len(got.Results), err)
	}
	if last := got.Results[maxHits-1]; last.Line != maxHits/2 || *last.Match != "x" {
		t.Errorf("the last is %+v", last)
	}
	if remark := res.Content[1].(*mcp.TextContent).Text; !strings.Contains(remark, fmt.Sprintf("the first %d matches", maxHits)) {
		t.Error(remark)
	}
	if text := b.Text(t, `{"regex": "y+z"}`); len(text) > 3*maxShown || !strings.Contains(text, `y…"`) {
		t.Errorf("a long line is shown in %d bytes", len(text))
	}
}

func TestClippedKeepsCharactersWhole(t *testing.T) {
	for n := range 4 {
		long := strings.Repeat("x", n) + strings.Repeat("€", maxShown)
		if got := clipped(long); !utf8.ValidString(got) || len(got) > maxShown+len("…") || len(got) < maxShown-1 || !strings.HasPrefix(long, strings.TrimSuffix(got, "…")) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	if got := clipped("short"); got != "short" {
		t.Error(got)
	}
}

// A file that somebody else changes while it is edited stays as they left it.
func TestRewriteMindsOthers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "f")
	e := rewrite.Engine{Writer: atomicfile.New(), MaxBytes: 100}
	for what, meanwhile := range map[string]func() error{
		"changed": func() error { return os.WriteFile(name, []byte("theirs"), 0o644) },
		"removed": func() error { return os.Remove(name) },
	} {
		if err := os.WriteFile(name, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		var p registry.Path
		if err := p.UnmarshalText([]byte("f")); err != nil {
			t.Fatal(err)
		}
		p.Vet(r.ResolveBelow)
		changed, err := rewritten(t.Context(), e, p, nil, true, func([]byte) ([]byte, error) { return []byte("ours"), meanwhile() })
		if code, message := fault.Of(err); changed || code != fault.PreconditionFailed {
			t.Errorf("%s: %v, %s %s", what, changed, code, message)
		}
		if got, err := os.ReadFile(name); err == nil && string(got) != "theirs" || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: it holds %q, %v", what, got, err)
		}
	}
}

func TestCancelledSearchEnds(t *testing.T) {
	b := optest.New(t, op(t, "search_files"), nil)
	put(t, b, "a.txt", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Call(ctx, `{"regex": "x"}`); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestChown(t *testing.T) {
	b := optest.New(t, op(t, "chown_items"), nil)
	put(t, b, "f", "")
	uid, gid := os.Getuid(), os.Getgid()
	want := fmt.Sprintf(`[{"path":"f","success":true,"uid":%d,"gid":%d}]`, uid, gid)
	if got := b.Text(t, fmt.Sprintf(`{"paths": ["f"], "uid": %d, "gid": %d}`, uid, gid)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
