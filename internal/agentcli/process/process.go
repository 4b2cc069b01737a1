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
}

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
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	group := newGroup(cmd, s.Mark)
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

	began := time.Now()
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
					last.Store(int64(time.Since(began)))
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
	talking, hush := context.WithCancel(ctx)
	defer hush()
	told := make(chan struct{})
	if stdin != nil {
		readers.Go(func() error {
			if s.Talk != nil {
				defer close(told)
				s.Talk(talking, stdin)
				return nil
			}
			_, _ = stdin.Write(s.Stdin)
			return stdin.Close()
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
	hush()
	if end == Exited {
		select {
		case <-drained:
		case <-time.After(lingering): // something it left behind holds a pipe
		}
	}
	group.end(s.Grace, s.Hurry)
	if end != Exited {
		waited = <-exited
	}
	outR.Close() // where a process that cannot be ended still holds the other end
	errR.Close()
	<-drained

	res := Result{End: end, Duration: time.Since(began), ExitCode: cmd.ProcessState.ExitCode(), Signal: signalOf(cmd.ProcessState)}
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
		t := time.NewTimer(s.Hard)
		defer t.Stop()
		hard = t.C
	}
	var silence *time.Timer
	if s.Idle > 0 {
		silence = time.NewTimer(s.Idle)
		defer silence.Stop()
		idle = silence.C
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
			left := s.Idle - (time.Since(began) - time.Duration(last.Load()))
			if left <= 0 {
				return Idle, nil
			}
			silence.Reset(left)
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
func endFamily(f family, grace time.Duration, hurry <-chan struct{}) {
	if !f.alive() {
		return
	}
	f.ask()
	if gone(f, grace, hurry) {
		return
	}
	deadline := time.Now().Add(afterForce)
	for time.Now().Before(deadline) {
		f.force() // again and again: it may be starting others meanwhile
		if gone(f, 5*poll, nil) {
			return
		}
	}
}

func gone(f family, within time.Duration, hurry <-chan struct{}) bool {
	for began := time.Now(); f.alive(); time.Sleep(poll) {
		select {
		case <-hurry:
			within = min(within, hurried)
		default:
		}
		if time.Since(began) >= within {
			return false
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
	s := strays{mark}
	if !s.alive() {
		return false
	}
	endFamily(s, defaultGrace, nil)
	return true
}

// A strays is the processes with a mark.
type strays struct{ mark string }

func (s strays) alive() bool { return len(marked(s.mark, 0)) > 0 }
func (s strays) ask()        { s.each(terminate) }
func (s strays) force()      { s.each(kill) }

func (s strays) each(f func(pid int)) {
	for _, pid := range marked(s.mark, 0) {
		f(pid)
	}
}
