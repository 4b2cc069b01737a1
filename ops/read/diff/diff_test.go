package diff

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

// call runs the op with dir as the one allowed directory.
func call(ctx context.Context, t testing.TB, dir, args string) (result, error) {
	t.Helper()
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	op := registry.New(desc, build)
	in, err := op.Decode(json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	registry.Paths(in, func(p *registry.Path) { p.Vet(r.Resolve) })
	handle, err := op.Bind(&registry.Env{Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	a, err := handle(ctx, &registry.Call{Op: op, Input: in})
	got, _ := a.Value.(result)
	return got, err
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func scratch(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Where both files are, git turns the first into the second.
func TestGitApplies(t *testing.T) {
	const text = "one\r\ntwo\n\nthree\n"
	for _, c := range []struct{ what, from, to, where, a, b string }{
		{"side by side", "x/a.txt", "x/b.txt", "x", text, "two\n\n3"},
		{"apart", "x/old/a.txt", "x/new/deep/b.txt", "x", text, text + "four\n"},
		{"the second above", "x/sub/a.txt", "x/a.txt", "x", "one", "one\n"},
		{"the second below", "x/a.txt", "x/sub/a.txt", "x", text, ""},
		{"like names", "x/ab/f", "x/abc/f", "x", "", text},
		{"unusual names", "x/a \"b\"\t.txt", "x/ü.txt", "x", text, "ü"},
	} {
		dir := scratch(t)
		write(t, filepath.Join(dir, c.from), c.a)
		write(t, filepath.Join(dir, c.to), c.b)
		args, err := json.Marshal(map[string]any{"sources": []string{c.from, c.to}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := call(t.Context(), t, dir, string(args))
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if r.Status != "success" || len(r.Compared) != 2 || r.Compared[0] != filepath.Join(dir, c.from) || r.Compared[1] != filepath.Join(dir, c.to) {
			t.Errorf("%s: %s, %q", c.what, r.Status, r.Compared)
		}
		cmd := exec.CommandContext(t.Context(), "git", "apply", "--whitespace=nowarn", "-")
		cmd.Dir = filepath.Join(dir, c.where)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_DIR="+filepath.Join(dir, "none"))
		cmd.Stdin = strings.NewReader(r.Content.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: git apply: %v\n%s%s", c.what, err, out, r.Content)
		}
		if got, err := os.ReadFile(filepath.Join(dir, c.from)); err != nil || string(got) != c.b {
			t.Errorf("%s: the first file is %q (%v), want %q", c.what, got, err, c.b)
		}
	}
}

func TestNUL(t *testing.T) {
	dir := scratch(t)
	write(t, filepath.Join(dir, "a"), strings.Repeat("x", 8000)+"\x00")
	write(t, filepath.Join(dir, "b"), strings.Repeat("x", 7999)+"\x00")
	write(t, filepath.Join(dir, "c"), "x")
	if _, err := call(t.Context(), t, dir, `{"sources": ["a", "c"]}`); err != nil {
		t.Errorf("a NUL far from the beginning: %v", err)
	}
	for _, args := range []string{`{"sources": ["b", "c"]}`, `{"sources": ["c", "b"]}`} {
		_, err := call(t.Context(), t, dir, args)
		if code, message := fault.Of(err); code != fault.DiffFailed || !strings.HasPrefix(message, "b is binary") {
			t.Errorf("%s: %s %s", args, code, message)
		}
	}
}

func TestCancelledCall(t *testing.T) {
	dir := scratch(t)
	write(t, filepath.Join(dir, "a"), "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call(ctx, t, dir, `{"sources": ["a", "a"]}`); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want that of the context", err)
	}
}

func BenchmarkCall1MB(b *testing.B) {
	dir := scratch(b)
	var from, to strings.Builder
	for i := range 20_000 {
		line := strings.Repeat("word ", 8+i%5) + string(rune('a'+i%26)) + strings.Repeat("x", i%17) + "\n"
		from.WriteString(line)
		if i%50 != 0 {
			to.WriteString(line)
		}
	}
	write(b, filepath.Join(dir, "a"), from.String())
	write(b, filepath.Join(dir, "b"), to.String())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := call(b.Context(), b, dir, `{"sources": ["a", "b"]}`); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDiffThatNoResponseCanCarry(t *testing.T) {
	b := optest.New(t, registry.New(desc, build), map[string]string{"CONDUIT_MAX_RESPONSE_BYTES": "2000"})
	write(t, filepath.Join(b.Dir, "a.txt"), strings.Repeat("one\n", 1000))
	write(t, filepath.Join(b.Dir, "b.txt"), strings.Repeat("two\n", 1000))
	got := b.Text(t, `{"sources": ["a.txt", "b.txt"]}`)
	if !strings.Contains(got, "ERR_RESOURCE_LIMIT_EXCEEDED") || !strings.Contains(got, "context_lines") {
		t.Error(got)
	}
}
