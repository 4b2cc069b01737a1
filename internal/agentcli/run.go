package agentcli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/acp"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

const (
	keptOutput = 512 << 10 // of each end of each stream
	longLine   = 4 << 20   // of JSON, beyond which it is not looked at
)

// result is the beginning of every answer.
func (p *plan) result(status string) *Result {
	return &Result{
		TaskID: p.TaskID, Status: status, Provider: p.Request.Provider, StartedAt: audit.ISO(p.started), Prompt: p.prompt,
		Git:          Git{State{Paths: []string{}}, State{Paths: []string{}}},
		Invocation:   Invocation{Cmd: p.provider.Binary, Args: append([]string{}, p.shown...), Cwd: p.dir},
		Test:         p.noTest(),
		PolicyIssues: append([]policy.Issue{}, p.issues...), PolicyWarnings: []policy.Issue{}, Errors: []string{},
	}
}

// noTest is the outcome of a test that did not run.
func (p *plan) noTest() *Test {
	if p.TestCommand == nil {
		return &Test{Skipped: true, Note: "no " + p.words.Test + " was given"}
	}
	return &Test{Command: *p.TestCommand, Skipped: true, Note: "the agent did not succeed"}
}

func (r *Result) fail(class output.Class, message string) {
	r.Failure = &Failure{class, message}
	r.Errors = append(r.Errors, message)
}

// execute runs the plan to its end. It fails only where the state of the
// directory cannot be told.
func (e *Engine) execute(ctx context.Context, p *plan, l *live) (*Result, error) {
	res := p.result(task.Running)
	program, err := e.program(p.provider)
	if err != nil {
		res.fail(output.Missing, err.Error())
		return res, nil
	}
	if m := e.health.unavailable(p.Request.Provider, e.Now()); m != nil {
		res.fail(m.class, fmt.Sprintf("Provider %s marked unavailable (%s). Run %s to check it again.", p.Request.Provider, m.text, e.Words.Health))
		return res, nil
	}
	if !p.Worktree {
		unlock, err := e.lock(ctx, p.space.Top())
		switch {
		case ctx.Err() != nil:
			res.fail(output.Stopped, "cancelled before it began")
			return res, nil
		case err != nil:
			return nil, err
		}
		defer unlock()
		// What a server that was killed has left may still change files here.
		for _, id := range l.store.Held() {
			if e.liveTask(id) != nil {
				continue
			}
			if _, err := e.settle(ctx, l.store, id, p.Cwd); err != nil {
				e.Log.Warn("settling a task of before", "task", id, "err", err)
			}
		}
	}
	l.begin()

	// All of the baseline is read before the agent changes it, and compared while
	// the agent works.
	var status string
	var committed snapshot.Snapshot
	first := parallel.New()
	first.Go(func() (err error) { status, err = p.space.Status(ctx); return err })
	first.Go(func() (err error) { committed, err = p.space.Committed(ctx); return err })
	before, err := p.space.Take(ctx)
	if err != nil && p.space.Repository() && ctx.Err() == nil && !p.Worktree {
		// Such as a repository without a commit inside this one.
		e.Log.Warn("no snapshot by git; hashing", "task", p.TaskID, "err", err)
		_ = first.Wait()
		p.space.Close()
		p.space, first = snapshot.Hashes(p.dir, e.snapshotOptions(p.Cwd)), parallel.New()
		committed = snapshot.Snapshot{}
		before, err = p.space.Take(ctx)
	}
	if err = cmp.Or(err, first.Wait()); err != nil {
		if ctx.Err() != nil {
			res.fail(output.Stopped, "cancelled before it began")
			return res, nil
		}
		return nil, err
	}
	l.recordBefore(before, !p.space.Repository())

	space := p.space
	if p.Worktree {
		remove, err := e.enterWorktree(ctx, p, l, before)
		if err != nil {
			return nil, err
		}
		defer remove()
		res.Invocation.Cwd, res.Prompt = p.dir, p.prompt
		opts := snapshot.Options{Within: func(string) bool { return true }}
		space = snapshot.Open(ctx, p.dir, opts)
		defer space.Close()
	}
	baseline := parallel.New()
	var baseDiff snapshot.Difference
	if p.space.Repository() {
		baseline.Go(func() (err error) {
			baseDiff, err = p.space.Compare(context.WithoutCancel(ctx), committed, before)
			return err
		})
	}

	log := e.startLog(p, res)
	defer log.Close()
	after, change, out := e.attempts(ctx, p, l, res, log, program, space, before)
	if err := baseline.Wait(); err != nil {
		e.Log.Warn("comparing the baseline", "task", p.TaskID, "err", err)
	}
	res.Git.Baseline = e.state(status, baseDiff)
	res.Git.Post = e.postState(ctx, space, committed, before, after, baseDiff, change)
	e.answer(res, out, change)
	l.recordAfter(after)

	if p.TestCommand != nil && res.Failure == nil {
		e.test(ctx, p, l, res, log)
	}
	res.PolicyWarnings = append(res.PolicyWarnings, policy.After(p.Allowlist, res.Result.Paths, baseDiff.Paths(), p.red.Text(change.Diff))...)
	if g, ok := p.space.(*snapshot.Git); ok && p.Worktree && len(change.Changes) > 0 {
		ref := snapshot.Ref(p.TaskID)
		if err := g.SetRef(context.WithoutCancel(ctx), after, ref); err != nil {
			res.Errors = append(res.Errors, "the changes could not be kept: "+err.Error())
		} else {
			l.setRef(ref)
		}
	}
	res.OK = res.Failure == nil && (res.Test.OK || res.Test.Skipped)
	if res.Failure == nil && !res.OK {
		res.Errors = append(res.Errors, "the test command failed: "+*p.TestCommand)
	}
	return res, nil
}

func (e *Engine) startLog(p *plan, res *Result) *audit.Log {
	if p.logDir == nil {
		return &audit.Log{}
	}
	name := audit.Name(p.started, p.Request.Provider, p.TaskID) + ".md"
	log, err := audit.Create(p.logDir, name, audit.Header{
		Task: p.TaskID, Provider: p.Request.Provider, Cwd: p.dir, Started: p.started,
		Idle: e.config.Idle(p.provider), Hard: e.config.Hard(), Attempts: e.config.Runner.Retry.MaxAttempts,
	}, p.red)
	if err != nil {
		res.Errors = append(res.Errors, "no log could be written: "+err.Error())
		return &audit.Log{}
	}
	res.ExecutionLog = &ExecutionLog{p.logDir.Path(name), "markdown"}
	return log
}

// attempts runs the agent until it has answered or may not be tried again, and
// returns the state it left and what it changed.
func (e *Engine) attempts(ctx context.Context, p *plan, l *live, res *Result, log *audit.Log, program string, space snapshot.Space, before snapshot.Snapshot) (after snapshot.Snapshot, change snapshot.Difference, out output.Outcome) {
	retry := e.config.Runner.Retry
	for n := 1; ; n++ {
		res.Attempts = n
		log.Printf("\n## Attempt %d\n\n", n)
		res.Failure = nil
		out = e.attempt(ctx, p, l, res, log, program)
		keep := context.WithoutCancel(ctx) // what was changed is told of a cancelled run too
		var err error
		if after, err = space.Take(keep); err == nil {
			change, err = space.Compare(keep, before, after)
		}
		if err != nil {
			res.fail(output.Reported, "what was changed cannot be told: "+err.Error())
			return after, change, out
		}
		if res.Failure == nil || res.Failure.Class != output.IdleTimeout || ctx.Err() != nil {
			break
		}
		if n >= retry.MaxAttempts {
			if n > 1 {
				e.health.mark(p.Request.Provider, output.IdleTimeout, "silent beyond its idle limit repeatedly", e.Now())
			}
			break
		}
		if len(change.Changes) > 0 && !retry.OnDirty {
			res.Errors = append(res.Errors, "not tried again: files were changed")
			break
		}
		l.emit("error", fmt.Sprintf("attempt %d: %s; trying again", n, res.Failure.Message))
		select {
		case <-time.After(e.config.Delay()):
		case <-ctx.Done():
		}
	}
	if f := res.Failure; f != nil && (f.Class == output.Auth || f.Class == output.RateLimited) {
		e.health.mark(p.Request.Provider, f.Class, f.Message, e.Now())
	}
	return after, change, out
}

// attempt runs the agent once.
func (e *Engine) attempt(ctx context.Context, p *plan, l *live, res *Result, log *audit.Log, program string) output.Outcome {
	stdout, stderr := &process.HeadTail{Max: keptOutput}, &process.HeadTail{Max: keptOutput}
	parser := output.For(p.provider)
	spec := process.Spec{Path: program, Args: p.argv, Dir: p.dir, Env: p.env, Mark: p.mark, Stdin: p.stdin,
		Idle: e.config.Idle(p.provider), Hard: e.config.Hard(), Hurry: e.ctx.Done(), Clock: e.Clock}
	if p.provider.Type == config.ACP {
		s := &acp.Session{Cwd: p.dir, Prompt: p.prompt, Permissions: p.provider.Permissions}
		parser, spec.Talk = s, s.Talk
	}
	// Secrets are taken out before anything is shortened or joined.
	lines := &process.Lines{Max: longLine, F: func(line []byte) {
		for _, ev := range parser.Line(p.red.Line(line)) {
			l.emit(ev.Kind, ev.Text)
		}
	}}
	keptOut, keptErr := p.red.Writer(io.MultiWriter(stdout, log.Stream("stdout"))), p.red.Writer(io.MultiWriter(stderr, log.Stream("stderr")))
	spec.Out, spec.Err = io.MultiWriter(keptOut, lines), keptErr
	stopFlush := every(time.Second, log.Flush)
	run, err := process.Run(ctx, spec)
	stopFlush()
	lines.Close()
	keptOut.Close()
	keptErr.Close()

	if err != nil {
		log.Printf("\nnot started: %v\n", err)
		class := output.Missing
		if run.End != "" { // it did start
			class = output.Reported
		}
		res.fail(class, fmt.Sprintf("%s could not be run: %v", p.provider.Binary, err))
		return output.Outcome{}
	}
	out := parser.Outcome(stdout.String(), stdout.Left() == 0)
	res.Invocation.DurationMs = run.Duration.Milliseconds()
	res.Runner = Runner{Stdout: stdout.String(), Stderr: stderr.String(), DurationMs: run.Duration.Milliseconds(), TimedOut: run.End == process.Idle || run.End == process.Hard}
	if run.ExitCode >= 0 {
		res.Runner.ExitCode, res.Invocation.ExitCode = &run.ExitCode, &run.ExitCode
	}
	if run.Signal != "" {
		res.Runner.Signal = &run.Signal
	}
	switch {
	case run.End == process.Idle:
		res.fail(output.IdleTimeout, fmt.Sprintf("nothing was printed for %s (timeoutMs of the provider, or runner.timeoutSeconds)", spec.Idle))
	case run.End == process.Hard:
		res.fail(output.HardTimeout, fmt.Sprintf("it ran longer than %s (runner.maxSeconds)", spec.Hard))
	case run.End == process.Cancelled:
		res.fail(output.Stopped, "cancelled")
	case out.Failed || run.End == process.Exited && run.ExitCode > 0:
		class := output.Classify(p.provider.OutputFormat, run.ExitCode, out.Errors, stderr.String())
		res.fail(class, failureText(out, run.ExitCode, stderr.String()))
	case run.End == process.Exited && run.Signal != "":
		res.fail(output.Killed, "ended by "+run.Signal)
	}
	log.Printf("\n%s\n", ending(run))
	return out
}

func failureText(out output.Outcome, code int, stderr string) string {
	if len(out.Errors) > 0 {
		return output.OneLine(out.Errors[len(out.Errors)-1])
	}
	return fmt.Sprintf("exit code %d: %s", code, output.OneLine(lastLine(stderr, "nothing on stderr")))
}

func ending(r process.Result) string {
	how := fmt.Sprintf("exit code %d", r.ExitCode)
	if r.Signal != "" {
		how = r.Signal
	}
	return fmt.Sprintf("Ended (%s): %s after %d ms", r.End, how, r.Duration.Milliseconds())
}

func (e *Engine) state(status string, d snapshot.Difference) State {
	s := State{Status: status, Diff: d.Diff, Paths: d.Paths()}
	if e.config.Policy.TrackBinaryPaths {
		s.BinaryPaths = d.BinaryPaths()
	}
	return s
}

// postState is the state after the run, compared with the last commit; outside
// repositories with the state before it.
func (e *Engine) postState(ctx context.Context, space snapshot.Space, committed, before, after snapshot.Snapshot, baseDiff, change snapshot.Difference) State {
	ctx = context.WithoutCancel(ctx)
	status, err := space.Status(ctx)
	d := change
	switch {
	case committed.Tree == "", committed.Tree == before.Tree && before.Nested == nil:
	case before.Same(after):
		d = baseDiff
	default:
		var cerr error
		d, cerr = space.Compare(ctx, committed, after)
		err = cmp.Or(err, cerr)
	}
	if err != nil {
		e.Log.Warn("reading the state after a run", "err", err)
	}
	return e.state(status, d)
}

func (e *Engine) answer(res *Result, out output.Outcome, change snapshot.Difference) {
	res.Result = Answer{Summary: out.Summary, Diff: change.Diff, Paths: change.Paths(), Logs: out.Logs, Tests: out.Tests,
		Raw: out.Raw, SessionID: out.SessionID, Usage: out.Usage, CostUSD: out.CostUSD}
	if res.Result.Diff == "" && len(change.Changes) == 0 {
		res.Result.Diff = out.Diff // of an agent that proposes and does not change
	}
	for _, message := range out.Errors {
		if !slices.Contains(res.Errors, output.OneLine(message)) {
			res.Errors = append(res.Errors, output.OneLine(message))
		}
	}
}

// test runs the test command.
func (e *Engine) test(ctx context.Context, p *plan, l *live, res *Result, log *audit.Log) {
	t := &Test{Command: *p.TestCommand}
	res.Test = t
	l.emit("test", output.OneLine(p.red.Text(t.Command)))
	log.Printf("\n## Test\n\n%s\n\n", t.Command)
	stdout, stderr := &process.HeadTail{Max: keptOutput}, &process.HeadTail{Max: keptOutput}
	keptOut, keptErr := p.red.Writer(io.MultiWriter(stdout, log.Stream("stdout"))), p.red.Writer(io.MultiWriter(stderr, log.Stream("stderr")))
	shell, flag := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd", "/c"
	}
	run, err := process.Run(ctx, process.Spec{Path: shell, Args: []string{flag, t.Command}, Dir: p.dir, Env: p.testEnv, Mark: p.mark,
		Idle: e.config.Idle(p.provider), Hard: e.config.Hard(), Hurry: e.ctx.Done(), Clock: e.Clock,
		Out: keptOut, Err: keptErr})
	keptOut.Close()
	keptErr.Close()
	if err != nil {
		t.Note = err.Error()
		return
	}
	log.Printf("\n%s\n", ending(run))
	t.Stdout, t.Stderr, t.DurationMs = stdout.String(), stderr.String(), run.Duration.Milliseconds()
	if run.ExitCode >= 0 {
		t.ExitCode = &run.ExitCode
	}
	t.OK = run.End == process.Exited && run.ExitCode == 0
	switch run.End {
	case process.Idle, process.Hard:
		t.Note = "ended by a time limit"
	case process.Cancelled:
		t.Note = "cancelled"
		res.fail(output.Stopped, "cancelled")
	}
}
