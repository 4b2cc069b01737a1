// Package process runs one command with everything it starts: bounded in time,
// its output kept head and tail, and nothing of it left when Run returns.
package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// A Spec says what to run.
type Spec struct {
	Path string // of the program
	Args []string
	Dir  string
	Env  []string // all of the environment

	// Mark is an entry of Env, NAME=value, that no other run has. Where the
	// system tells environments (Linux), descendants that left the process
	// group are found by it.
	Mark string

	Stdin []byte // written to the standard input, which is then closed

	// Talk, where set, gets the standard input in place of Stdin and closes it.
	// Its context ends with the process. A process that runs on for 2 s after
	// Talk has returned is ended: it was told all.
	Talk func(ctx context.Context, stdin io.WriteCloser)

	Idle  time.Duration // without output, before the run is ended; 0: no limit
	Hard  time.Duration // of the whole run; 0: no limit
	Grace time.Duration // between asking to end and forcing it; 0 means 3 s

	// Hurry cuts Grace to half a second once it is closed; nil: it never is.
	Hurry <-chan struct{}

	// Out and Err get what is written to the standard streams, each from one
	// goroutine. Their errors are ignored.
	Out, Err io.Writer

	Clock *Clock // that Idle, Hard and Grace go by; nil: the system's
}

// A Clock tells the time and wakes after a while, as package time does.
type Clock struct {
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
}

var system = &Clock{time.Now, time.After}

// An End says why a run ended.
type End string

const (
	Exited    End = "exited" // by itself
	Idle      End = "idle"   // silent for longer than Spec.Idle
	Hard      End = "hard"   // longer than Spec.Hard
	Cancelled End = "cancelled"
	Told      End = "told" // ran on after its conversation was over
)

// A Result is how a run ended.
type Result struct {
	End      End
	ExitCode int    // -1 where a signal ended it
	Signal   string // "" where none did
	Duration time.Duration
}

const (
	defaultGrace = 3 * time.Second
	afterForce   = time.Second            // for the system to carry out what was forced
	lingering    = 500 * time.Millisecond // for a pipe to close after its writer has exited
	afterTalk    = 2 * time.Second
	hurried      = 500 * time.Millisecond
	poll         = 10 * time.Millisecond
)

// Run runs s until it has ended by itself, by a limit, or because ctx did. A run
// that ended is no error, however it did; an error means it did not start.
// Whatever the command started and left is ended too.
func Run(ctx context.Context, s Spec) (Result, error) {
	if s.Grace == 0 {
		s.Grace = defaultGrace
	}
	if s.Clock == nil {
		s.Clock = system
	}
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	group := newGroup(cmd, s)
	defer group.close()

	var stdin io.WriteCloser
	if s.Talk != nil || len(s.Stdin) > 0 {
		var err error
		if stdin, err = cmd.StdinPipe(); err != nil {
			return Result{}, err
		}
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return Result{}, err
	}
	defer outR.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		outW.Close()
		return Result{}, err
	}
	defer errR.Close()
	cmd.Stdout, cmd.Stderr = outW, errW

	began := s.Clock.Now()
	err = cmd.Start()
	outW.Close()
	errW.Close()
	if err != nil {
		if stdin != nil {
			stdin.Close()
		}
		return Result{}, err
	}
	group.started()

	var last atomic.Int64 // when there was output, nanoseconds since began
	readers := parallel.New()
	drain := func(r io.Reader, w io.Writer) {
		readers.Go(func() error {
			buf := make([]byte, 64<<10)
			for {
				n, err := r.Read(buf)
				if n > 0 {
					last.Store(int64(s.Clock.Now().Sub(began)))
					if w != nil {
						_, _ = w.Write(buf[:n])
					}
				}
				if err != nil {
					return nil
				}
			}
		})
	}
	drain(outR, s.Out)
	drain(errR, s.Err)
	talking, stopTalk := context.WithCancel(ctx)
	defer stopTalk()
	told := make(chan struct{})
	if stdin != nil {
		readers.Go(func() error {
			if s.Talk != nil {
				defer close(told)
				s.Talk(talking, stdin)
				return nil
			}
			_, _ = stdin.Write(s.Stdin) // what the process does not read is its affair
			_ = stdin.Close()
			return nil
		})
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	drained := make(chan struct{})
	go func() {
		_ = readers.Wait()
		close(drained)
	}()

	end, waited := s.await(ctx, began, &last, told, exited)
	stopTalk()
	if end == Exited {
		select {
		case <-drained:
		case <-time.After(lingering): // something it left behind holds a pipe
		}
	}
	group.end()
	if end != Exited {
		waited = <-exited
	}
	select {
	case <-drained: // the last words as well
	case <-time.After(afterForce): // a process that cannot be ended holds the other end
	}
	outR.Close()
	errR.Close()
	<-drained

	res := Result{End: end, Duration: s.Clock.Now().Sub(began), ExitCode: cmd.ProcessState.ExitCode(), Signal: signalOf(cmd.ProcessState)}
	var exit *exec.ExitError
	if waited != nil && !errors.As(waited, &exit) && !errors.Is(waited, exec.ErrWaitDelay) {
		return res, waited
	}
	return res, readers.Wait()
}

// await returns once the command has exited, with what waiting for it gave, or
// should be ended.
func (s Spec) await(ctx context.Context, began time.Time, last *atomic.Int64, told <-chan struct{}, exited <-chan error) (End, error) {
	var hard, idle, late <-chan time.Time
	if s.Hard > 0 {
		hard = s.Clock.After(s.Hard)
	}
	if s.Idle > 0 {
		idle = s.Clock.After(s.Idle)
	}
	for {
		select {
		case err := <-exited:
			return Exited, err
		case <-ctx.Done():
			return Cancelled, nil
		case <-told:
			told, late = nil, time.After(afterTalk)
		case <-late:
			return Told, nil
		case <-hard:
			return Hard, nil
		case <-idle:
			left := s.Idle - (s.Clock.Now().Sub(began) - time.Duration(last.Load()))
			if left <= 0 {
				return Idle, nil
			}
			idle = s.Clock.After(left)
		}
	}
}

// A family is what must be ended: a process and all it started.
type family interface {
	alive() bool
	ask()   // to end
	force() // to end at once
}

// endFamily asks f to end and forces it after grace, sooner once hurry is
// closed.
func endFamily(f family, c *Clock, grace time.Duration, hurry <-chan struct{}) {
	if !f.alive() {
		return
	}
	f.ask()
	if gone(f, c, grace, hurry) {
		return
	}
	for range int(afterForce / (5 * poll)) {
		f.force() // again and again: it may be starting others meanwhile
		if gone(f, system, 5*poll, nil) {
			return
		}
	}
}

func gone(f family, c *Clock, within time.Duration, hurry <-chan struct{}) bool {
	limit := c.After(within)
	for f.alive() {
		select {
		case <-hurry:
			hurry, limit = nil, c.After(min(within, hurried))
		case <-limit:
			return false
		case <-time.After(poll):
		}
	}
	return true
}

// Inherited is the value of the variable name in the environment of the nearest
// process above this one that has it, also where one between has hidden it. It
// is "" where there is none or the system does not tell.
func Inherited(name string) string { return above(name) }

// EndMarked ends every process whose environment holds mark, such as those that
// a server which was killed has left, and reports whether there were any. Where
// the system does not tell environments there are none.
func EndMarked(mark string) bool {
	s := markedProcesses{mark}
	if !s.alive() {
		return false
	}
	endFamily(s, system, defaultGrace, nil)
	return true
}

// A markedProcesses is those with a mark, whatever group they are in.
type markedProcesses struct{ mark string }

func (s markedProcesses) alive() bool { return len(marked(s.mark)) > 0 }
func (s markedProcesses) ask()        { s.each(terminate) }
func (s markedProcesses) force()      { s.each(kill) }

func (s markedProcesses) each(f func(pid int)) {
	for _, pid := range marked(s.mark) {
		f(pid)
	}
}
