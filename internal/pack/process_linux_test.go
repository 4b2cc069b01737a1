package pack

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
)

// Some tests need a process that they can kill or measure: this binary again,
// with the name of a role and a directory in its environment.
const (
	roleVariable = "PACK_TEST_ROLE"
	dirVariable  = "PACK_TEST_DIR"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](os.Getenv(dirVariable)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

var roles = map[string]func(dir string) error{
	"pack zip":     func(dir string) error { return packAgain(dir, Zip) },
	"pack tar.gz":  func(dir string) error { return packAgain(dir, TarGz) },
	"unpack a.zip": func(dir string) error { return unpackOnce(dir, "a.zip") },
	"unpack a.tgz": func(dir string) error { return unpackOnce(dir, "a.tgz") },
}

func start(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewReader(out)
}

// packAgain packs dir/tree to dir/a again and again and says how far it is.
func packAgain(dir string, f Format) error {
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		return err
	}
	src, err := r.Resolve("tree")
	if err != nil {
		return err
	}
	dst, err := r.Resolve("a")
	if err != nil {
		return err
	}
	for {
		_, err := Create(context.Background(), atomicfile.New(), dst, []Source{{Place: src, Asked: src.Abs}}, CreateOptions{Format: f, Recursive: true, Progress: func(n int64) { fmt.Println(n) }})
		if err != nil {
			return err
		}
		fmt.Println("done")
	}
}

// unpackOnce unpacks an archive to dir/to and says how far it is.
func unpackOnce(dir, archive string) error {
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		return err
	}
	src, err := r.Resolve(archive)
	if err != nil {
		return err
	}
	dst, err := r.Resolve("to")
	if err != nil {
		return err
	}
	_, err = Extract(context.Background(), atomicfile.New(), src, dst, ExtractOptions{Overwrite: true, MaxBytes: plenty, Progress: func(done, _ int64) { fmt.Println(done) }})
	fmt.Println("done")
	return err
}

// killPoints is how many moments there are at which processes are killed, half
// of them with each format.
const killPoints = 50

// killedAt yields moments, all over, for as long as a test does not say that
// those that it has seen will do, and then some.
func killedAt(half int, enough func() bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := range killPoints / 2 {
			if n >= longtest.Count(5, killPoints/2) && enough() || !yield(half+2*(n*7%(killPoints/2))) {
				return
			}
		}
	}
}

func TestKilledWhilePacking(t *testing.T) {
	t.Parallel()
	for half, f := range both {
		s := newScratch(t)
		for n := range 100 {
			s.write(fmt.Sprintf("tree/d%d/f%d", n%9, n), bytes.Repeat([]byte(strconv.Itoa(n)), 9000))
		}
		s.write("tree/large", bytes.Repeat([]byte("0123456789"), longtest.Count(50_000, 500_000)))
		_, err := s.create("first", CreateOptions{Format: f, Recursive: true}, "tree")
		must(t, err)
		want := s.listed("first")
		for point := range killedAt(half, func() bool { return true }) {
			must(t, os.RemoveAll(s.path("a")))
			cmd, out := start(t, "pack "+string(f), s.dir)
			for range point + 1 {
				if line, err := out.ReadString('\n'); err != nil {
					t.Fatalf("%q, %v", line, err)
				}
			}
			must(t, cmd.Process.Kill())
			cmd.Wait()
			if _, err := os.Lstat(s.path("a")); err == nil {
				if have := s.listed("a"); !slices.Equal(have, want) {
					t.Fatalf("%s, killed at %d: an archive of %d entries, want %d", f, point, len(have), len(want))
				}
			}
		}
	}
}

func TestKilledWhileUnpackingToANewDirectory(t *testing.T) {
	t.Parallel()
	var entries []in
	for n := range 2 * killPoints {
		entries = append(entries, in{name: fmt.Sprintf("d%d/f%d", n%7, n), content: strings.Repeat("x", 3000)})
	}
	for half, archive := range []string{"a.zip", "a.tgz"} {
		s := newScratch(t)
		s.write("a.zip", makeZip(t, entries...))
		s.write("a.tgz", makeTarGz(t, entries...))
		partly := 0
		for point := range killedAt(half, func() bool { return partly > 0 }) {
			must(t, os.RemoveAll(s.path("to")))
			cmd, out := start(t, "unpack "+archive, s.dir)
			for range 2*point + 1 {
				if line, err := out.ReadString('\n'); err != nil {
					t.Fatalf("%q, %v", line, err)
				}
			}
			must(t, cmd.Process.Kill())
			cmd.Wait()
			if _, err := os.Lstat(s.path("to")); err == nil {
				if have := s.names("to"); len(have) != len(entries)+7 {
					t.Fatalf("%s, killed at %d: %d entries appeared", archive, point, len(have))
				}
			} else {
				partly++
			}
		}
		if partly == 0 {
			t.Errorf("%s: every run was complete before it was killed", archive)
		}
	}
}

func TestKilledWhileUnpackingToADirectoryThatExists(t *testing.T) {
	t.Parallel()
	const files = 150
	old, new := strings.Repeat("old", 100), strings.Repeat("new!", 500)
	var entries []in
	for n := range files {
		entries = append(entries, in{name: fmt.Sprintf("d%d/f%03d", n%3, n), content: new})
	}
	for half, archive := range []string{"a.zip", "a.tgz"} {
		s := newScratch(t)
		s.write("a.zip", makeZip(t, entries...))
		s.write("a.tgz", makeTarGz(t, entries...))
		partly := 0
		for point := range killedAt(half, func() bool { return partly > 0 }) {
			for n, e := range entries {
				if n%2 == 0 {
					s.write("to/"+e.name, []byte(old))
				} else {
					os.Remove(s.path("to/" + e.name))
				}
			}
			cmd, out := start(t, "unpack "+archive, s.dir)
			var reading sync.WaitGroup
			reading.Go(func() { io.Copy(io.Discard, out) })
			// Killed once a certain file has been put in place, or has ended.
			watched := s.path("to/" + entries[point*files/killPoints].name)
			for {
				if fi, err := os.Lstat(watched); err == nil && fi.Size() == int64(len(new)) {
					break
				}
				time.Sleep(10 * time.Microsecond) // the process needs the processor too
			}
			must(t, cmd.Process.Kill())
			reading.Wait()
			cmd.Wait()
			replaced := 0
			for n, e := range entries {
				b, err := os.ReadFile(s.path("to/" + e.name))
				switch {
				case err == nil && string(b) == new:
					replaced++
				case err == nil && string(b) == old && n%2 == 0:
				case err != nil && n%2 == 1:
				default:
					t.Fatalf("%s, killed at %d: %s has %d bytes, %v", archive, point, e.name, len(b), err)
				}
			}
			if replaced < files {
				partly++
			}
			// Once more, and all is there.
			if point%10 < 2 {
				_, err := s.extract(archive, "to", ExtractOptions{Overwrite: true})
				must(t, err)
				for _, e := range entries {
					if s.read("to/"+e.name) != new {
						t.Fatalf("%s was not completed", e.name)
					}
				}
			}
		}
		if partly == 0 {
			t.Errorf("%s: no process was killed while files were moved", archive)
		}
	}
}

// unprivileged runs f without the rights of root, which minds no permissions;
// others have none to give up.
func unprivileged(f func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its rights
		if os.Geteuid() == 0 {
			const nobody = 65534
			unix.RawSyscall(unix.SYS_SETFSGID, nobody, 0, 0)
			unix.RawSyscall(unix.SYS_SETFSUID, nobody, 0, 0)
		}
		f()
	})
	wg.Wait()
}

// The workers have the rights of the process, so that what the walk meets is
// tested here, and what they meet by a file that is gone.
func TestUnreadableDirectories(t *testing.T) {
	s := newScratch(t)
	s.write("d/closed/f", []byte("1"))
	s.write("d/f", []byte("2"))
	must(t, os.Chmod(s.path("d/closed"), 0))
	must(t, os.Chmod(filepath.Dir(s.dir), 0o755))
	tl := &tally{}
	var met []string
	c := collector{ctx: t.Context(), recursive: true, tally: tl, emit: func(e entry) error { met = append(met, e.name); return nil }}
	at := s.at("d")
	unprivileged(func() {
		if ok, err := c.source(at, "d"); !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	})
	if !slices.Equal(met, []string{"d", "d/f"}) || !slices.Equal(tl.skipped, []string{s.path("d/closed")}) {
		t.Errorf("met %q, skipped %q", met, tl.skipped)
	}
}
