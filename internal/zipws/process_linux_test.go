package zipws

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
)

// Some tests need a process that they can kill: this binary again, with the name
// of a role, a directory and a number in its environment.
const (
	roleVariable = "ZIPWS_TEST_ROLE"
	dirVariable  = "ZIPWS_TEST_DIR"
	killVariable = "ZIPWS_TEST_KILL"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Getenv(dirVariable)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// play does what role is about, and is killed at the step that killVariable
// numbers.
func play(role, base string) error {
	m, h, err := newWorkspaces(base)
	if err != nil {
		return err
	}
	at, _ := strconv.ParseInt(os.Getenv(killVariable), 10, 64)
	var steps atomic.Int64
	m.step = func(string) {
		if steps.Add(1) == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it comes
		}
	}
	ctx := context.Background()
	role, how, _ := strings.Cut(role, "-")
	m.unlinked = how == "copied"
	switch role {
	case "open":
		p, err := h.Resolve(filepath.Join(base, "archives", "a.zip"))
		if err != nil {
			return err
		}
		_, err = m.Open(ctx, p, OpenOptions{Name: "killed", Lazy: how == "lazy"})
		return err
	case "sync":
		_, err = m.Sync(ctx, "", SyncOptions{})
	case "close":
		_, err = m.Close(ctx, "", CloseOptions{Sync: how == "sync", Discard: how != "sync"})
	case "prune":
		_, err = m.Prune(ctx, PruneOptions{All: true})
	case "append":
		return appendAndSync(ctx, m, how)
	default:
		err = errors.New("no such role")
	}
	return err
}

func start(t *testing.T, role, base string, kill int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+base, killVariable+"="+strconv.Itoa(kill))
	return cmd
}

// killed runs role and reports whether it was killed before it was done.
func killed(t *testing.T, role, base string, kill int) bool {
	t.Helper()
	out, err := start(t, role, base, kill).CombinedOutput()
	exit := new(exec.ExitError)
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%s, to be killed at %d: %v: %s", role, kill, err, out)
	}
	return false
}

// killSource is the archive of the tests that kill.
func killSource(t *testing.T) []byte {
	files := []file{{name: "mimetype", content: "application/x"}}
	for i := range 60 {
		files = append(files, file{name: fmt.Sprintf("dir%d/file%d.txt", i%7, i), content: strings.Repeat(fmt.Sprintln("line", i), 20)})
	}
	return zipOf(t, "comment", files...)
}

// change makes changes of all kinds in the only session.
func (s *scratch) change() {
	s.t.Helper()
	s.write("dir1/file1.txt", "changed")
	s.write("new/file.txt", "new")
	s.must(s.Delete(s.t.Context(), "", "dir2", true))
}

// Killed at any step, an operation leaves a good archive, and the next call a
// clean state.
func TestKilledAtEveryStep(t *testing.T) {
	source := killSource(t)
	plain := newScratch(t)
	plain.put("a.zip", source)
	before := listing(t, plain.path("a.zip"))
	plain.open("a.zip", OpenOptions{})
	plain.change()
	if _, err := plain.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	after := listing(t, plain.path("a.zip"))

	stride := longtest.Count(5, 1)
	var points atomic.Int64
	t.Run("roles", func(t *testing.T) {
		for _, role := range []string{"open", "open-lazy", "sync", "sync-copied", "sync-lazy", "close-discard", "close-sync", "prune"} {
			t.Run(role, func(t *testing.T) {
				t.Parallel()
				for at := 1; ; at += stride {
					s := newScratch(t)
					s.put("a.zip", source)
					for _, name := range []string{"a.bak.zip", "a.bak.2.zip"} {
						s.put(name, []byte(name))
					}
					what, how, _ := strings.Cut(role, "-")
					if what != "open" {
						s.open("a.zip", OpenOptions{Lazy: how == "lazy"})
						s.change()
					}
					if !killed(t, role, filepath.Dir(s.dir), at) {
						if at < 4 {
							t.Errorf("%s has only %d steps", role, at-1)
						}
						return
					}
					points.Add(1)
					survived(t, source, before, after, scratchIn(t, filepath.Dir(s.dir)), what, how == "sync" || what == "sync")
					if t.Failed() {
						t.Fatalf("killed at step %d", at)
					}
				}
			})
		}
	})
	if n, want := points.Load(), int64(200/stride); n < want {
		t.Errorf("killed at %d points, want %d", n, want)
	}
}

// survived checks what a killed process has left, by a new manager.
func survived(t *testing.T, source []byte, before, after string, s *scratch, what string, syncs bool) {
	t.Helper()
	have := listing(t, s.path("a.zip"))
	if have != before && (!syncs || have != after) {
		t.Errorf("the archive is neither the old nor the new one:\n%s", have)
	}
	list, err := s.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.leftovers()
	if len(list) == 0 {
		if what == "sync" {
			t.Error("the session is lost")
		}
		if what == "open" { // its name is free
			s.open("a.zip", OpenOptions{Name: "killed"})
		}
		if what == "close" && syncs && have != after {
			t.Error("the session was closed without being synced")
		}
		return
	}
	if list[0].State != stateOpen {
		t.Errorf("the session is %s", list[0].State)
	}
	st, err := s.Status(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case what == "open" || have == after:
		if st.dirty() {
			t.Errorf("status is %+v", st)
		}
	case len(st.Modified) != 1 || len(st.Added) != 1 || len(st.Deleted) == 0:
		t.Errorf("status is %+v", st)
	}
	if what == "open" {
		return
	}
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if now := listing(t, s.path("a.zip")); now != after {
		t.Errorf("after one more sync the archive is\n%s", now)
	}
	if have == before {
		if kept := listing(t, s.path("a.bak.zip")); kept != before {
			t.Errorf("the backup is\n%s", kept)
		}
	}
	if _, err := s.Workspaces.Close(t.Context(), "", CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	s.leftovers()
}

// appendAndSync writes a line to a shared file of the session again and again,
// each time with a file of its own, and syncs.
func appendAndSync(ctx context.Context, m *Workspaces, who string) error {
	for i := range 10 {
		if err := m.Write(ctx, "", Name(fmt.Sprintf("%s/%d", who, i)), []byte(who), true); err != nil {
			return err
		}
		if _, err := m.Sync(ctx, "", SyncOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// Two processes that write and sync one session lose nothing of each other.
func TestTwoProcessesTakeTurns(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		s := newScratch(t)
		s.put("a.zip", killSource(t))
		s.open("a.zip", OpenOptions{Lazy: lazy})
		base := filepath.Dir(s.dir)
		first, second := start(t, "append-one", base, 0), start(t, "append-two", base, 0)
		for _, c := range []*exec.Cmd{first, second} {
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []*exec.Cmd{first, second} {
			if err := c.Wait(); err != nil {
				t.Errorf("lazy %v: %v", lazy, err)
			}
		}
		have := listing(t, s.path("a.zip"))
		for _, who := range []string{"one", "two"} {
			for i := range 10 {
				if !strings.Contains(have, fmt.Sprintf("%s/%d 8 %q\n", who, i, who)) {
					t.Errorf("lazy %v: %s/%d is missing", lazy, who, i)
				}
			}
		}
		if st, err := s.Status(t.Context(), ""); err != nil || st.dirty() {
			t.Errorf("lazy %v: status %+v, %v", lazy, st, err)
		}
		s.leftovers()
	}
}
