package atomicfile

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Some tests need a process that they can kill or limit: this
// binary again, with the name of a role and a directory in its environment.
const (
	roleVariable = "ATOMICFILE_TEST_ROLE"
	dirVariable  = "ATOMICFILE_TEST_DIR"
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
	"overwriter": overwrite50MB,
	"limited":    writeLimited,
}

func start(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

func play(t *testing.T, role, dir string) {
	t.Helper()
	cmd, out := start(t, role, dir)
	said, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v: %s", role, err, said)
	}
}

const megabyte = 1 << 20

// overwrite50MB overwrites the file in dir again and again and says how far it
// is.
func overwrite50MB(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	p := place.Place{Root: root, Name: "f", Abs: filepath.Join(dir, "f")}
	w := New()
	block := bytes.Repeat([]byte("b"), megabyte)
	for {
		_, err := w.Write(context.Background(), p, Options{}, func(f *os.File) error {
			for n := range 50 {
				fmt.Println(n)
				if _, err := f.Write(block); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Println("done")
	}
}

func TestKilledInTheMiddle(t *testing.T) {
	s := newScratch(t)
	old, new := bytes.Repeat([]byte("a"), 49*megabyte), bytes.Repeat([]byte("b"), 50*megabyte)
	for _, at := range []string{"0", "20", "35", "48", "49", "done"} {
		if err := os.WriteFile(s.path("f"), old, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd, out := start(t, "overwriter", s.dir)
		for {
			line, err := out.ReadString('\n')
			if err != nil {
				t.Fatalf("%q, %v", line, err)
			}
			if line == at+"\n" {
				break
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		got, err := os.ReadFile(s.path("f"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, old) && !bytes.Equal(got, new) {
			t.Errorf("killed at %s: a mix of %d bytes", at, len(got))
		}
		if at == "20" && !bytes.Equal(got, old) {
			t.Errorf("killed at %s: the file was replaced too early", at)
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

func TestInPlaceWhereNothingCanBeCreated(t *testing.T) {
	s := newScratch(t)
	const old = "old, and longer"
	if err := os.Mkdir(s.path("closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("closed/writable", old, 0o666)
	s.write("closed/readonly", old, 0o444)
	if err := os.Chmod(s.path("closed"), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(s.path("closed"), 0o700) })
	root, err := os.OpenRoot(s.path("closed"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	at := func(name string) place.Place {
		return place.Place{Root: root, Name: name, Abs: s.path("closed/" + name)}
	}
	w := New()
	unprivileged(func() {
		r, err := w.Write(t.Context(), at("writable"), Options{IfMatch: etagOf(old)}, content("new"))
		if err != nil || r != (Report{InPlace: true}) {
			t.Errorf("writable: %+v, %v", r, err)
		}
		_, err = w.Write(t.Context(), at("writable"), Options{}, func(*os.File) error { return syscall.ENOSPC })
		wantCode(t, err, fault.FSWriteFailed, "may be incomplete", "no space")
		for _, name := range []string{"readonly", "none", "sub/none"} {
			_, err := w.Write(t.Context(), at(name), Options{}, content("new"))
			wantCode(t, err, fault.FSAccessDenied, "closed")
		}
		_, err = w.Write(t.Context(), at("writable"), Options{IfMatch: etagOf(old)}, content("newer"))
		wantCode(t, err, fault.PreconditionFailed)
	})
	if s.read("closed/writable") != "new" || s.read("closed/readonly") != old {
		t.Errorf("writable holds %q, readonly %q", s.read("closed/writable"), s.read("closed/readonly"))
	}
	s.names("closed", "readonly", "writable")
}

// writeLimited writes more than this process may.
func writeLimited(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(unix.RLIMIT_FSIZE, &syscall.Rlimit{Cur: megabyte, Max: megabyte}); err != nil {
		return err
	}
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		return err
	}
	for _, name := range []string{"overwritten", "appended", "new"} {
		p, err := r.Resolve(name)
		if err != nil {
			return err
		}
		j := &Job{Place: p, Content: strings.Repeat("new", megabyte)}
		if name == "appended" {
			j.Mode = Append
		}
		if err := New().Run(context.Background(), []*Job{j}, nil); err != nil {
			return err
		}
		if code, msg := fault.Of(j.Err); code != fault.FSWriteFailed || !strings.Contains(msg, "file too large") {
			return fmt.Errorf("%s: %v", name, j.Err)
		}
	}
	return nil
}

func TestWhatCannotBeFinishedIsTakenBack(t *testing.T) {
	s := newScratch(t)
	old := strings.Repeat("old", 1000)
	s.write("overwritten", old, 0o600)
	s.write("appended", old, 0o600)
	play(t, "limited", s.dir)
	if s.read("overwritten") != old || s.read("appended") != old {
		t.Errorf("%d bytes in overwritten, %d in appended, want %d", len(s.read("overwritten")), len(s.read("appended")), len(old))
	}
	s.names(".", "appended", "overwritten")
}

func TestAttributesAreKept(t *testing.T) {
	s := newScratch(t)
	s.write("f", "old", 0o640)
	supported := unix.Setxattr(s.path("f"), "user.origin", []byte("https://example.org/a?"+strings.Repeat("x", 600)), 0) == nil
	if os.Geteuid() == 0 {
		if err := os.Chown(s.path("f"), 12, 34); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Lstat(s.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New().Write(t.Context(), s.at("f"), Options{}, content("new")); err != nil {
		t.Fatal(err)
	}
	after, err := os.Lstat(s.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	was, is := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	if was.Ino == is.Ino || was.Uid != is.Uid || was.Gid != is.Gid || before.Mode() != after.Mode() {
		t.Errorf("owner and mode were %d:%d %v, are %d:%d %v", was.Uid, was.Gid, before.Mode(), is.Uid, is.Gid, after.Mode())
	}
	buf := make([]byte, 1024)
	n, err := unix.Getxattr(s.path("f"), "user.origin", buf)
	if supported != (err == nil) || supported && n != 622 {
		t.Errorf("attribute: %d bytes, %v; supported here: %v", n, err, supported)
	}
}

// A directory's default access list is for new files, not for one that
// replaces another.
func TestInheritedAccessListIsDropped(t *testing.T) {
	s := newScratch(t)
	s.write("f", "old", 0o600)
	// Version 2; user rwx, user 1 rwx, group rwx, mask rwx, other rwx.
	list := []byte{2, 0, 0, 0}
	for _, entry := range [][3]uint32{{1, 7, ^uint32(0)}, {2, 7, 1}, {4, 7, ^uint32(0)}, {16, 7, ^uint32(0)}, {32, 7, ^uint32(0)}} {
		list = append(list, byte(entry[0]), 0, byte(entry[1]), 0, byte(entry[2]), byte(entry[2]>>8), byte(entry[2]>>16), byte(entry[2]>>24))
	}
	supported := unix.Setxattr(s.dir, "system.posix_acl_default", list, 0) == nil
	if _, err := New().Write(t.Context(), s.at("f"), Options{}, content("new")); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Getxattr(s.path("f"), accessACL, make([]byte, 1024)); err == nil {
		t.Errorf("the new file has an access list of %d bytes that the old one had not", n)
	}
	if s.mode("f") != 0o600 {
		t.Errorf("mode = %v", s.mode("f"))
	}
	if _, err := New().Write(t.Context(), s.at("born"), Options{}, content("new")); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Getxattr(s.path("born"), accessACL, make([]byte, 1024)); supported != (err == nil) {
		t.Errorf("a new file's access list: %v; supported here: %v", err, supported)
	}
}

func TestSpecialFilesAreRefusedAtOnce(t *testing.T) {
	s := newScratch(t)
	if err := syscall.Mkfifo(s.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	t.Chdir(s.dir) // a socket's path is short
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "socket"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fifo", "socket"} {
		for _, mode := range []Mode{Overwrite, Append} {
			j := &Job{Place: s.at(name), Content: "x", Mode: mode}
			if err := New().Run(t.Context(), []*Job{j}, nil); err != nil {
				t.Fatal(err)
			}
			wantCode(t, j.Err, fault.FSOperation, "special file")
		}
	}
	s.names(".", "fifo", "socket")
}

// A directory that is a link outside half of the time must never let a write
// out.
func TestNoWriteFollowsASwappedDirectory(t *testing.T) {
	s, out := newScratch(t), t.TempDir()
	if err := os.Mkdir(s.path("t"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, s.path("l")); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapping, writing sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, s.path("t"), unix.AT_FDCWD, s.path("l"), unix.RENAME_EXCHANGE)
			}
		}
	})
	w := New()
	var mu sync.Mutex
	written := 0
	for n := range 4 {
		writing.Go(func() {
			for i := range 1250 {
				p, err := s.roots.Resolve(s.path(fmt.Sprintf("t/f%d", n)))
				if err != nil {
					continue
				}
				j := &Job{Place: p, Content: "x", Mode: Mode(2 * (i % 2))}
				if w.Run(context.Background(), []*Job{j}, nil) == nil && j.Err == nil {
					mu.Lock()
					written++
					mu.Unlock()
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	swapping.Wait()
	if list, err := os.ReadDir(out); err != nil || len(list) > 0 {
		t.Errorf("written outside: %v, %v", list, err)
	}
	if written == 0 {
		t.Error("nothing was written at all")
	}
}
