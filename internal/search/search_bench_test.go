package search_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/search"
)

// BenchmarkFile searches 2,000 files of about 8 kB, opened one after another,
// every twentieth of which has the text.
func BenchmarkFile(b *testing.B) {
	dir := b.TempDir()
	const files, every = 2000, 20
	var names []string
	size := int64(0)
	for i := range files {
		var text strings.Builder
		for n := range 150 + i%40 {
			fmt.Fprintf(&text, "func handle%d(w Writer, r *Request) error { // case %d of the sort\n", n, i)
		}
		if i%every == 0 {
			text.WriteString("return ErrNotReady(r)\n")
		}
		name := filepath.Join(dir, fmt.Sprintf("f%04d.go", i))
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			b.Fatal(err)
		}
		names, size = append(names, name), size+int64(text.Len())
	}
	expression := func(pattern string) search.Matcher {
		e, err := search.NewExpression(pattern, true)
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	for _, c := range []struct {
		name    string
		matcher search.Matcher
		lines   int
	}{
		{"literal", search.NewLiteral("ErrNotReady", true), 0},
		{"literal in any case", search.NewLiteral("errnotready", false), 0},
		{"lines of a literal", search.NewLiteral("ErrNotReady", true), 20},
		{"expression", expression(`return\s+ErrNotReady\(\w\)`), 0},
		{"expression without a text", expression(`[A-Z]\w+[A-Z]\w+[A-Z]\w+\(.\)$`), 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				hits := 0
				for _, name := range names {
					f, err := os.Open(name)
					if err != nil {
						b.Fatal(err)
					}
					fi, err := f.Stat()
					if err != nil {
						b.Fatal(err)
					}
					found, lines, err := search.Content(b.Context(), f, fi.Size(), name, c.matcher, search.Options{Max: c.lines})
					f.Close()
					if err != nil || found && c.lines > 0 && len(lines) != 1 {
						b.Fatalf("%s: %d lines, %v", name, len(lines), err)
					}
					if found {
						hits++
					}
				}
				if hits != files/every {
					b.Fatalf("%d hits, want %d", hits, files/every)
				}
			}
		})
	}
}
