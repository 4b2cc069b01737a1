package apply

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

// numbered writes a file of about size bytes whose lines all differ.
func numbered(t testing.TB, name string, size int) {
	t.Helper()
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		fmt.Fprintf(&b, "line %07d of a file of text\n", i)
	}
	if err := os.WriteFile(name, []byte(b.String()[:size]), 0o600); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkOneLineOf50MB(b *testing.B) {
	const size = 50 << 20
	bench := optest.New(b, op(), nil)
	name := filepath.Join(bench.Dir, "big.txt")
	numbered(b, name, size)
	run := func(edit string) func(*testing.B) {
		return func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				text := bench.Text(b, `{"changes": [{"path": "big.txt", "edits": [`+edit+`]}]}`)
				if !strings.Contains(text, `"success"`) {
					b.Fatal(text)
				}
			}
		}
	}
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			from, err := os.Open(name)
			if err != nil {
				b.Fatal(err)
			}
			to, err := os.Create(name + ".copy")
			if err != nil {
				b.Fatal(err)
			}
			// Without ReadFrom, which has the kernel share the blocks.
			_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 1<<20))
			if err != nil {
				b.Fatal(err)
			}
			if err := to.Sync(); err != nil {
				b.Fatal(err)
			}
			from.Close()
			to.Close()
		}
		os.Remove(name + ".copy")
	})
	b.Run("line", run(`{"start_line": 700000, "new_text": "line 0700000 of a file of text"}, {"start_line": 700001, "new_text": "x"}`))
	b.Run("text", run(`{"old_text": "line 0700007 of", "new_text": "line 0700007 of"}, {"start_line": 7, "new_text": "y"}`))
}

func BenchmarkThousandEdits(b *testing.B) {
	bench := optest.New(b, op(), nil)
	name := filepath.Join(bench.Dir, "a.txt")
	for _, kind := range []string{"text", "several lines", "white space", "lines"} {
		b.Run(kind, func(b *testing.B) {
			numbered(b, name, 1<<20)
			var edits []string
			for i := range 1000 {
				n := i*30 + 1
				switch kind {
				case "text":
					edits = append(edits, fmt.Sprintf(`{"old_text": "line %07d of", "new_text": "LINE %07d of"}`, n, n))
				case "several lines":
					edits = append(edits, fmt.Sprintf(`{"old_text": "line %07d of a file of text\nline %07d", "new_text": "line\nline %07d"}`, n, n+1, n+1))
				case "white space":
					edits = append(edits, fmt.Sprintf(`{"old_text": " line %07d of a file of text\n line %07d of a file of text", "new_text": " x\n y"}`, n, n+1))
				default:
					edits = append(edits, fmt.Sprintf(`{"start_line": %d, "end_line": %d, "new_text": "new"}`, n, n+1))
				}
			}
			call := `{"dry_run": true, "changes": [{"path": "a.txt", "edits": [` + strings.Join(edits, ",") + `]}]}`
			b.ReportAllocs()
			for b.Loop() {
				if text := bench.Text(b, call); !strings.Contains(text[:100], `"success"`) {
					b.Fatal(text[:500])
				}
			}
		})
	}
}

// A miss in a large file is explained in bounded time.
func BenchmarkMissIn50MB(b *testing.B) {
	bench := optest.New(b, op(), nil)
	numbered(b, filepath.Join(bench.Dir, "big.txt"), 50<<20)
	for b.Loop() {
		text := bench.Text(b, `{"changes": [{"path": "big.txt", "edits": [{"old_text": "line 0712345 of a fine text\nline 0712346 of a fine text", "new_text": ""}]}]}`)
		if !strings.Contains(text, "lines 712345-712346") {
			b.Fatal(text)
		}
	}
}
