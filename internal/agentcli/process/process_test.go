package process_test

import (
	"context"
	"fmt"
	"io"
	"math/rand"
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

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
)

const asked = "PROCESS_TEST_ASKED"

func TestMain(m *testing.M) {
	if os.Getenv(asked) != "" {
		fmt.Print(process.Inherited("PROCESS_TEST_DEPTH"))
		return
	}
	os.Exit(agenttest.Main(m))
}

func TestInherited(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // other systems do not tell
	}
	cmd := exec.Command("/bin/sh", "-c", `env -u PROCESS_TEST_DEPTH "$0"; true`, os.Args[0])
	cmd.Env = append(os.Environ(), asked+"=1", "PROCESS_TEST_DEPTH=7")
	if out, err := cmd.Output(); err != nil || string(out) != "7" {
		t.Errorf("hidden from it: %q, %v", out, err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asked+"=1")
	if out, err := cmd.Output(); err != nil || string(out) != "" {
		t.Errorf("there is none: %q, %v", out, err)
	}
}

func TestEnds(t *testing.T) {
	var all strings.Builder
	for i := range 400 {
		fmt.Fprintf(&all, "%d,", i)
	}
	text := all.String()
	random := rand.New(rand.NewSource(1))
	for range 200 {
		size, most := random.Intn(len(text)), 1+random.Intn(600)
		e := &process.HeadTail{Max: most}
		for rest := text[:size]; rest != ""; {
			n := min(1+random.Intn(200), len(rest))
			if _, err := e.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		want := text[:size]
		if left := size - 2*most; left > 0 {
			want = fmt.Sprintf("%s\n… %d bytes left out …\n%s", text[:most], left, text[size-most:size])
		}
		if got := e.String(); got != want || e.Left() != int64(max(0, size-2*most)) {
			t.Fatalf("%d bytes, %d kept of each end:\n%s\nwant\n%s", size, most, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	text := "one\r\n\n" + strings.Repeat("x", 20) + "\ntwo\nthree"
	for size := 1; size <= len(text); size++ {
		var got []string
		l := &process.Lines{Max: 10, F: func(b []byte) { got = append(got, string(b)) }}
		for i := 0; i < len(text); i += size {
			if _, err := l.Write([]byte(text[i:min(i+size, len(text))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if want := []string{"one", "", "two", "three"}; !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

func TestNotStarted(t *testing.T) {
	if _, err := process.Run(t.Context(), process.Spec{Path: "/no/such/program", Stdin: []byte("x")}); err == nil {
		t.Error("a program that is not there ran")
	}
}

// A clock stands still until it is moved on.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[chan time.Time]time.Time
	set    chan time.Duration // each After
}

func newClock() *clock {
	return &clock{now: time.Unix(0, 0), timers: map[chan time.Time]time.Time{}, set: make(chan time.Duration, 100)}
}

func (c *clock) Clock() *process.Clock {
	return &process.Clock{
		Now: func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.now
		},
		After: func(d time.Duration) <-chan time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			timer := make(chan time.Time, 1)
			c.timers[timer] = c.now.Add(d)
			c.set <- d
			return timer
		}}
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for timer, at := range c.timers {
		if !at.After(c.now) {
			timer <- c.now
			delete(c.timers, timer)
		}
	}
}

// told passes on what is written to it.
type told chan string

func (w told) Write(b []byte) (int, error) { w <- string(b); return len(b), nil }

func TestIdle(t *testing.T) {
	c, out, dir := newClock(), make(told, 10), t.TempDir()
	ended := make(chan process.Result, 1)
	go func() {
		r, err := process.Run(t.Context(), process.Spec{Path: agenttest.Fake, Args: []string{"out one", "waitfor go", "out two", "hang"}, Dir: dir, Idle: time.Minute, Out: out, Clock: c.Clock()})
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	if d := <-c.set; d != time.Minute {
		t.Fatalf("the limit is %s", d)
	}
	<-out
	c.advance(50 * time.Second)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-out
	c.advance(50 * time.Second) // 100 s in all, and 50 since it spoke
	if d := <-c.set; d != 10*time.Second {
		t.Errorf("after a sign of life it has another %s", d)
	}
	select {
	case r := <-ended:
		t.Fatalf("ended though it spoke: %+v", r)
	default:
	}
	c.advance(10 * time.Second)
	if r := <-ended; r.End != process.Idle || r.Duration != 110*time.Second || r.ExitCode != -1 && runtime.GOOS != "windows" {
		t.Errorf("%+v", r)
	}
}

func TestHard(t *testing.T) {
	c, out := newClock(), make(told, 100)
	go func() {
		<-c.set
		<-out
		c.advance(time.Hour)
		for range out { // it goes on speaking
		}
	}()
	r, err := process.Run(t.Context(), process.Spec{Path: agenttest.Fake, Args: []string{"tick 1000000"}, Hard: time.Hour, Out: out, Clock: c.Clock()})
	close(out)
	if err != nil || r.End != process.Hard {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestGrace: what does not heed the request to end is forced to, after Grace,
// which somebody in a hurry cuts short.
func TestGrace(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // nothing can be asked there
	}
	for _, inHurry := range []bool{false, true} {
		c, dir, hurry := newClock(), t.TempDir(), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			agenttest.WaitFor(t, filepath.Join(dir, "ready"))
			cancel()
			if d := <-c.set; d != time.Minute {
				t.Errorf("it has %s to end by itself", d)
			}
			if !inHurry {
				c.advance(time.Minute)
				return
			}
			close(hurry)
			if d := <-c.set; d >= time.Second {
				t.Errorf("in a hurry it has %s", d)
			}
			c.advance(time.Second)
		}()
		r, err := process.Run(ctx, process.Spec{Path: agenttest.Fake, Args: []string{"ignoreterm", "write ready x", "hang"}, Dir: dir, Grace: time.Minute, Hurry: hurry, Out: io.Discard, Clock: c.Clock()})
		if err != nil || r.End != process.Cancelled || r.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestStdinThatNobodyReads: an agent may close its input, or exit before it has
// all of it. It ran all the same.
func TestStdinThatNobodyReads(t *testing.T) {
	for _, step := range []string{"exit 3", "exit 0"} {
		for range 30 {
			r, err := process.Run(t.Context(), process.Spec{Path: agenttest.Fake, Args: []string{step}, Stdin: make([]byte, 1<<20)})
			if err != nil || r.End != process.Exited || fmt.Sprint("exit ", r.ExitCode) != step {
				t.Fatalf("%s: %+v, %v", step, r, err)
			}
		}
	}
}

// TestLastWords: what a process has still to say when it is ended is heard.
func TestLastWords(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // nothing can be asked there
	}
	for i := range 5 {
		said := filepath.Join(t.TempDir(), fmt.Sprint("said", i))
		ctx, cancel := context.WithCancel(t.Context())
		heard, ready := &process.HeadTail{Max: 1 << 20}, make(chan struct{})
		lines := &process.Lines{Max: 100, F: func(line []byte) {
			if string(line) == "ready" {
				close(ready)
			}
		}}
		go func() {
			<-ready
			cancel()
		}()
		// Whoever listens is behind: the process has exited before he hears on.
		slow := writer(func(b []byte) {
			agenttest.WaitFor(t, said)
			time.Sleep(50 * time.Millisecond)
			_, _ = heard.Write(b)
		})
		r, err := process.Run(ctx, process.Spec{Path: agenttest.Fake, Args: []string{"lastwords 60000 " + said}, Out: io.MultiWriter(lines, slow)})
		if err != nil || r.End != process.Cancelled || r.ExitCode != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if text := heard.String(); !strings.HasSuffix(text, "xfarewell\n") || len(text) != 6+60000+9 {
			t.Fatalf("of its last words %d bytes were heard", len(text))
		}
	}
}

type writer func(b []byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// TestDaemons: what leaves group and session and hides its environment is ended
// too, once no other run is under way that may have started it.
func TestDaemons(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nothing tells where it came from
	}
	dir := t.TempDir()
	run := func(name string, args ...string) process.Result {
		r, err := process.Run(t.Context(), process.Spec{Path: agenttest.Fake, Args: args, Dir: dir, Env: []string{"X=" + name}, Out: io.Discard})
		if err != nil {
			t.Error(err)
		}
		return r
	}
	pid := func(name string) int {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	alive := func(name string) bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid(name)))
		return err == nil && !strings.Contains(string(stat), ") Z ")
	}
	run("alone", "daemon one", "waitfor one")
	if alive("one") {
		t.Error("a daemon is left")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run("long", "daemon two", "waitfor two", "write started x", "waitfor go")
	}()
	agenttest.WaitFor(t, filepath.Join(dir, "started"))
	run("short", "out x")
	if !alive("two") {
		t.Error("the daemon of another run was ended")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-done
	if alive("two") {
		t.Error("a daemon is left after the last run")
	}
}

// TestNoZombies: what was orphaned by its parents comes to this process, and is
// not left for somebody else to bury.
func TestNoZombies(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	for _, step := range []string{"child group hang", "child group out x", "child session hang", "daemon one"} {
		dir := t.TempDir()
		args := []string{step, "child group child group hang", "out x"}
		if step == "daemon one" {
			args = append(args, "waitfor one")
		}
		for range 2 {
			if _, err := process.Run(t.Context(), process.Spec{Path: agenttest.Fake, Args: args, Dir: dir, Env: []string{"M=zombies"}, Mark: "M=zombies"}); err != nil {
				t.Fatal(err)
			}
		}
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range stats {
			if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), fmt.Sprintf(") Z %d ", os.Getpid())) {
				t.Errorf("%s: %s", step, b)
			}
		}
	}
}
