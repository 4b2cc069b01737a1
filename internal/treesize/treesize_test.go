package treesize_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/internal/treesize"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

// open opens dir as the one allowed directory.
func open(t testing.TB, dir string) *walk.Dir {
	t.Helper()
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	at, err := r.Resolve(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := walk.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func sum(t testing.TB, ctx context.Context, d *walk.Dir, e walk.Entry, levels int) *treesize.Sum {
	t.Helper()
	var s treesize.Sum
	if err := s.Add(ctx, parallel.NewLimit(runtime.GOMAXPROCS(0)), d, e, levels); err != nil {
		t.Fatal(err)
	}
	return &s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grow makes a tree of directories, files and hard links below dir and returns
// what a plain walk adds up to.
func grow(t testing.TB, dir string, dirs, files int) int64 {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	places := []string{dir}
	var names []string
	var total int64
	for i := range dirs {
		d := filepath.Join(places[random.IntN(len(places))], fmt.Sprint("d", i))
		must(t, os.Mkdir(d, 0o755))
		places = append(places, d)
	}
	for i := range files {
		name := filepath.Join(places[random.IntN(len(places))], fmt.Sprint("f", i))
		if i%10 == 9 {
			must(t, os.Link(names[random.IntN(len(names))], name))
			continue
		}
		size := random.IntN(100)
		must(t, os.WriteFile(name, make([]byte, size), 0o600))
		names = append(names, name)
		total += int64(size)
	}
	return total
}

var top = walk.Entry{Name: "top", Type: fs.ModeDir}

func TestWholeTree(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "top"), 0o755))
	want := grow(t, filepath.Join(dir, "top"), 50, 2000)
	must(t, os.Symlink(dir, filepath.Join(dir, "top", "up")))
	s := sum(t, t.Context(), open(t, dir), top, 1000)
	if n, ok := s.Bytes(); n != want || !ok || s.Partial() != "" {
		t.Errorf("%d, %v, %q; want %d", n, ok, s.Partial(), want)
	}
}

func TestLevels(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "top", "a", "b"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "top", "one"), make([]byte, 1), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "top", "a", "two"), make([]byte, 2), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "top", "a", "b", "four"), make([]byte, 4), 0o600))
	d := open(t, dir)
	const cut = "Partial size: depth limit reached during calculation"
	for levels, want := range []struct {
		bytes int64
		note  string
	}{{0, cut}, {1, cut}, {3, cut}, {7, ""}, {7, ""}} {
		s := sum(t, t.Context(), d, top, levels)
		if n, ok := s.Bytes(); n != want.bytes || !ok || s.Partial() != want.note {
			t.Errorf("%d levels: %d, %v, %q; want %d, %q", levels, n, ok, s.Partial(), want.bytes, want.note)
		}
	}
}

func TestNoTimeLeft(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "top"), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, ok := sum(t, ctx, open(t, dir), top, 10).Bytes(); ok {
		t.Errorf("%d bytes, want none", n)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "exchanged"), make([]byte, 3), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "directory"), 0o755))
	d := open(t, dir)
	s := sum(t, t.Context(), d, walk.Entry{Name: "exchanged", Type: fs.ModeDir}, 10)
	s.Merge(*sum(t, t.Context(), d, walk.Entry{Name: "exchanged"}, 10))
	s.Merge(*sum(t, t.Context(), d, walk.Entry{Name: "directory"}, 10))
	s.Merge(*sum(t, t.Context(), d, walk.Entry{Name: "vanished", Type: fs.ModeDir}, 10))
	s.Merge(*sum(t, t.Context(), d, walk.Entry{Name: "vanished"}, 10))
	const note = "Partial size: entries below that could not be read: 1"
	if n, ok := s.Bytes(); n != 3 || !ok || s.Partial() != note {
		t.Errorf("%d, %v, %q; want 3 and %q", n, ok, s.Partial(), note)
	}
}

func BenchmarkTree20000(b *testing.B) {
	dir := b.TempDir()
	must(b, os.Mkdir(filepath.Join(dir, "top"), 0o755))
	want := grow(b, filepath.Join(dir, "top"), 1000, 20000)
	d := open(b, dir)
	for b.Loop() {
		if n, _ := sum(b, b.Context(), d, top, 1000).Bytes(); n != want {
			b.Fatalf("%d bytes, want %d", n, want)
		}
	}
}
