package walk_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

// BenchmarkTree walks 20,000 files in 200 directories: for their names, for what
// stat tells of each, and, to compare with, as filepath.WalkDir does.
func BenchmarkTree(b *testing.B) {
	const dirs, each = 200, 100
	const want = dirs/10 + dirs + dirs*each
	base, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for d := range dirs {
		dir := filepath.Join(base, fmt.Sprintf("d%02d/e%d", d/10, d%10))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for f := range each {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%03d.txt", f)), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	r, _, err := roots.New(roots.Config{Allowed: []string{base}, Project: base})
	if err != nil {
		b.Fatal(err)
	}
	place, err := r.Resolve(base)
	if err != nil {
		b.Fatal(err)
	}
	tree := func(b *testing.B, eval func(context.Context, walk.Node) error) {
		b.ReportAllocs()
		for b.Loop() {
			top, err := walk.Open(place)
			if err != nil {
				b.Fatal(err)
			}
			met := 0
			_, err = walk.Tree(b.Context(), top, walk.TreeOptions{Depth: 10}, eval, func(err error) bool {
				if err != nil {
					b.Error(err)
				}
				met++
				return true
			})
			top.Close()
			if err != nil || met != want {
				b.Fatalf("%d entries, %v; want %d", met, err, want)
			}
		}
	}
	b.Run("names", func(b *testing.B) {
		tree(b, func(context.Context, walk.Node) error { return nil })
	})
	b.Run("stat", func(b *testing.B) {
		tree(b, func(_ context.Context, n walk.Node) error {
			_, err := n.Dir.Info(n.Name)
			return err
		})
	})
	b.Run("filepath.WalkDir", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			met := -1 // but for the top
			err := filepath.WalkDir(base, func(_ string, _ fs.DirEntry, err error) error {
				met++
				return err
			})
			if err != nil || met != want {
				b.Fatalf("%d entries, %v; want %d", met, err, want)
			}
		}
	})
}
