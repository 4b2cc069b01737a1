package zipws

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
)

// benchArchive makes an archive of a tree: the .go files below GOROOT, as many
// as given, and large files of lines.
func benchArchive(b *testing.B, path string, files, large int) {
	b.Helper()
	root := filepath.Join(goroot(b), "src")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var list []file
	err = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || len(list) == files || d.IsDir() || !strings.HasSuffix(p, ".go") {
			return err
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		list = append(list, file{name: filepath.ToSlash(rel), content: string(content)})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	for i := range large {
		var lines bytes.Buffer
		for n := 0; lines.Len() < 50<<20; n++ {
			fmt.Fprintf(&lines, `{"id":%d,"user":"u%x","value":%d,"text":"%x"}`+"\n", n, n*7919%100003, n*n%1000, n*2654435761%(1<<32))
		}
		list = append(list, file{name: fmt.Sprintf("large/%d.jsonl", i), content: lines.String()})
	}
	if _, err := f.Write(zipOf(b, "", list...)); err != nil {
		b.Fatal(err)
	}
}

// benched is a scratch with such an archive. TMPDIR says where it is.
func benched(b *testing.B) *scratch {
	b.Helper()
	s := newScratch(b)
	benchArchive(b, s.path("a.zip"), 5000, 4)
	return s
}

func BenchmarkOpen(b *testing.B) {
	s := benched(b)
	b.ReportAllocs()
	for b.Loop() {
		o := s.open("a.zip", OpenOptions{})
		b.StopTimer()
		if _, err := s.Workspaces.Close(b.Context(), o.Name, CloseOptions{Discard: true}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkOpenLazy(b *testing.B) {
	s := benched(b)
	b.ReportAllocs()
	for b.Loop() {
		o := s.open("a.zip", OpenOptions{Lazy: true})
		b.StopTimer()
		if _, err := s.Workspaces.Close(b.Context(), o.Name, CloseOptions{Discard: true}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkLazyOpenAndRead(b *testing.B) {
	s := benched(b)
	for b.Loop() {
		o := s.open("a.zip", OpenOptions{Lazy: true})
		if _, err := s.Read(b.Context(), o.Name, "bufio/bufio.go", 0, -1, io.Discard); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if _, err := s.Workspaces.Close(b.Context(), o.Name, CloseOptions{Discard: true}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkSyncOne changes one small file.
func BenchmarkSyncOne(b *testing.B) {
	s := benched(b)
	s.open("a.zip", OpenOptions{})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		s.write("bufio/bufio.go", fmt.Sprintf("package bufio // %d\n", n))
		b.StartTimer()
		if _, err := s.Sync(b.Context(), "", SyncOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	s := benched(b)
	s.open("a.zip", OpenOptions{})
	for b.Loop() {
		if _, err := s.Status(b.Context(), ""); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFullRewrite packs the whole tree anew.
func BenchmarkFullRewrite(b *testing.B) {
	s := benched(b)
	o := s.open("a.zip", OpenOptions{})
	for b.Loop() {
		root, err := os.OpenRoot(filepath.Dir(o.Path))
		if err != nil {
			b.Fatal(err)
		}
		at := inside(root, "contents")
		dst := s.at("b.zip")
		if _, err := pack.Create(b.Context(), s.files, dst, []pack.Source{{Place: at, Asked: o.Path}}, pack.CreateOptions{Format: pack.Zip, Recursive: true}); err != nil {
			b.Fatal(err)
		}
		root.Close()
	}
}
