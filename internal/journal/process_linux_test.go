package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Some tests need processes that they can kill or that share a journal: this
// binary again, with a role, a directory and a number in its environment.
const (
	roleVariable   = "JOURNAL_TEST_ROLE"
	dirVariable    = "JOURNAL_TEST_DIR"
	numberVariable = "JOURNAL_TEST_NUMBER"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	var n int
	if _, err := fmt.Sscan(os.Getenv(numberVariable), &n); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := roles[role](os.Getenv(dirVariable), n); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

var roles = map[string]func(dir string, n int) error{
	"restless": func(dir string, n int) error { return restless(dir, stateOfTest(dir), n, 1<<30, 1<<30) },
	"crowded":  func(dir string, n int) error { return restless(dir, stateOfTest(dir), n, 1<<20, 1<<30) },
	"neighbour": func(dir string, n int) error {
		return restless(filepath.Join(dir, fmt.Sprint(n)), stateOfTest(dir), n, 2<<20, 40)
	},
}

// stateOfTest is where the journal of a scratch directory is.
func stateOfTest(dir string) string { return filepath.Join(filepath.Dir(dir), "state", "journal") }

func start(t *testing.T, role, dir string, n int) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir, fmt.Sprint(numberVariable, "=", n))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// A worker changes what is in a directory.
type worker struct {
	w     *atomicfile.Writer
	roots *roots.Roots
	j     *Journal
	dir   string
	rand  *rand.Rand
	count int
}

// restless changes what is in dir, times times and at random, with the journal
// in state, and says each time that it has.
func restless(dir, state string, seed int, max int64, times int) error {
	j := New(Settings{Dir: state, Max: max}, slog.New(slog.NewTextHandler(os.Stdout, nil)))
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		return err
	}
	w := &worker{w: atomicfile.New(), roots: r, j: j, dir: dir, rand: rand.New(rand.NewPCG(uint64(seed), 1))}
	for range times {
		if err := w.change(); err != nil {
			return err
		}
		fmt.Println(w.count)
	}
	return nil
}

// change makes one change, or undoes the last.
func (w *worker) change() error {
	w.count++
	var files, dirs []string
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == w.dir || atomicfile.IsTemp(d.Name()):
		case d.IsDir():
			dirs = append(dirs, path)
		case d.Type().IsRegular():
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	what := w.rand.IntN(7)
	if what == 6 {
		u := Undoer{Journal: w.j, Writer: w.w, Resolve: w.roots.Resolve}
		_, err := u.Undo(ctx, "", false)
		switch code, _ := fault.Of(err); {
		case code == fault.FSNotFound && err != nil:
			return nil // no change
		case (code == fault.PreconditionFailed || code == fault.FSOperation) && w.j.max < 1<<30:
			return nil // a later change of the file was too large to be kept
		}
		return err
	}
	c := w.j.Begin("test")
	defer c.Done()
	p := c.Part()
	pick := func(list []string) string { return list[w.rand.IntN(len(list))] }
	switch {
	case what <= 2 || len(files) < 4 || len(dirs) < 2:
		var jobs []*atomicfile.Job
		for n := range 1 + w.rand.IntN(8) {
			path := filepath.Join(w.dir, fmt.Sprint("d", w.rand.IntN(4)), fmt.Sprint("f", w.rand.IntN(6)))
			if what == 2 && len(files) > 0 {
				path = pick(files)
			}
			at, err := w.roots.Resolve(path)
			if err != nil {
				return err
			}
			mode := atomicfile.Overwrite
			if n == 3 {
				mode = atomicfile.Append
			}
			jobs = append(jobs, &atomicfile.Job{Place: at, Content: strings.Repeat(fmt.Sprintln(w.count, n), 1+w.rand.IntN(4000)), Mode: mode, Keep: p})
		}
		if err := w.w.Run(ctx, jobs, nil); err != nil {
			return err
		}
		for _, j := range jobs {
			err = errors.Join(err, j.Err)
		}
		return err
	case what == 3:
		at, err := w.roots.Resolve(pick(dirs))
		if err == nil {
			_, err = filetree.Delete(ctx, w.w, at, true, p, nil)
		}
		return err
	case what == 4:
		at, err := w.roots.Resolve(pick(files))
		if err == nil {
			_, err = filetree.Delete(ctx, w.w, at, true, p, nil)
		}
		return err
	}
	from, err := w.roots.Resolve(pick(files))
	if err != nil {
		return err
	}
	to, err := w.roots.Resolve(pick(files))
	if err != nil {
		return err
	}
	if w.rand.IntN(2) == 0 {
		_, err = filetree.Move(ctx, w.w, from, to, filetree.Options{Keep: p})
	} else {
		_, err = filetree.Copy(ctx, w.w, from, to, filetree.Options{Keep: p})
	}
	if err != nil && strings.Contains(err.Error(), "are the same") {
		return nil
	}
	return err
}

// undoAll undoes every change that is in effect, newest first.
func (s *scratch) undoAll() {
	s.Helper()
	ids, err := s.j.list()
	s.ok(err)
	accounts := map[string]*account{}
	for _, id := range ids {
		a, err := s.j.load(id)
		s.ok(err)
		if !a.done {
			s.Errorf("%s was not completed", id)
		}
		accounts[id] = a
	}
	for _, id := range slices.Backward(ids) {
		a := accounts[id]
		if a.undone != "" || len(a.steps) == 0 {
			continue
		}
		inEffect := true
		for of := a.of; of != ""; of = accounts[of].of {
			if accounts[of].undone == "" { // its undo was interrupted
				break
			}
			inEffect = !inEffect
		}
		if inEffect {
			if _, err := s.undoer().Undo(s.Context(), id, false); err != nil {
				for _, id := range ids {
					b, _ := s.j.changes.ReadFile(filepath.Join(id, recordName))
					s.Logf("%s\n%s", id, b)
				}
				s.Fatalf("%s: %v", id, err)
			}
		}
	}
}

// sweep removes what killed writes have left: temporary files, and directories
// that were made and nothing was written in yet.
func (s *scratch) sweep() {
	s.Helper()
	var temps []string
	s.ok(filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && atomicfile.IsTemp(d.Name()) {
			temps = append(temps, path)
		}
		return err
	}))
	for _, path := range temps {
		s.ok(os.RemoveAll(path))
	}
	for n := range 4 {
		os.Remove(s.path(fmt.Sprint("d", n)))
	}
}

// kill lets role work on s for a while and kills it.
func (s *scratch) kill(t *testing.T, role string, n int, after time.Duration) {
	t.Helper()
	cmd, out := start(t, role, s.dir, n)
	if _, err := out.ReadString('\n'); err != nil { // it is at work
		t.Fatal(err)
	}
	time.Sleep(after)
	s.ok(cmd.Process.Kill())
	said, _ := io.ReadAll(out)
	if err := cmd.Wait(); err == nil || strings.Contains(string(said), "failed") {
		t.Fatalf("it ended by itself: %s", said)
	}
}

// After kill -9 at any point the journal takes everything back.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	s := newScratch(t)
	s.fill()
	before := s.picture()
	for n := range longtest.Count(15, 60) {
		s.kill(t, "restless", n, time.Duration(n)*331*time.Microsecond)
		s.j = s.journal(testMax)
		s.undoAll()
		s.sweep()
		if got := s.picture(); got != before {
			t.Fatalf("run %d: after undoing all\n%s\nwant\n%s", n, got, before)
		}
		s.ok(os.RemoveAll(s.state))
	}
}

// A journal that drops its oldest changes all the time loses none of the others
// when its process is killed.
func TestKilledWhilePruning(t *testing.T) {
	t.Parallel()
	s := newScratch(t)
	s.fill()
	for n := range longtest.Count(10, 40) {
		s.kill(t, "crowded", n, 10*time.Millisecond+time.Duration(n)*477*time.Microsecond)
		s.j = s.journal(1 << 20)
		ids, err := s.j.list()
		s.ok(err)
		for _, id := range ids {
			a, err := s.j.load(id)
			if err != nil || !a.done {
				t.Fatalf("run %d: %s: %v", n, id, err)
			}
			for _, step := range a.steps {
				if step.had.Blob == "" || a.undone != "" {
					continue
				}
				if fi, err := s.j.changes.Lstat(filepath.Join(id, step.had.Blob)); err != nil || !step.had.Cut && fi.Size() != step.had.Size {
					t.Fatalf("run %d: %s of %s: %v", n, step.path, id, err)
				}
			}
		}
		if list, err := os.ReadDir(filepath.Join(s.state, openDir)); err != nil || len(list) > 0 {
			t.Errorf("run %d: locks left behind: %v, %v", n, list, err)
		}
		// The last change of the process that was killed, an undo cut short among
		// others: left alone, its file and what is kept would be one.
		for _, id := range slices.Backward(ids) {
			if a, err := s.j.load(id); err != nil || a.undone != "" || len(a.steps) == 0 {
				continue
			}
			_, err = s.undoer().Undo(t.Context(), id, false)
			if code, _ := fault.Of(err); err != nil && code != fault.PreconditionFailed {
				t.Fatalf("run %d: %v", n, err)
			}
			break
		}
		s.sweep()
	}
}

// Several servers use one journal at the same time.
func TestSeveralProcesses(t *testing.T) {
	t.Parallel()
	s := newScratch(t)
	var wg sync.WaitGroup
	for n := range 4 {
		s.ok(os.Mkdir(s.path(fmt.Sprint(n)), 0o755))
		wg.Go(func() {
			cmd, out := start(t, "neighbour", s.dir, n)
			said, err := io.ReadAll(out)
			if err = errors.Join(err, cmd.Wait()); err != nil {
				t.Errorf("process %d: %v: %s", n, err, said)
			}
		})
	}
	wg.Wait()
	ids, err := s.j.list()
	s.ok(err)
	var total int64
	for _, id := range ids {
		a, err := s.j.load(id)
		if err != nil || !a.done {
			t.Errorf("%s: %v", id, err)
			continue
		}
		total += a.bytes
	}
	if len(ids) == 0 || total > 4<<20 {
		t.Errorf("%d changes with %d bytes", len(ids), total)
	}
	if list, err := os.ReadDir(filepath.Join(s.state, openDir)); err != nil || len(list) > 0 {
		t.Errorf("locks left behind: %v, %v", list, err)
	}
}

// Where the journal is on another device, files are copied there and back.
func TestAcrossDevices(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "journal")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	s := newScratch(t)
	s.state = filepath.Join(shm, "journal")
	s.j = s.journal(testMax)
	s.fill()
	before := s.picture("d", "d/sub")
	s.change("test", func(p *Part) {
		s.put(p, "a", "new", atomicfile.Overwrite)
		s.put(p, "special", "new", atomicfile.Overwrite)
		s.delete(p, "d")
		s.move(p, "l", "b")
	})
	after := s.picture()
	r := s.undo("")
	if got := s.picture("d", "d/sub"); got != before {
		t.Errorf("after undo\n%s\nwant\n%s", got, before)
	}
	s.undo(r.ChangeID)
	if got := s.picture(); got != after {
		t.Errorf("after redo\n%s\nwant\n%s", got, after)
	}
}

// Moving to another device copies; undoing it moves back.
func TestMoveAcrossDevices(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "journal")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	s := newScratch(t)
	if s.roots, _, err = roots.New(roots.Config{Allowed: []string{s.dir, shm}, Project: s.dir}); err != nil {
		t.Fatal(err)
	}
	s.fill()
	if err := os.WriteFile(filepath.Join(shm, "over"), []byte("there before"), 0o640); err != nil {
		t.Fatal(err)
	}
	before := s.picture("d", "d/sub")
	to := func(name string) string { return filepath.Join(shm, name) }
	mark := s.change("test", func(p *Part) {
		for from, name := range map[string]string{"a": "over", "d": "tree"} {
			at, err := s.roots.Resolve(to(name))
			s.ok(err)
			_, err = filetree.Move(t.Context(), s.w, s.at(from), at, filetree.Options{Keep: p})
			s.ok(err)
		}
	})
	if _, err := os.Lstat(s.path("d")); err == nil || mark.ChangeID == "" {
		t.Fatalf("d: %v, mark %+v", err, mark)
	}
	s.undo("")
	if got := s.picture("d", "d/sub"); got != before && !strings.Contains(before, "again") {
		t.Errorf("after undo\n%s\nwant\n%s", got, before)
	}
	if b, err := os.ReadFile(to("over")); err != nil || string(b) != "there before" {
		t.Errorf("over holds %q, %v", b, err)
	}
	if _, err := os.Lstat(to("tree")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("tree: %v", err)
	}
}

func TestWhatCannotBeKept(t *testing.T) {
	s := newScratch(t)
	s.write("d/f", "old", 0o600)
	s.ok(syscall.Mkfifo(s.path("d/special"), 0o600))
	if m := s.change("test", func(p *Part) { s.delete(p, "d") }); !unkept(m) || len(s.kept()) != 0 {
		t.Errorf("a special file: mark %+v, kept %v", m, s.kept())
	}
	_, err := s.undoer().Undo(t.Context(), "", false)
	wantCode(t, err, fault.FSOperation, "was not kept")
}
