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
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
)

func TestTimeLimits(t *testing.T) {
	idle := func(c *config.Config) { c.Runner.TimeoutSeconds = 0.4 }
	count := func(t *testing.T) string { return filepath.Join(t.TempDir(), "first") }
	t.Run("silent", func(t *testing.T) {
		b := newBench(t, both(plays("fake", "auto", "stdin", "out x", "hang"), idle))
		r := b.do(t, nil)
		if r.OK || r.Failure.Class != "idle_timeout" || !r.Runner.TimedOut || r.Attempts != 2 || r.Runner.ExitCode != nil || *r.Runner.Signal != "SIGTERM" {
			t.Errorf("got %s", pretty(r))
		}
		if again := b.do(t, nil); !strings.Contains(again.Errors[0], "marked unavailable") {
			t.Errorf("after two silent attempts it is still used: %s", pretty(again.Errors))
		}
	})
	t.Run("a second attempt", func(t *testing.T) {
		b := newBench(t, both(plays("fake", "auto", "stdin", "once "+count(t)+" hang", "out done"), idle))
		if r := b.do(t, nil); !r.OK || r.Attempts != 2 || r.Result.Raw != "done\n" || len(r.Errors) != 1 {
			t.Errorf("got %s", pretty(r))
		}
	})
	t.Run("no second attempt on changed files", func(t *testing.T) {
		b := newBench(t, both(plays("fake", "auto", "stdin", "write note.txt hi", "once "+count(t)+" hang", "out done"), idle))
		if r := b.do(t, nil); r.OK || r.Attempts != 1 || !strings.Contains(strings.Join(r.Errors, " "), "files were changed") {
			t.Errorf("got %s", pretty(r))
		}
	})
	t.Run("but where onDirty says so", func(t *testing.T) {
		b := newBench(t, both(plays("fake", "auto", "stdin", "write note.txt hi", "once "+count(t)+" hang", "out done"), idle,
			func(c *config.Config) { c.Runner.Retry.OnDirty = true }))
		if r := b.do(t, nil); !r.OK || r.Attempts != 2 {
			t.Errorf("got %s", pretty(r))
		}
	})
	t.Run("slow but not silent", func(t *testing.T) {
		b := newBench(t, both(plays("fake", "auto", "stdin", "tick 16"), idle))
		if r := b.do(t, nil); !r.OK || r.Runner.DurationMs < 700 {
			t.Errorf("got %s", pretty(r))
		}
	})
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
	// The limit of a killed one is what is promised, and what idle adds.
	for _, c := range []struct {
		name  string
		steps []string
		idle  float64
		most  time.Duration
	}{
		{"by itself", []string{"stdin", "child group sleep 3600000", "out done"}, 60, 30 * time.Second},
		{"child in another session", []string{"stdin", "child session sleep 3600000", "out done"}, 60, 30 * time.Second},
		{"killed", []string{"stdin", "child group ignoreterm,hang", "child session ignoreterm,hang", "ignoreterm", "hang"}, 0.3, 6*time.Second + 300*time.Millisecond},
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
			took := time.Since(began)
			if left := running(t, "CONDUIT_AGENT_TASK="+r.TaskID); len(left) > 0 || took > c.most {
				t.Errorf("after %s these still run: %v", took, left)
			}
			t.Logf("%s: %s with a limit of %v s", c.name, took, c.idle)
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
	const printed = 1 << 30
	b := newBench(t, plays("fake", "auto", "stdin", "out begin", "huge 1073741824", "out end"))
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
	if err != nil || fi.Size() < printed {
		t.Errorf("the log is not whole: %v", err)
	}
	if !strings.HasPrefix(r.Runner.Stdout, "begin\n") || !strings.HasSuffix(r.Runner.Stdout, "end\n") {
		t.Error("the ends of the output are not in the result")
	}
	if n := len(pretty(r)); n > 40<<10 {
		t.Errorf("the result takes %d bytes", n)
	}
}
