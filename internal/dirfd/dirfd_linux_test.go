package dirfd_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/dirfd"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenAndStatx(t *testing.T) {
	dir := t.TempDir()
	longest := strings.Repeat("n", 255)
	for _, name := range []string{"f", longest, "not\xffutf8"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	must(t, os.Symlink("f", filepath.Join(dir, "link")))
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	top, err := os.Open(dir)
	must(t, err)
	defer top.Close()
	at := int(top.Fd())
	for _, name := range []string{"f", longest, "not\xffutf8"} {
		fd, err := dirfd.Open(at, name, unix.O_RDONLY)
		must(t, err)
		f := os.NewFile(uintptr(fd), name)
		b, err := io.ReadAll(f)
		f.Close()
		var x unix.Statx_t
		if err != nil || string(b) != name {
			t.Errorf("%.10s: %q, %v", name, b, err)
		}
		if err := dirfd.Statx(at, name, unix.STATX_SIZE, &x); err != nil || x.Size != uint64(len(name)) {
			t.Errorf("%.10s: %d bytes, %v", name, x.Size, err)
		}
	}
	if fd, err := dirfd.Open(at, "fifo", unix.O_RDONLY); err != nil {
		t.Errorf("a FIFO: %v", err)
	} else {
		unix.Close(fd)
	}
	for name, want := range map[string]error{"link": unix.ELOOP, "none": unix.ENOENT, longest + "n": unix.ENAMETOOLONG, "f\x00": unix.EINVAL} {
		if fd, err := dirfd.Open(at, name, unix.O_RDONLY); !errors.Is(err, want) {
			t.Errorf("%.10q is open as %d, %v; want %v", name, fd, err, want)
		}
	}
	var x unix.Statx_t
	if err := dirfd.Statx(at, "link", unix.STATX_TYPE, &x); err != nil || x.Mode&unix.S_IFMT != unix.S_IFLNK {
		t.Errorf("the link has mode %o, %v", x.Mode, err)
	}
	if err := dirfd.Statx(at, "", unix.STATX_TYPE, &x); err != nil || x.Mode&unix.S_IFMT != unix.S_IFDIR {
		t.Errorf("the directory itself has mode %o, %v", x.Mode, err)
	}
	for name, want := range map[string]error{"none": unix.ENOENT, longest + "n": unix.ENAMETOOLONG, "f\x00": unix.EINVAL} {
		if err := dirfd.Statx(at, name, unix.STATX_TYPE, &x); !errors.Is(err, want) {
			t.Errorf("%.10q: %v, want %v", name, err, want)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	top, err := os.Open(t.TempDir())
	must(t, err)
	defer top.Close()
	at := int(top.Fd())
	if n := testing.AllocsPerRun(100, func() {
		var x unix.Statx_t
		if dirfd.Statx(at, ".", unix.STATX_BASIC_STATS, &x) != nil {
			t.Error("statx failed")
		}
		fd, err := dirfd.Open(at, ".", unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			t.Error(err)
		}
		unix.Close(fd)
	}); n != 0 {
		t.Errorf("%.1f allocations a call, want none", n)
	}
}
