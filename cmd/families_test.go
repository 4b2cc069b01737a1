package cmd

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
)

// What holds the server together knows no family: a new one is a folder below
// ops and a line in ops/all.
func TestNoFamilyIsNamed(t *testing.T) {
	toolsets, err := registry.Toolsets()
	if err != nil || len(toolsets) < 4 {
		t.Fatalf("%d toolsets, %v", len(toolsets), err)
	}
	var names []string
	for _, ts := range toolsets {
		names = append(names, ts.Name)
	}
	named := regexp.MustCompile(`(?i)\b(` + strings.Join(names, "|") + `)s?\b`)
	files := 0
	for _, dir := range []string{"cmd", "registry", "middleware", "internal/mux", "internal/app"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			b, err := os.ReadFile(path)
			for n, line := range strings.Split(string(b), "\n") {
				if found := named.FindString(line); found != "" {
					t.Errorf("%s:%d names %s: %s", path, n+1, found, strings.TrimSpace(line))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 30 {
		t.Errorf("%d files were read", files)
	}
}
