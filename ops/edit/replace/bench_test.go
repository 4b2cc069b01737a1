package replace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

// BenchmarkTwentyThousandFiles replaces a word in 200 of 20,000 files, there and
// back, beside ripgrep listing them where that is installed.
func BenchmarkTwentyThousandFiles(b *testing.B) {
	bench := optest.New(b, op(), nil)
	filler := strings.Repeat("the quick brown fox jumps over the lazy dog, again and again\n", 60)
	for i := range 20000 {
		dir := filepath.Join(bench.Dir, fmt.Sprintf("d%d/e%d", i%20, i%400))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		text := filler
		if i%100 == 0 {
			text += "here the needle is\n" + filler
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	words := [2]string{"needle", "noodle"}
	run := func(pattern, put string, more string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				text := bench.Text(b, fmt.Sprintf(`{"base_path": ".", "pattern": %q, "replacement": %q%s}`, pattern, put, more))
				if n := strings.Count(text, `"success"`); n != 200 && more != "" || strings.Contains(text, `"error"`) {
					b.Fatalf("%d files: %.300s", n, text)
				}
			}
		}
	}
	b.Run("no match", run("nowhere", "x", ""))
	b.Run("dry", run("needle", "noodle", `, "dry_run": true`))
	b.Run("dry expression", run(`n[e]+d(le)`, "noo$1", `, "is_regex": true, "dry_run": true`))
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text := bench.Text(b, fmt.Sprintf(`{"base_path": ".", "pattern": %q, "replacement": %q}`, words[0], words[1]))
			if n := strings.Count(text, `"success"`); n != 200 {
				b.Fatalf("%d files: %.300s", n, text)
			}
			words[0], words[1] = words[1], words[0]
		}
	})
	if rg, err := exec.LookPath("rg"); err == nil {
		b.Run("rg -l", func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.Command(rg, "-l", words[0], bench.Dir).Output(); err != nil || strings.Count(string(out), "\n") != 200 {
					b.Fatal(err)
				}
			}
		})
	}
}
