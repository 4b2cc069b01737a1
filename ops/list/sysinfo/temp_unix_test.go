//go:build unix

package sysinfo

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTempDir(t *testing.T) {
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(real, "linked")
	if err := os.Symlink(real, linked); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{linked: real, filepath.Join(real, "gone"): filepath.Join(real, "gone")} {
		t.Setenv("TMPDIR", given)
		if got := tempDir(); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
