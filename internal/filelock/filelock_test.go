package filelock_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
)

// TestMain holds a lock in a process of its own where it is asked to.
func TestMain(m *testing.M) {
	if name := os.Getenv("FILELOCK_HOLD"); name != "" {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err == nil {
			err = filelock.TryLock(f, filelock.Exclusive)
		}
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestModes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, name), open(t, name)
	for _, c := range []struct {
		a, b filelock.Mode
		want error
	}{
		{filelock.Exclusive, filelock.Exclusive, filelock.ErrLocked},
		{filelock.Exclusive, filelock.Shared, filelock.ErrLocked},
		{filelock.Shared, filelock.Exclusive, filelock.ErrLocked},
		{filelock.Shared, filelock.Shared, nil},
	} {
		if err := filelock.TryLock(a, c.a); err != nil {
			t.Fatal(err)
		}
		if err := filelock.TryLock(b, c.b); !errors.Is(err, c.want) {
			t.Errorf("%v while %v: %v", c.b, c.a, err)
		}
		filelock.Unlock(b)
		if err := filelock.Unlock(a); err != nil {
			t.Fatal(err)
		}
		if err := filelock.TryLock(b, filelock.Exclusive); err != nil {
			t.Errorf("after it was given back: %v", err)
		}
		filelock.Unlock(b)
	}
}

func TestLockWaits(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, name), open(t, name)
	if err := filelock.TryLock(a, filelock.Exclusive); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := filelock.Lock(ctx, b, filelock.Exclusive); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	got := make(chan error)
	go func() { got <- filelock.Lock(t.Context(), b, filelock.Exclusive) }()
	if err := filelock.Unlock(a); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestProcesses has another process hold a lock and die with it.
func TestProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	f := open(t, name)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FILELOCK_HOLD="+name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	if err := filelock.TryLock(f, filelock.Exclusive); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("held by another process: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := filelock.Lock(t.Context(), f, filelock.Exclusive); err != nil {
		t.Errorf("after it was killed: %v", err)
	}
}

// TestOpenIsHeldByOne has holders remove the file, as those of a lock that is
// needed rarely do.
func TestOpenIsHeldByOne(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var inside atomic.Int32
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for range 50 {
				f, err := filelock.OpenWait(t.Context(), root, "lock", filelock.Exclusive)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold it", n)
				}
				inside.Add(-1)
				root.Remove("lock")
				f.Close()
			}
		})
	}
	g.Wait()
}

func TestOpenRefusesLinks(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.Symlink("else", "lock"); err != nil {
		t.Fatal(err)
	}
	if f, err := filelock.Open(root, "lock", filelock.Exclusive); err == nil {
		f.Close()
		t.Error("a link was locked")
	}
}
