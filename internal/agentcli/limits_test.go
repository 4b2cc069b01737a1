package agentcli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
)

// silenceOnly is a clock by which no limit is reached but the one of less than a
// second, and that when ring is called.
func silenceOnly() (c *process.Clock, ring func()) {
	ringing := make(chan time.Time)
	return &process.Clock{Now: time.Now, After: func(d time.Duration) <-chan time.Time {
		if d >= time.Second {
			return nil
		}
		return ringing
	}}, func() { ringing <- time.Now() }
}

func TestTimeLimits(t *testing.T) {
	idle := func(c *config.Config) { c.Runner.TimeoutSeconds = 1e-6 }
	t.Run("silent", func(t *testing.T) {
		b := newBench(t, both(plays("fake", "auto", "hang"), func(c *config.Config) { c.Runner.TimeoutSeconds = 0.05 }))
		r := b.do(t, nil)
		if r.OK || r.Failure.Class != "idle_timeout" || !r.Runner.TimedOut || r.Attempts != 2 || r.Runner.ExitCode != nil || *r.Runner.Signal != "SIGTERM" {
			t.Errorf("got %s", pretty(r))
		}
		if again := b.do(t, nil); !strings.Contains(again.Errors[0], "marked unavailable") {
			t.Errorf("after two silent attempts it is still used: %s", pretty(again.Errors))
		}
	})
	// The first attempt hangs once it has made its file, and is then told silent.
	for _, c := range []struct {
		name     string
		steps    []string
		onDirty  bool
		attempts int
		raw      string
	}{
		{"a second attempt", []string{"stdin", "once $first hang", "out done"}, false, 2, "done\n"},
		{"no second attempt on changed files", []string{"stdin", "write note.txt hi", "once $first hang", "out done"}, false, 1, ""},
		{"but where onDirty says so", []string{"stdin", "write note.txt hi", "once $first hang", "out done"}, true, 2, "done\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := filepath.Join(t.TempDir(), "first")
			for i, step := range c.steps {
				c.steps[i] = strings.ReplaceAll(step, "$first", first)
			}
			clock, ring := silenceOnly()
			b := benchWith(t, both(plays("fake", "auto", c.steps...), idle, func(conf *config.Config) { conf.Runner.Retry.OnDirty = c.onDirty }),
				func(s *agentcli.Services) { s.Clock = clock })
			go func() {
				agenttest.WaitFor(t, first)
				ring()
			}()
			if r := b.do(t, nil); r.OK != (c.attempts == 2) || r.Attempts != c.attempts || r.Result.Raw != c.raw || c.attempts == 1 && !strings.Contains(strings.Join(r.Errors, " "), "files were changed") {
				t.Errorf("got %s", pretty(r))
			}
		})
	}
	t.Run("hard", func(t *testing.T) {
		b := newBench(t, both(plays("fake", "auto", "stdin", "tick 1000"), func(c *config.Config) { c.Runner.MaxSeconds = 0.5 }))
		if r := b.do(t, nil); r.OK || r.Failure.Class != "hard_timeout" || r.Attempts != 1 || !r.Runner.TimedOut {
			t.Errorf("got %s", pretty(r))
		}
	})
	t.Run("an agent that waits for the end of its input", func(t *testing.T) {
		b := newBench(t, both(plays("fake", "auto", "stdin", "out done"), func(c *config.Config) {
			p := c.Providers["fake"]
			p.InputMode = config.Arg
			c.Providers["fake"] = p
		}))
		if r := b.do(t, nil); !r.OK {
			t.Errorf("got %s", pretty(r))
		}
	})
}

// running returns the processes whose environment holds text.
func running(t testing.TB, text string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // no such thing here
	}
	var pids []int
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && strings.Contains(string(env), text) {
			if pid, err := strconv.Atoi(e.Name()); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestNothingIsLeft(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []string
		idle  float64
	}{
		{"by itself", []string{"stdin", "child group sleep 3600000", "out done"}, 60},
		{"child in another session", []string{"stdin", "child session sleep 3600000", "out done"}, 60},
		{"killed", []string{"stdin", "child group ignoreterm,hang", "child session ignoreterm,hang", "ignoreterm", "hang"}, 0.3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, both(plays("fake", "auto", c.steps...), func(conf *config.Config) {
				conf.Runner.TimeoutSeconds, conf.Runner.Retry.MaxAttempts = c.idle, 1
			}))
			began := time.Now()
			r := b.do(t, func(r *agentcli.Request) {
				r.TaskID = fmt.Sprintf("left-%d-%s", os.Getpid(), strings.Map(letter, c.name))
			})
			if left := running(t, "CONDUIT_AGENT_TASK="+r.TaskID); len(left) > 0 {
				t.Errorf("these still run: %v", left)
			}
			t.Logf("%s with a limit of %v s", time.Since(began), c.idle)
		})
	}
}

func letter(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return '-'
}

func TestMemoryIsFlat(t *testing.T) {
	printed := longtest.Count(256<<20, 1<<30)
	b := newBench(t, plays("fake", "auto", "stdin", "out begin", fmt.Sprint("huge ", printed), "out end"))
	done := make(chan uint64)
	stop := make(chan struct{})
	go func() {
		var most uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	began := time.Now()
	r := b.do(t, nil)
	close(stop)
	most := <-done
	t.Logf("1 GiB in %s, heap at most %d MiB", time.Since(began), most>>20)
	if !r.OK || most > 64<<20 {
		t.Errorf("heap of %d bytes: %s", most, pretty(r.Failure))
	}
	fi, err := os.Stat(r.ExecutionLog.Path)
	if err != nil || fi.Size() < int64(printed) {
		t.Errorf("the log is not whole: %v", err)
	}
	if !strings.HasPrefix(r.Runner.Stdout, "begin\n") || !strings.HasSuffix(r.Runner.Stdout, "end\n") {
		t.Error("the ends of the output are not in the result")
	}
	if n := len(pretty(r)); n > 40<<10 {
		t.Errorf("the result takes %d bytes", n)
	}
}
