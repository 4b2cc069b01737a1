package agentcli_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// forever is as long as a test may wait for what happens.
const forever = time.Hour

func TestTwentyTasksInTwentyTrees(t *testing.T) {
	const n = 20
	base := newBench(t, plays("fake", "codex-jsonl", "stdin", "say codex", "write note.txt hi", "sleep 300"))
	var cwds []place.Place
	for i := range n {
		b := &bench{dir: filepath.Join(base.dir, fmt.Sprintf("tree%d", i))}
		b.write(t, "a", "a\n")
		b.git(t, "init", "-q")
		b.git(t, "add", "-A")
		b.git(t, "commit", "-q", "-m", "first")
		r, _, err := roots.New(roots.Config{Allowed: []string{base.dir}, Home: base.dir, Project: base.dir})
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Resolve(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		cwds = append(cwds, p)
	}
	began := time.Now()
	for i, cwd := range cwds {
		r, err := base.Start(t.Context(), agentcli.Request{Provider: "fake", Instructions: "x", TaskID: fmt.Sprintf("t%d", i), Cwd: cwd})
		if err != nil || !r.OK || r.Status != task.Queued {
			t.Fatal(pretty(r), err)
		}
	}
	for i := range n {
		s, err := base.Read(t.Context(), fmt.Sprintf("t%d", i), "", forever, base.cwd)
		if err != nil || s.Status != task.Succeeded || s.Result == nil || !slices.Equal(s.Result.Result.Paths, []string{"note.txt"}) {
			t.Errorf("task %d: %v %s", i, err, pretty(s))
		}
	}
	t.Logf("%d tasks of 300 ms in %s", n, time.Since(began))
	list, more, err := base.List(t.Context(), base.cwd, 15)
	if err != nil || len(list) != 15 || more != 5 {
		t.Errorf("list: %d and %d more, %v", len(list), more, err)
	}
}

func TestOneRunPerTree(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "out x", "write running x", "sleep 100", "remove running"))
	b.repository(t)
	commit := "git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m more && echo x >> README.md && git -c user.name=a -c user.email=a@example.org commit -qam more"
	for _, id := range []string{"one", "two", "three"} {
		r := b.request()
		r.TaskID, r.TestCommand = id, &commit
		if _, err := b.Start(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"one", "two", "three"} {
		s, err := b.Read(t.Context(), id, "", forever, b.cwd)
		if err != nil || s.Status != task.Succeeded || s.Result.Git.Baseline.Status != "" || len(s.Result.Git.Baseline.Paths) > 0 {
			t.Errorf("%s saw another: %v %s", id, err, pretty(s.Result))
		}
	}
}

func TestTaskIDs(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "out x"))
	for _, id := range []string{"a/b", "..", ".x", "a..b", "x.lock", "é"} {
		if _, err := b.Run(t.Context(), agentcli.Request{Provider: "fake", Instructions: "x", TaskID: id, Cwd: b.cwd}, nil); err == nil {
			t.Errorf("task id %q was accepted", id)
		}
	}
	named := func(r *agentcli.Request) { r.TaskID = "mine" }
	if r := b.do(t, named); !r.OK {
		t.Error(pretty(r))
	}
	r := b.request()
	named(&r)
	if _, err := b.Run(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a name used twice gave %v", err)
	}
	b.write(t, "sub/x", "")
	var err error
	if r.Cwd, err = b.cwd.Guard.Resolve(filepath.Join(b.dir, "sub")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a name used in another directory gave %v", err)
	}
	if again := benchIn(t, b.dir, plays("fake", "auto", "stdin", "out x")); again != nil {
		if _, err := again.Run(t.Context(), agentcli.Request{Provider: "fake", Instructions: "x", TaskID: "mine", Cwd: again.cwd}, nil); err == nil {
			t.Error("a name used before the server started was accepted")
		}
		s, err := again.Read(t.Context(), "mine", "", 0, again.cwd)
		if err != nil || s.Status != task.Succeeded || s.Result == nil || s.Result.Result.Raw != "x\n" {
			t.Errorf("after a restart: %v %s", err, pretty(s))
		}
	}
}

func TestEventsWithCursor(t *testing.T) {
	b := newBench(t, plays("fake", "codex-jsonl", "stdin", "chunks 4 codex", "waitfor go"))
	r := b.request()
	r.TaskID = "e"
	if _, err := b.Start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	cursor := "0"
	for len(kinds) < 4 {
		s, err := b.Read(t.Context(), "e", cursor, forever, b.cwd)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Events) == 0 {
			t.Fatalf("waited in vain after %v", kinds)
		}
		for _, ev := range s.Events {
			kinds = append(kinds, ev.Kind+" "+ev.Text)
		}
		cursor = s.Cursor
	}
	want := []string{"session x-1", "tool command bash -lc 'echo hi > note.txt'", "tool edit add note.txt", "text Wrote the note."}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %q", kinds)
	}
	b.write(t, "go", "")
	if s, err := b.Read(t.Context(), "e", "", forever, b.cwd); err != nil || s.Status != task.Succeeded {
		t.Errorf("%v %s", err, pretty(s))
	}
	if _, err := b.Read(t.Context(), "e", "next", 0, b.cwd); err == nil {
		t.Error("a made-up cursor was accepted")
	}
	if _, err := b.Read(t.Context(), "none", "", 0, b.cwd); err == nil {
		t.Error("a task that never was has a status")
	}
}

func TestCancel(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "write note.txt hi", "write started x", "ignoreterm", "hang"))
	b.repository(t)
	r := b.request()
	r.TaskID = "c"
	if _, err := b.Start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	agenttest.WaitFor(t, filepath.Join(b.dir, "started"))
	s, err := b.Cancel(t.Context(), "c", b.cwd)
	if err != nil || s.Status != task.Cancelled || *s.Result.Runner.Signal != "SIGKILL" {
		t.Fatalf("%v %s", err, pretty(s))
	}
	if !slices.Equal(s.Result.Result.Paths, []string{"note.txt", "started"}) {
		t.Errorf("what it changed is told as %v", s.Result.Result.Paths)
	}
	if s, err = b.Cancel(t.Context(), "c", b.cwd); err != nil || s.Status != task.Cancelled {
		t.Errorf("cancelled again: %v %s", err, pretty(s))
	}
}

func TestCancelledCall(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "write started x", "hang"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g sync.WaitGroup
	g.Go(func() {
		r := b.request()
		r.TaskID = "c"
		if _, err := b.Run(ctx, r, nil); err == nil {
			t.Error("a cancelled call has a result")
		}
	})
	agenttest.WaitFor(t, filepath.Join(b.dir, "started"))
	cancel()
	g.Wait()
	if s, err := b.Read(t.Context(), "c", "", 0, b.cwd); err != nil || s.Status != task.Cancelled {
		t.Errorf("%v %s", err, pretty(s))
	}
}

func TestCancelFromAnotherServer(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "write started x", "hang"))
	r := b.request()
	r.TaskID = "c"
	if _, err := b.Start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	agenttest.WaitFor(t, filepath.Join(b.dir, "started"))
	other := benchIn(t, b.dir, nil)
	if s, err := other.Read(t.Context(), "c", "", 0, other.cwd); err != nil || s.Status != task.Running {
		t.Errorf("seen from another server: %v %s", err, pretty(s))
	}
	if s, err := other.Cancel(t.Context(), "c", other.cwd); err != nil || s.Status != task.Cancelled {
		t.Errorf("%v %s", err, pretty(s))
	}
}

func TestCloseInterrupts(t *testing.T) {
	// What ignores the request to end has no time to do so but what is left when
	// the server is in a hurry.
	clock := &process.Clock{Now: time.Now, After: func(d time.Duration) <-chan time.Time {
		if d >= time.Second {
			return nil
		}
		return time.After(d)
	}}
	b := benchWith(t, plays("fake", "auto", "ignoreterm", "write note.txt hi", "write started x", "hang"), func(s *agentcli.Services) { s.Clock = clock })
	r := b.request()
	r.TaskID = "c"
	if _, err := b.Start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	agenttest.WaitFor(t, filepath.Join(b.dir, "started"))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	after := benchIn(t, b.dir, nil)
	s, err := after.Read(t.Context(), "c", "", 0, after.cwd)
	if err != nil || s.Status != task.Interrupted || !slices.Contains(s.Result.Result.Paths, "note.txt") {
		t.Errorf("%v %s", err, pretty(s))
	}
	if _, err := b.Start(t.Context(), b.request()); err == nil {
		t.Error("a closed engine takes tasks")
	}
}

// serveUntilKilled starts a task in dir, as a server that is killed does.
func serveUntilKilled(dir string) {
	agenttest.Fake = os.Getenv("AGENTCLI_TEST_FAKE")
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Home: dir, Project: dir})
	if err != nil {
		panic(err)
	}
	b := &bench{dir: dir, conf: config.Default()}
	if b.cwd, err = r.Resolve(dir); err != nil {
		panic(err)
	}
	plays("fake", "auto", "out hello", "write note.txt hi", "child session sleep,3600000", "write started x", "hang")(b.conf)
	b.Engine = agentcli.New(b.conf, services(dir))
	req := b.request()
	req.TaskID, req.Worktree = os.Getenv("AGENTCLI_TEST_TASK"), os.Getenv("AGENTCLI_TEST_WORKTREE") != ""
	res, err := b.Start(context.Background(), req)
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Status)
	time.Sleep(time.Hour)
}

// killedServer has a server of its own start a task in b, which is killed with
// the task under way, and returns the task's id.
func killedServer(t *testing.T, b *bench, worktree bool) (id string) {
	t.Helper()
	id = fmt.Sprintf("k%d", os.Getpid())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AGENTCLI_TEST_SERVER="+b.dir, "AGENTCLI_TEST_TASK="+id, "TMPDIR="+t.TempDir())
	started := filepath.Join(b.dir, "started")
	if worktree {
		cmd.Env = append(cmd.Env, "AGENTCLI_TEST_WORKTREE=1")
		started = filepath.Join(b.dir, ".mcp-conduit", "worktrees", id, "started")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	agenttest.WaitFor(t, started)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return id
}

func TestARunAfterAKilledServer(t *testing.T) {
	b := newBench(t, both(plays("fake", "auto", "stdin", "write other.txt x"), func(c *config.Config) {
		p := c.Providers["fake"]
		p.Env = map[string]string{"NOTE_TOKEN": "+++ b/note"}
		c.Providers["fake"] = p
	}))
	b.repository(t)
	id := killedServer(t, b, false)
	if r := b.do(t, nil); !r.OK || !slices.Equal(r.Result.Paths, []string{"other.txt"}) {
		t.Errorf("got %s", pretty(r))
	}
	if left := running(t, "CONDUIT_AGENT_TASK="+id+"-"); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if s, err := b.Read(t.Context(), id, "", 0, b.cwd); err != nil || s.Status != task.Interrupted || !slices.Equal(s.Result.Result.Paths, []string{"note.txt", "started"}) ||
		strings.Contains(s.Result.Result.Diff, "+++ b/note") || !strings.Contains(s.Result.Result.Diff, "+hi\n") {
		t.Errorf("%v %s", err, pretty(s))
	}
}

func TestKilledServer(t *testing.T) {
	for _, c := range []struct {
		name           string
		repo, worktree bool
	}{{"repository", true, false}, {"plain directory", false, false}, {"worktree", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			if c.repo {
				b.repository(t)
			}
			id := killedServer(t, b, c.worktree)
			s, err := b.Cancel(t.Context(), id, b.cwd)
			if err != nil || s.Status != task.Interrupted || s.Result == nil || !slices.Equal(s.Result.Result.Paths, []string{"note.txt", "started"}) {
				t.Fatalf("%v %s", err, pretty(s))
			}
			if left := running(t, "CONDUIT_AGENT_TASK="+id+"-"); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
			if c.worktree {
				if _, err := b.Apply(t.Context(), id, b.cwd); err != nil {
					t.Fatal(err)
				}
				if b.read(t, "note.txt") != "hi\n" {
					t.Error("the changes were not applied")
				}
			} else if again, err := b.Read(t.Context(), id, "", 0, b.cwd); err != nil || pretty(again) != pretty(s) {
				t.Errorf("told differently the second time: %v %s", err, pretty(again))
			}
		})
	}
}

// TestOneRunAboveAndBelow: a run waits for one in a directory that holds its own,
// also where another server has started that.
func TestOneRunAboveAndBelow(t *testing.T) {
	outer := newBench(t, plays("fake", "auto", "stdin", "write started x", "waitfor go"))
	outer.write(t, "in/x", "")
	inner := benchOver(t, filepath.Join(outer.dir, "in"), plays("fake", "auto", "stdin", "out x"), func(s *agentcli.Services) { s.State = outer.state() })
	r := outer.request()
	r.TaskID = "outer"
	if _, err := outer.Start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	agenttest.WaitFor(t, filepath.Join(outer.dir, "started"))
	r = inner.request()
	r.TaskID = "inner"
	if _, err := inner.Start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * task.Retry)
	if s, err := inner.Read(t.Context(), "inner", "", 0, inner.cwd); err != nil || s.Status != task.Queued {
		t.Errorf("two run in one tree: %v %s", err, pretty(s))
	}
	outer.write(t, "go", "")
	for b, id := range map[*bench]string{outer: "outer", inner: "inner"} {
		if s, err := b.Read(t.Context(), id, "", forever, b.cwd); err != nil || s.Status != task.Succeeded {
			t.Errorf("%s: %v %s", id, err, pretty(s))
		}
	}
}
