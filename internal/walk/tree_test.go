package walk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func at(t testing.TB, dir string) place.Place {
	t.Helper()
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Resolve(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func openDir(t testing.TB, p place.Place) *walk.Dir {
	t.Helper()
	d, err := walk.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// grow makes a tree of directories and empty files and returns the paths below
// dir in walking order.
func grow(t testing.TB, dir string, rnd *rand.Rand, count int) []string {
	t.Helper()
	dirs, all := []string{""}, []string{}
	names := []string{"a", "b", "a-b", "a.b", "A", "é", "z z", "0"}
	for i := range count {
		rel := filepath.ToSlash(filepath.Join(dirs[rnd.IntN(len(dirs))], fmt.Sprint(names[rnd.IntN(len(names))], rnd.IntN(count))))
		full := filepath.Join(dir, rel)
		var err error
		if i%3 == 0 {
			if err = os.Mkdir(full, 0o700); err == nil {
				dirs = append(dirs, rel)
			}
		} else {
			var f *os.File
			if f, err = os.OpenFile(full, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
			}
		}
		if err == nil {
			all = append(all, rel)
		}
	}
	slices.SortFunc(all, walk.ComparePaths)
	return all
}

func paths(t testing.TB, top *walk.Dir, o walk.TreeOptions, most int) []string {
	t.Helper()
	var got []string
	_, err := walk.Tree(t.Context(), top, o, func(_ context.Context, n walk.Node) string { return n.Rel() }, func(rel string) bool {
		got = append(got, rel)
		return len(got) != most
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTreeIsOrdered(t *testing.T) {
	for seed := range uint64(4) {
		dir := t.TempDir()
		want := grow(t, dir, rand.New(rand.NewPCG(seed, 7)), 400)
		p := at(t, dir)
		if got := paths(t, openDir(t, p), walk.TreeOptions{Depth: 1000}, -1); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d paths, want %d in order", seed, len(got), len(want))
		}
		for depth := range 4 {
			flat := slices.DeleteFunc(slices.Clone(want), func(rel string) bool { return strings.Count(rel, "/") > depth })
			if got := paths(t, openDir(t, p), walk.TreeOptions{Depth: depth}, -1); !slices.Equal(got, flat) {
				t.Errorf("depth %d: %d paths, want %d", depth, len(got), len(flat))
			}
		}
		var paged []string
		for after := ""; ; {
			page := paths(t, openDir(t, p), walk.TreeOptions{Depth: 1000, After: after}, 7)
			if len(page) == 0 {
				break
			}
			paged = append(paged, page...)
			after = page[len(page)-1]
		}
		if !slices.Equal(paged, want) {
			t.Errorf("seed %d: the pages are not the whole", seed)
		}
	}
}

func TestTreeAfterWhatIsGone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/1", "c/1"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := paths(t, openDir(t, at(t, dir)), walk.TreeOptions{Depth: 9, After: "b/x"}, -1); !slices.Equal(got, []string{"c", "c/1"}) {
		t.Errorf("after a path that is gone: %q", got)
	}
}

func TestTreeReport(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/deep/deeper", "b/deep", "gone/deep", "link/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// What is exchanged once it was listed is not entered.
	report, err := walk.Tree(t.Context(), openDir(t, at(t, dir)), walk.TreeOptions{Depth: 1}, func(_ context.Context, n walk.Node) error {
		full := filepath.Join(dir, n.Name)
		switch n.Name {
		case "gone":
			return os.RemoveAll(full)
		case "link":
			return errors.Join(os.RemoveAll(full), os.Symlink(filepath.Join(dir, "a"), full))
		}
		return nil
	}, func(err error) bool {
		if err != nil {
			t.Error(err)
		}
		return true
	})
	if want := (walk.TreeReport{Unreadable: 2, Deep: 2}); err != nil || report != want {
		t.Errorf("report = %+v, %v; want %+v", report, err, want)
	}
}

func TestTreeStops(t *testing.T) {
	dir := t.TempDir()
	grow(t, dir, rand.New(rand.NewPCG(1, 1)), 3000)
	top := openDir(t, at(t, dir))
	var evaluated atomic.Int32
	if _, err := walk.Tree(t.Context(), top, walk.TreeOptions{Depth: 1000}, func(context.Context, walk.Node) int { evaluated.Add(1); return 0 }, func(int) bool { return false }); err != nil {
		t.Error(err)
	}
	if n := evaluated.Load(); n == 0 || n > 2000 {
		t.Errorf("%d of 3000 entries were looked at, though the first was enough", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	emitted := 0
	_, err := walk.Tree(ctx, openDir(t, at(t, dir)), walk.TreeOptions{Depth: 1000}, func(_ context.Context, n walk.Node) int { return 0 }, func(int) bool {
		if emitted++; emitted == 10 {
			cancel()
		}
		return true
	})
	if !errors.Is(err, context.Canceled) || emitted < 10 || emitted > 2500 {
		t.Errorf("cancelled after 10: %d emitted, %v", emitted, err)
	}
}

func TestTreePanic(t *testing.T) {
	dir := t.TempDir()
	grow(t, dir, rand.New(rand.NewPCG(1, 1)), 200)
	_, err := walk.Tree(t.Context(), openDir(t, at(t, dir)), walk.TreeOptions{Depth: 1000}, func(_ context.Context, n walk.Node) int {
		if strings.HasPrefix(n.Name, "z") {
			panic("overboard")
		}
		return 0
	}, func(int) bool { return true })
	if err == nil || !strings.Contains(err.Error(), "overboard") {
		t.Errorf("err = %v", err)
	}
}

func TestTreeClosesDirectories(t *testing.T) {
	dir := t.TempDir()
	grow(t, dir, rand.New(rand.NewPCG(1, 1)), 300)
	p := at(t, dir)
	var dirs []*walk.Dir
	_, err := walk.Tree(t.Context(), openDir(t, p), walk.TreeOptions{Depth: 1000}, func(_ context.Context, n walk.Node) *walk.Dir { return n.Dir }, func(d *walk.Dir) bool {
		dirs = append(dirs, d)
		return len(dirs) < 100
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if _, err := d.Stat(); err == nil && d.Place().Abs != p.Abs {
			t.Fatalf("%s is still open", d.Place().Abs)
		}
	}
}
