//go:build linux && !race

package pack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
)

// The race detector takes several times the memory, so this is measured without
// it alone.

func init() {
	roles["measure zip"] = func(dir string) error { return measure(dir, Zip) }
	roles["measure tar.gz"] = func(dir string) error { return measure(dir, TarGz) }
}

// measure packs and unpacks dir/tree and says how much memory that took at the
// most, in KiB.
func measure(dir string, f Format) error {
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		return err
	}
	src, err := r.Resolve("tree")
	if err != nil {
		return err
	}
	archive, err := r.Resolve("a." + string(f))
	if err != nil {
		return err
	}
	to, err := r.Resolve("to")
	if err != nil {
		return err
	}
	w := atomicfile.New()
	if _, err := Create(context.Background(), w, archive, []Source{{Place: src, Asked: src.Abs}}, CreateOptions{Format: f, Recursive: true}); err != nil {
		return err
	}
	if _, err := Extract(context.Background(), w, archive, to, ExtractOptions{MaxBytes: plenty}); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Println(strings.Fields(kib)[0])
		}
	}
	return nil
}

// Memory is bounded whatever is packed: 64 MB, and 16 MB a worker.
func TestMemory(t *testing.T) {
	s := newScratch(t)
	large := bytes.Repeat([]byte("a line of a large file, not all the same "), 1_000_000)
	for n := range large {
		if n%97 == 0 {
			large[n] = byte(n / 97)
		}
	}
	for n := range 3 {
		s.write(fmt.Sprintf("tree/large%d", n), large)
	}
	for n := range 60 {
		s.write(fmt.Sprintf("tree/d%d/f%d", n%20, n), large[n*1000:n*1000+blockSize-n])
	}
	most := 64<<10 + runtime.GOMAXPROCS(0)*16<<10
	for _, f := range both {
		cmd, out := start(t, "measure "+string(f), s.dir)
		said, err := io.ReadAll(out)
		must(t, err)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		kib, err := strconv.Atoi(strings.TrimSpace(string(said)))
		must(t, err)
		if kib > most {
			t.Errorf("%s took %d KiB, want at most %d", f, kib, most)
		}
		t.Logf("%s: %d KiB", f, kib)
		must(t, os.RemoveAll(s.path("to")))
	}
}
