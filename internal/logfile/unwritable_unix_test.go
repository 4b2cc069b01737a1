//go:build unix

package logfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("victim"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Mkdir(at("directory"), 0o755), os.Symlink("victim", at("link")), os.Symlink("nowhere", at("dangling")), syscall.Mkfifo(at("fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"directory", "link", "dangling", "fifo", "missing/log", "victim/log"} {
		l := opened(t, at(name), "INFO")
		l.Info("not remembered")
		l.Error("remembered")
		got := l.Remembered()
		if l.Err == nil || l.File() != nil || len(got) != 2 || !strings.Contains(got[0], `"level":"FATAL"`) || !strings.Contains(got[1], `"msg":"remembered"`) {
			t.Errorf("%s: %v, %v", name, l.Err, got)
		}
	}
	if b, err := os.ReadFile(at("victim")); err != nil || string(b) != "precious" {
		t.Errorf("written through a link: %q, %v", b, err)
	}
	if _, err := os.Lstat(at("nowhere")); err == nil {
		t.Error("created through a link")
	}
	// A FIFO with a reader opens; it must still be refused by what it is.
	r, err := os.OpenFile(at("fifo"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if l := opened(t, at("fifo"), "INFO"); l.Err == nil {
		t.Error("a FIFO with a reader is taken for a log")
	}
}
