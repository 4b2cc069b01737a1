package patch_test

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/patch"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A file of /proc cannot be read at its beginning.
func TestUnreadable(t *testing.T) {
	p, err := plan(t, "/proc/self", "--- a/mem\n+++ b/mem\n@@ -1 +1 @@\n-a\n+b\n", patch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Steps[0].Err; code(err) != fault.FSReadFailed {
		t.Errorf("%v, want %s", err, fault.FSReadFailed)
	}
}

const limitedEnv = "CONDUIT_TEST_LIMITED_DIR"

// In a process that may write only small files, the one that becomes too large
// fails, and what was written before is put back.
func TestWriteFails(t *testing.T) {
	if dir := os.Getenv(limitedEnv); dir != "" {
		landLimited(t, dir)
		return
	}
	dir := t.TempDir()
	before := tree{"large": {text: strings.Repeat("line\n", 1000)}, "small": {text: "a\n"}}
	before.write(t, dir)
	cmd := exec.Command(os.Args[0], "-test.run=^TestWriteFails$")
	cmd.Env = append(os.Environ(), limitedEnv+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if d := same(readTree(t, dir), before); d != "" {
		t.Error(d)
	}
}

func landLimited(t *testing.T, dir string) {
	p, err := plan(t, dir, "--- a/small\n+++ b/small\n@@ -1 +1 @@\n-a\n+b\n--- a/large\n+++ b/large\n@@ -1 +1,2 @@\n line\n+more\n", patch.Options{Together: true})
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(unix.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(unix.RLIMIT_FSIZE, &before) // a coverage report is written after the test
	if err := p.Land(t.Context(), atomicfile.New(), nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Steps[1].Err; code(err) != fault.FSWriteFailed {
		t.Errorf("%v, want %s", err, fault.FSWriteFailed)
	}
	if err := p.Steps[0].Err; code(err) != fault.PreconditionFailed {
		t.Errorf("the other file: %v", err)
	}
}
