package unarchive

import (
	"archive/zip"
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
	f, err := os.Create(filepath.Join(b.Dir, "a.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for n := range 200 {
		w, err := z.Create(fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(strings.Repeat("x", 1000))); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var told []int64
	ctx := registry.WithProgress(t.Context(), func(done, total int64, _ string) {
		if total != 200 {
			t.Errorf("progress told of %d in all", total)
		}
		told = append(told, done)
	})
	res, err := b.Call(ctx, `{"archive_path": "a.zip", "destination_path": "to"}`)
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(told) == 0 || told[len(told)-1] != 200 {
		t.Errorf("progress told %v", told)
	}
}
