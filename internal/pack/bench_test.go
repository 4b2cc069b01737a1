package pack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
)

// The benchmarks work on the sources of Go, or on the directory that
// PACK_BENCH_TREE names, and write to a directory in PACK_BENCH_DIR.
func benchRoots(b *testing.B) (*roots.Roots, string, string) {
	b.Helper()
	tree := os.Getenv("PACK_BENCH_TREE")
	if tree == "" {
		tree = filepath.Join(goroot(b), "src")
	}
	base := os.Getenv("PACK_BENCH_DIR")
	dir, err := os.MkdirTemp(base, "pack")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	r, _, err := roots.New(roots.Config{Allowed: []string{dir, tree}, Project: dir})
	if err != nil {
		b.Fatal(err)
	}
	return r, tree, dir
}

func goroot(tb testing.TB) string {
	tb.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func benchmarkCreate(b *testing.B, f Format) {
	r, tree, dir := benchRoots(b)
	src, err := r.Resolve(tree)
	if err != nil {
		b.Fatal(err)
	}
	dst, err := r.Resolve(filepath.Join(dir, "a."+string(f)))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Create(b.Context(), atomicfile.New(), dst, []Source{{Place: src, Asked: src.Abs}}, CreateOptions{Format: f, Recursive: true}); err != nil {
			b.Fatal(err)
		}
	}
	fi, err := dst.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(fi.Size()), "archive-bytes")
}

func BenchmarkCreateZip(b *testing.B)   { benchmarkCreate(b, Zip) }
func BenchmarkCreateTarGz(b *testing.B) { benchmarkCreate(b, TarGz) }

func benchmarkExtract(b *testing.B, f Format) {
	r, tree, dir := benchRoots(b)
	src, err := r.Resolve(tree)
	if err != nil {
		b.Fatal(err)
	}
	from, err := r.Resolve(filepath.Join(dir, "a."+string(f)))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := Create(b.Context(), atomicfile.New(), from, []Source{{Place: src, Asked: src.Abs}}, CreateOptions{Format: f, Recursive: true}); err != nil {
		b.Fatal(err)
	}
	to, err := r.Resolve(filepath.Join(dir, "to"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Extract(b.Context(), atomicfile.New(), from, to, ExtractOptions{MaxBytes: plenty}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		os.RemoveAll(to.Abs)
		b.StartTimer()
	}
}

func BenchmarkExtractZip(b *testing.B)   { benchmarkExtract(b, Zip) }
func BenchmarkExtractTarGz(b *testing.B) { benchmarkExtract(b, TarGz) }
