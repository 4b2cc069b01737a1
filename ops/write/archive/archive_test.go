package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestGolden(t *testing.T) { optest.Golden(t, registry.New(desc, build)) }

func TestProgress(t *testing.T) {
	b := optest.New(t, registry.New(desc, build), nil)
	if err := os.Mkdir(filepath.Join(b.Dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		if err := os.WriteFile(filepath.Join(b.Dir, "d", fmt.Sprint(n)), []byte(strings.Repeat("x", 1000)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var told []int64
	ctx := registry.WithProgress(t.Context(), func(done, _ int64, _ string) { told = append(told, done) })
	res, err := b.Call(ctx, `{"source_paths": ["d"], "archive_path": "a.zip"}`)
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(told) == 0 || told[0] <= 0 || told[len(told)-1] > 201 {
		t.Errorf("progress told %v", told)
	}
}
