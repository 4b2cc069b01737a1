package walk_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

func TestSkipLeavesOutDirectoriesOfThatName(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"a/skipped/b", "skipped", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"a/skipped/f", "skipped/f", "b/skipped", "b/skipped2"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	rel := func(_ context.Context, n walk.Node) string { return n.Rel() }
	_, err = walk.Tree(t.Context(), openDir(t, at(t, dir)), walk.TreeOptions{Depth: 5, Skip: "skipped"}, rel, func(s string) bool { got = append(got, s); return true })
	if want := []string{"a", "b", "b/skipped", "b/skipped2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
