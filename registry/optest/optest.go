// Package optest runs ops in scratch directories through the chain that is
// shipped and returns what a client is sent: all but the framing of a transport.
// Servers there have no log, no background work and, unless env names one, no
// journal.
package optest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/tools/txtar"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the ops answer")

// A Bench is an op mounted over a scratch directory.
type Bench struct {
	Dir string // the one allowed directory, and the base of relative paths
	Out string // a directory beside it that is not allowed
	op  *registry.Op
	set *registry.Set
	app *app.App
}

// New mounts op over new scratch directories, with env as its settings. Its
// tool is the one that the program has linked in.
func New(t testing.TB, op *registry.Op, env map[string]string) *Bench {
	t.Helper()
	linked, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := linked.Tool(op.Tool)
	if !ok { // an op of a test's own
		if tool = (registry.Tool{Name: op.Tool}); op.Name != "" {
			tool.Discriminator = "operation"
		}
	}
	set, err := registry.NewSet([]registry.Tool{tool}, []*registry.Op{op})
	if err != nil {
		t.Fatal(err)
	}
	return mount(t, set, op, env)
}

// mount serves set over new scratch directories; op is the one that Call runs.
func mount(t testing.TB, set *registry.Set, op *registry.Op, env map[string]string) *Bench {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Sizes that messages tell count the paths in responses, so these are of one
	// length everywhere.
	const length = 120
	base = filepath.Join(base, strings.Repeat("x", max(1, length-len(base))))
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	b := &Bench{Dir: filepath.Join(base, "in"), Out: filepath.Join(base, "out"), op: op, set: set}
	for _, dir := range []string{b.Dir, b.Out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{
		"CONDUIT_ALLOWED_PATHS": b.Dir, "CONDUIT_PROJECT_ROOT": b.Dir, "CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_JOURNAL_DIR": "NONE",
		"HOME": b.Dir, "CONDUIT_MAX_PAYLOAD_SIZE_BYTES": strconv.Itoa(100 << 20),
	}
	for name, value := range env {
		vars[name] = b.show(value)
	}
	b.app, err = app.New(app.Options{Environ: vars, Set: set})
	t.Cleanup(b.app.Close)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Call runs the op with args, its arguments without the discriminator, and
// returns the whole result.
func (b *Bench) Call(ctx context.Context, args string) (*mcp.CallToolResult, error) {
	if tool, ok := b.set.Tool(b.op.Tool); ok && tool.Discriminator != "" {
		rest := strings.TrimPrefix(strings.TrimSpace(args), "{")
		comma := ","
		if strings.TrimSpace(rest) == "}" {
			comma = ""
		}
		args = fmt.Sprintf("{%q:%q%s%s", tool.Discriminator, b.op.Name, comma, rest)
	}
	return b.app.Call(ctx, b.op.Tool, json.RawMessage(args))
}

// Text is Call for its first text block, the response.
func (b *Bench) Text(t testing.TB, args string) string {
	t.Helper()
	res, err := b.Call(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	return text(res, 0)
}

func text(res *mcp.CallToolResult, n int) string {
	if n >= len(res.Content) {
		return ""
	}
	c, ok := res.Content[n].(*mcp.TextContent)
	if !ok {
		return ""
	}
	return c.Text
}

// Run calls op with args after writing files into the scratch directory, and
// returns the text that a client would get, the directory shown as $DIR. Paths
// in args are relative to it, or begin with $DIR or, outside, with $OUT.
func Run(t testing.TB, op *registry.Op, files map[string]string, args string) string {
	t.Helper()
	b := New(t, op, nil)
	for name, content := range files {
		b.write(t, filepath.Join(b.Dir, name), []byte(content))
	}
	return b.hide(b.Text(t, b.show(args)))
}

func (b *Bench) show(s string) string {
	return strings.NewReplacer("$DIR", b.Dir, "$OUT", b.Out).Replace(s)
}

func (b *Bench) hide(s string) string {
	return strings.NewReplacer(b.Dir, "$DIR", b.Out, "$OUT").Replace(s)
}

func (b *Bench) write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Golden runs every testdata/ops/<op id>/*.txtar of the repository against op.
// A case is a comment and these parts, of which call and want are required:
//
//	env         settings, KEY=VALUE a line
//	setup       commands, one a line, after the files are written: mkdir D,
//	            link L -> TARGET, hardlink L -> F, mode 0600 F, time ISO F,
//	            fifo F, write F "go-quoted", repeat F N "go-quoted"
//	in/NAME     a file in the allowed directory, $DIR
//	out/NAME    a file outside it, below $OUT
//	call        the op's arguments, without the discriminator
//	want        the response, indented where it is JSON; $TIME for the present
//	remarks     the second text block
//	after/NAME  the content of a file after the call
//	gone        names that must not exist after the call, one a line
func Golden(t *testing.T, op *registry.Op) {
	t.Helper()
	dir := filepath.Join(moduleRoot(t), "testdata", "ops", op.ID())
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden cases in %s", dir)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { golden(t, op, path) })
	}
}

// moduleRoot returns the directory of go.mod above the test.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, serr := os.Stat(filepath.Join(dir, "go.mod")); serr == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test")
	return ""
}

func golden(t testing.TB, op *registry.Op, path string) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string) (string, bool) {
		for _, f := range a.Files {
			if f.Name == name {
				return string(f.Data), true
			}
		}
		return "", false
	}
	env := map[string]string{}
	settings, _ := part("env")
	for line := range strings.Lines(settings) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[k] = v
		}
	}
	b := New(t, op, env)
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "in/"); ok {
			b.write(t, filepath.Join(b.Dir, name), f.Data)
		}
		if name, ok := strings.CutPrefix(f.Name, "out/"); ok {
			b.write(t, filepath.Join(b.Out, name), f.Data)
		}
	}
	setup, _ := part("setup")
	for line := range strings.Lines(setup) {
		if line = strings.TrimSpace(line); line != "" {
			b.setUp(t, b.show(line))
		}
	}
	call, ok := part("call")
	if !ok {
		t.Fatalf("%s has no call", path)
	}
	res, err := b.Call(t.Context(), b.show(call))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"want": b.pretty(text(res, 0))}
	if len(res.Content) > 1 {
		got["remarks"] = b.pretty(text(res, 1))
	}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "after/"); ok {
			content, err := os.ReadFile(filepath.Join(b.Dir, name))
			if err != nil {
				t.Errorf("after the call: %v", err)
			}
			got[f.Name] = string(content)
		}
	}
	gone, _ := part("gone")
	for name := range strings.FieldsSeq(gone) {
		if _, err := os.Lstat(filepath.Join(b.Dir, name)); err == nil {
			t.Errorf("%s exists after the call", name)
		}
	}
	if *update {
		rewrite(t, path, a, got)
		return
	}
	if _, ok := part("want"); !ok {
		t.Errorf("%s has no want; run with -update and read it", path)
	}
	if _, ok := part("remarks"); ok && got["remarks"] == "" {
		got["remarks"] = "\n"
	}
	for name, have := range got {
		if want, _ := part(name); strings.TrimSpace(want) != strings.TrimSpace(have) {
			t.Errorf("%s: %s is\n%s\nwant\n%s", filepath.Base(path), name, have, want)
		}
	}
}

func rewrite(t testing.TB, path string, a *txtar.Archive, got map[string]string) {
	for _, name := range []string{"want", "remarks"} {
		if _, ok := got[name]; ok && !bytes.Contains(txtar.Format(a), []byte("-- "+name+" --")) {
			a.Files = append(a.Files, txtar.File{Name: name})
		}
	}
	for i, f := range a.Files {
		if have, ok := got[f.Name]; ok {
			if !strings.HasSuffix(have, "\n") {
				have += "\n"
			}
			a.Files[i].Data = []byte(have)
		}
	}
	if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// pretty indents JSON, and shows scratch paths and present times by name.
func (b *Bench) pretty(s string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(s), "", "  ") == nil {
		s = out.String()
	}
	s = timestamp.ReplaceAllStringFunc(b.hide(s), func(at string) string {
		if when, err := time.Parse(time.RFC3339, at); err == nil && time.Since(when).Abs() < time.Hour {
			return "$TIME"
		}
		return at
	})
	return s
}

// fileMode turns Unix mode bits into those of package fs.
func fileMode(bits uint64) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// setUp runs one command of a case.
func (b *Bench) setUp(t testing.TB, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	at := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(b.Dir, name)
	}
	first, second, _ := strings.Cut(rest, " ")
	var err error
	switch verb {
	case "mkdir":
		err = os.MkdirAll(at(rest), 0o755)
	case "link", "hardlink":
		from, to, _ := strings.Cut(rest, " -> ")
		if verb == "link" {
			err = os.Symlink(to, at(from))
		} else {
			err = os.Link(at(to), at(from))
		}
	case "mode":
		var mode uint64
		if mode, err = strconv.ParseUint(first, 8, 32); err == nil {
			err = os.Chmod(at(second), fileMode(mode))
		}
	case "time":
		var when time.Time
		if when, err = time.Parse(time.RFC3339, first); err == nil {
			err = os.Chtimes(at(second), when, when)
		}
	case "fifo":
		err = mkfifo(at(rest))
	case "write":
		var content string
		if content, err = strconv.Unquote(second); err == nil {
			b.write(t, at(first), []byte(content))
		}
	case "repeat":
		count, content, _ := strings.Cut(second, " ")
		var n int
		if n, err = strconv.Atoi(count); err == nil {
			if content, err = strconv.Unquote(content); err == nil {
				b.write(t, at(first), bytes.Repeat([]byte(content), n))
			}
		}
	default:
		err = fmt.Errorf("no such command on %s", runtime.GOOS)
	}
	if err != nil {
		t.Fatalf("setup %q: %v", line, err)
	}
}
