package filetree

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func TestSpecialFiles(t *testing.T) {
	s := newScratch(t)
	s.make("s/a=1", "s/l->../fifo", "f=1")
	for _, name := range []string{"fifo", "s/fifo"} {
		if err := syscall.Mkfifo(s.path(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := atomicfile.New()
	r, err := Copy(t.Context(), w, s.at("s"), s.at("t"), Options{})
	if err != nil || r.Special != 2 || !strings.Contains(r.Message("Copied"), "Left out as special files: 2.") {
		t.Errorf("tree: %+v, %v", r, err)
	}
	s.want("t", "a=1")
	_, err = Copy(t.Context(), w, s.at("fifo"), s.at("x"), Options{})
	wantCode(t, err, fault.FSOperation, "special file")
	_, err = Copy(t.Context(), w, s.at("f"), s.at("fifo"), Options{})
	wantCode(t, err, fault.FSOperation, "special file")
	_, err = Move(t.Context(), w, s.at("f"), s.at("fifo"), Options{})
	wantCode(t, err, fault.FSOperation, "special file")
	_, err = Touch(w, s.at("fifo"))
	wantCode(t, err, fault.FSOperation, "special file")

	_, err = move(t.Context(), w, s.at("s"), s.at("u"), Options{}, func(*atomicfile.Writer, place.Place, place.Place, Options) (Report, error) {
		return Report{}, syscall.EXDEV
	})
	wantCode(t, err, fault.FSOperation, "s/fifo")
	s.want("s", "a=1", "fifo is special", "l->../fifo")
	if _, err := os.Lstat(s.path("u")); err == nil {
		t.Error("a move that failed left something behind")
	}
	if _, err := Delete(t.Context(), atomicfile.New(), s.at("fifo"), false, nil, nil); err != nil {
		t.Error(err)
	}
}

// What was copied may have permissions that keep its owner from removing it.
func TestDiscardMindsNoPermissions(t *testing.T) {
	s := newScratch(t)
	s.make("s/closed/a=1", "s/closed/@500", "s/sealed/b=1", "s/sealed/@0")
	const nobody = 65534
	if os.Geteuid() == 0 { // root minds none either
		for _, name := range []string{".", "s", "s/closed", "s/sealed"} {
			if err := os.Chown(s.path(name), nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its rights
		unix.RawSyscall(unix.SYS_SETFSUID, nobody, 0, 0)
		Discard(root, "s")
	})
	wg.Wait()
	s.want(".")
}

func TestUnreadableContent(t *testing.T) {
	s := newScratch(t)
	// Reading the first byte of one's own memory fails, whoever asks.
	proc, _, err := roots.New(roots.Config{Allowed: []string{fmt.Sprintf("/proc/%d", os.Getpid()), s.dir}, Project: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	src, err := proc.Resolve(fmt.Sprintf("/proc/%d/mem", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Copy(t.Context(), atomicfile.New(), src, s.at("x"), Options{})
	wantCode(t, err, fault.FSReadFailed, "mem", "input/output error")
	s.want(".")
}

func TestMoveAcrossDevices(t *testing.T) {
	s := newScratch(t)
	other, err := os.MkdirTemp("/dev/shm", "filetree")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	s.roots, _, err = roots.New(roots.Config{Allowed: []string{s.dir, other}, Project: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	s.make("s/a@640=1", "s/l->a", "s/d/b=2", "f=3")
	for _, name := range []string{"s", "f"} {
		dst, err := s.roots.Resolve(other + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Move(t.Context(), atomicfile.New(), s.at(name), dst, Options{Create: true}); err != nil {
			t.Fatal(err)
		}
	}
	s.want(".")
	s.dir = other
	s.want(".", "f=3", "s/", "s/a=1", "s/d/", "s/d/b=2", "s/l->a")
}

// Directories that are links outside half of the time must never let an
// operation out.
func TestNothingFollowsASwappedDirectory(t *testing.T) {
	s := newScratch(t)
	out := s.path("../out")
	if err := os.WriteFile(out+"/precious", []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.make("t/x=1", "l->../out", "src/a=1")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
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
	w := atomicfile.New()
	succeeded := map[string]int{}
	for n := range 1000 {
		for name, do := range map[string]func(p place.Place) error{
			"copy": func(p place.Place) error {
				_, err := Copy(t.Context(), w, s.at("src"), p.Child(fmt.Sprint("copy", n)), Options{})
				return err
			},
			"mkdir": func(p place.Place) error {
				_, err := Mkdir(p.Child(fmt.Sprintf("dir%d/sub", n)), true)
				return err
			},
			"touch": func(p place.Place) error {
				_, err := Touch(w, p.Child(fmt.Sprint("file", n)))
				return err
			},
			"delete": func(p place.Place) error {
				_, err := Delete(t.Context(), atomicfile.New(), p.Child("precious"), true, nil, nil)
				if code, _ := fault.Of(err); code == fault.FSNotFound {
					return nil
				}
				return err
			},
			"copy out": func(p place.Place) error {
				_, err := Copy(t.Context(), w, p, s.at(fmt.Sprint("got", n)), Options{})
				return err
			},
		} {
			if p, err := s.roots.Resolve(s.path("t")); err == nil && do(p) == nil {
				succeeded[name]++
			}
		}
		if _, err := os.Lstat(s.path(fmt.Sprintf("got%d/precious", n))); err == nil {
			t.Fatal("content from outside was copied")
		}
		os.RemoveAll(s.path(fmt.Sprint("got", n)))
	}
	close(stop)
	swapping.Wait()
	if list, err := os.ReadDir(out); err != nil || len(list) != 1 {
		t.Errorf("outside are now %v, %v", list, err)
	}
	for _, name := range []string{"copy", "mkdir", "touch", "delete", "copy out"} {
		if succeeded[name] == 0 {
			t.Errorf("%s never succeeded", name)
		}
	}
}

// A read may bring less than there is.
func TestShortReadsAreNoEnd(t *testing.T) {
	s := newScratch(t)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0) // every read brings what one write sent
	if err != nil {
		t.Fatal(err)
	}
	from, other := os.NewFile(uintptr(fds[0]), "from"), os.NewFile(uintptr(fds[1]), "other")
	defer from.Close()
	for _, part := range []string{"one", "two", "!"} {
		if _, err := other.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	to, err := os.Create(s.path("to"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := transfer(t.Context(), to, from, 7); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(s.path("to")); err != nil || string(got) != "onetwo!" {
		t.Errorf("%q, %v", got, err)
	}
}
