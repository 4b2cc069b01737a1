package entries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestGolden(t *testing.T) { optest.Golden(t, registry.New(desc, build)) }

func bench(t testing.TB) *optest.Bench { return optest.New(t, registry.New(desc, build), nil) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill makes dirs directories with per files each.
func fill(t testing.TB, dir string, dirs, per int) {
	t.Helper()
	for i := range dirs {
		sub := filepath.Join(dir, fmt.Sprintf("d%03d", i))
		must(t, os.Mkdir(sub, 0o755))
		for j := range per {
			must(t, os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%05d.txt", j)), []byte(strings.Repeat("x", j%100)), 0o600))
		}
	}
}

func decode(t testing.TB, text string) []map[string]any {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return list
}

// A directory larger than a batch is listed whole, in order, in one call or in
// pages.
func TestPagesAreTheWhole(t *testing.T) {
	b := bench(t)
	fill(t, b.Dir, 1, 500)
	all := decode(t, b.Text(t, `{"path": "d000"}`))
	if len(all) != 500 {
		t.Fatalf("%d entries, want 500", len(all))
	}
	var paged []map[string]any
	for cursor := ""; ; {
		res, err := b.Call(t.Context(), fmt.Sprintf(`{"path": "d000", "max_results": 99, "cursor": %q}`, cursor))
		must(t, err)
		page := decode(t, res.Content[0].(*mcp.TextContent).Text)
		paged = append(paged, page...)
		if len(res.Content) == 1 {
			break
		}
		var remarks []struct {
			Details registry.More `json:"details"`
		}
		must(t, json.Unmarshal([]byte(res.Content[1].(*mcp.TextContent).Text), &remarks))
		if cursor = remarks[0].Details.NextCursor; len(page) != 99 || cursor == "" {
			t.Fatalf("a page of %d with the cursor %q", len(page), cursor)
		}
	}
	if !slices.EqualFunc(all, paged, func(a, b map[string]any) bool { return a["name"] == b["name"] && a["size_bytes"] == b["size_bytes"] }) {
		t.Errorf("the pages hold %d entries, which are not the %d of the whole", len(paged), len(all))
	}
	for i, e := range all {
		if want := fmt.Sprintf("f%05d.txt", i); e["name"] != want || e["size_bytes"] != float64(i%100) {
			t.Fatalf("entry %d is %v, want %s", i, e, want)
		}
	}
}

// The parallel walk and the one for a limited number of results agree.
func TestTreeIsTheSameFromRunToRun(t *testing.T) {
	b := bench(t)
	fill(t, b.Dir, 30, 50)
	must(t, os.Rename(filepath.Join(b.Dir, "d007"), filepath.Join(b.Dir, "d003", "d007")))
	const args = `{"path": ".", "recursive_depth": 4, "calculate_recursive_size": true`
	want := b.Text(t, args+"}")
	for range 5 {
		if got := b.Text(t, args+"}"); got != want {
			t.Fatal("two calls gave two results")
		}
	}
	if got := b.Text(t, args+`, "max_results": 100000}`); got != want {
		t.Error("the walk in order gave another result")
	}
	list := decode(t, want)
	if one, two := list[0]["size_bytes"], list[3]["size_bytes"]; one != float64(49*50/2) || two != float64(49*50) {
		t.Errorf("sizes are %v and %v, want %d and %d", one, two, 49*50/2, 49*50)
	}
}

// No more time for sizes is no reason not to list.
func TestSizeRunsOutOfTime(t *testing.T) {
	op := registry.New(desc, func(cfg settings, env *registry.Env) (registry.Func[params, tree], error) {
		cfg.SizeTime = time.Nanosecond
		return build(cfg, env)
	})
	b := optest.New(t, op, nil)
	fill(t, b.Dir, 2, 3)
	list := decode(t, b.Text(t, `{"path": ".", "calculate_recursive_size": true, "recursive_depth": 1}`))
	for _, e := range list {
		size, has := e["size_bytes"]
		if !has || size != nil || e["recursive_size_calculation_note"] != "Calculation timed out due to server limit (0ms)" || len(e["children"].([]any)) != 3 {
			t.Errorf("%v", e)
		}
	}
	if len(list) != 2 {
		t.Errorf("%d entries, want 2", len(list))
	}
}

func TestCancelled(t *testing.T) {
	op := registry.New(desc, func(cfg settings, env *registry.Env) (registry.Func[params, tree], error) {
		f, err := build(cfg, env)
		return func(ctx context.Context, in params) (tree, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			list, err := f(ctx, in)
			if !errors.Is(err, context.Canceled) || list != nil {
				t.Errorf("%d entries, %v; want context.Canceled", len(list), err)
			}
			return list, err
		}, err
	})
	b := optest.New(t, op, nil)
	fill(t, b.Dir, 3, 10)
	b.Text(t, `{"path": ".", "recursive_depth": 1, "calculate_recursive_size": true}`)
}

// What has become something else since its directory was read is told of
// without its children, and counted; what has vanished is not.
func TestDirectoryThatCannotBeRead(t *testing.T) {
	op := registry.New(desc, func(cfg settings, _ *registry.Env) (registry.Func[params, tree], error) {
		return func(ctx context.Context, in params) (tree, error) {
			at, err := in.Path.Place()
			must(t, err)
			d, err := walk.Open(at)
			must(t, err)
			defer d.Close()
			l := newLister(in, cfg)
			l.sizing = ctx
			list, _, err := l.list(ctx, &level{dir: onDisk{d}, shown: []walk.Entry{{Name: "a", Type: fs.ModeDir}, {Name: "vanished"}}})
			l.remark(ctx)
			return list, err
		}, nil
	})
	b := optest.New(t, op, nil)
	must(t, os.WriteFile(filepath.Join(b.Dir, "a"), []byte("123"), 0o600))
	res, err := b.Call(t.Context(), `{"path": ".", "recursive_depth": 1}`)
	must(t, err)
	list := decode(t, res.Content[0].(*mcp.TextContent).Text)
	if _, has := list[0]["children"]; len(list) != 1 || has {
		t.Errorf("%v", list)
	}
	const want = `[{"type":"info_notice","notice_code":"LISTING_INCOMPLETE","message":"Entries or directories that could not be read: 1."}]`
	if got := res.Content[len(res.Content)-1].(*mcp.TextContent).Text; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestLeanKeepsNamesOnTheirLines(t *testing.T) {
	var b strings.Builder
	err := tree{{Name: "a\nb", IsLink: true, LinkTarget: "c\rd"}, {Name: "\x1b[2J", Type: "directory"}}.Lean(&b)
	const want = `"a\nb" -> "c\rd"` + "\n" + `"\x1b[2J"/`
	if err != nil || b.String() != want {
		t.Errorf("%q, %v; want %q", b.String(), err, want)
	}
}

func TestLeanKeepsTheWritersError(t *testing.T) {
	gone := errors.New("gone")
	r, w := io.Pipe()
	r.CloseWithError(gone)
	if err := (tree{entry.Info{Name: "a"}}).Lean(w); !errors.Is(err, gone) {
		t.Errorf("%v, want that of the writer", err)
	}
}

func benchmark(b *testing.B, dirs, per int, args string) {
	t := bench(b)
	fill(b, t.Dir, dirs, per)
	for b.Loop() {
		if text := t.Text(b, args); strings.Count(text, `"name"`) < dirs*per {
			b.Fatalf("%.200s", text)
		}
	}
}

func BenchmarkList10000(b *testing.B) { benchmark(b, 1, 10000, `{"path": "d000"}`) }

func BenchmarkListTree20000(b *testing.B) {
	benchmark(b, 200, 100, `{"path": ".", "recursive_depth": 1}`)
}

func BenchmarkListTree20000Sizes(b *testing.B) {
	benchmark(b, 200, 100, `{"path": ".", "recursive_depth": 1, "calculate_recursive_size": true}`)
}
