package agentcli

import (
	"context"
	"slices"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Run runs a task and returns once it is over. Where ctx ends, so does the task
// with all it started, and its error is returned. watch, which may be nil, gets
// each event; it is not called any more when Run has returned.
func (e *Engine) Run(ctx context.Context, r Request, watch func(task.Event)) (*Result, error) {
	p, res, err := e.prepare(ctx, r)
	if p == nil {
		return res, err
	}
	l, err := e.create(p, false, watch)
	if err != nil {
		p.close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, l.requestCancel)
	defer stop()
	e.launch(p, l)
	<-l.over
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return l.result, nil
}

// Start begins a task and returns at once, its status queued. Read tells how it
// goes on.
func (e *Engine) Start(ctx context.Context, r Request) (*Result, error) {
	p, res, err := e.prepare(ctx, r)
	if p == nil {
		return res, err
	}
	l, err := e.create(p, true, nil)
	if err != nil {
		p.close()
		return nil, err
	}
	res = p.result(task.Queued)
	res.OK, res.Test.Note = true, "not yet run"
	e.launch(p, l)
	return res.fit(maxResult), nil
}

// prepare returns the plan of r, or no plan and the result where nothing is to
// be run.
func (e *Engine) prepare(ctx context.Context, r Request) (*plan, *Result, error) {
	p, err := e.plan(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if len(p.issues) == 0 && !r.DryRun {
		if err := e.openDirs(p); err != nil {
			p.close()
			return nil, nil, err
		}
		return p, nil, nil
	}
	defer p.close()
	res := p.result(task.Succeeded)
	res.Test.Note = "nothing was run"
	if res.OK = len(p.issues) == 0; !res.OK {
		res.Status = task.Failed
		for _, i := range p.issues {
			res.Errors = append(res.Errors, i.Code+": "+i.Message)
		}
		if !r.DryRun {
			if err := e.openDirs(p); err != nil {
				return nil, nil, err
			}
		}
	}
	return nil, e.seal(p, res), nil
}

// create makes the task known.
func (e *Engine) create(p *plan, background bool, watch func(task.Event)) (*live, error) {
	if e.ctx.Err() != nil {
		return nil, fault.New(fault.FSOperation, "the server is ending and takes no more tasks")
	}
	store, err := e.store(p.Cwd, true)
	if err != nil {
		return nil, err
	}
	l := &live{e: e, store: store, news: make(chan struct{}), over: make(chan struct{}), watch: watch, record: task.Record{
		TaskID: p.TaskID, Provider: p.Request.Provider, Cwd: p.Cwd.Abs, Status: task.Queued, Background: background,
		StartedAt: audit.ISO(p.started), Allowlist: p.Allowlist, Mark: p.mark}}
	if p.Worktree {
		l.record.Worktree = &task.Worktree{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, used := e.live[p.TaskID]; used {
		store.Dir.Close()
		return nil, e.taken(p.TaskID)
	}
	if l.release, err = store.Create(&l.record); err != nil {
		store.Dir.Close()
		if code, _ := fault.Of(err); code == fault.FSAlreadyExists {
			err = e.taken(p.TaskID)
		}
		return nil, err
	}
	e.live[p.TaskID] = l
	if !slices.ContainsFunc(e.known, func(k place.Place) bool { return k.Abs == p.Cwd.Abs }) {
		e.known = append(e.known, p.Cwd)
	}
	return l, nil
}

// launch runs the plan in a goroutine of its own.
func (e *Engine) launch(p *plan, l *live) {
	ctx, cancel := context.WithCancel(e.ctx)
	l.mu.Lock()
	l.cancel = cancel
	if l.stopped {
		cancel()
	}
	l.mu.Unlock()
	e.runs.Go(func() {
		defer cancel()
		defer p.close()
		// Another process may ask through the task's directory.
		stopPolling := every(500*time.Millisecond, func() {
			if l.store.Asked(p.TaskID) {
				l.requestCancel()
			}
		})
		var res *Result
		err := panics.Try(func() (err error) {
			res, err = e.execute(ctx, p, l)
			return err
		})
		stopPolling()
		if err != nil {
			e.Log.Error("a task failed", "task", p.TaskID, "err", err)
			_, message := fault.Of(err)
			res = p.result(task.Failed)
			res.fail(output.Reported, message)
		}
		res.Status = l.status(res)
		if l.record.Worktree != nil {
			w := *l.record.Worktree
			res.Worktree = &w
		}
		l.finish(e.seal(p, res))
		l.store.Dir.Close()
		e.retire(p.TaskID)
	})
}

// retire keeps the number of ended tasks in memory bounded; the files remain.
func (e *Engine) retire(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = append(e.ended, id)
	for len(e.ended) > remembered {
		delete(e.live, e.ended[0])
		e.ended = e.ended[1:]
	}
}

// every calls f at intervals until stop is called.
func every(d time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	g := parallel.New()
	g.Go(func() error {
		t := time.NewTicker(d)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				f()
			case <-done:
				return nil
			}
		}
	})
	return func() {
		close(done)
		_ = g.Wait()
	}
}

// taken refuses an id that was used.
func (e *Engine) taken(id string) error {
	return fault.New(fault.FSAlreadyExists, "there is a task %s already; choose another %s or leave it out", id, e.Words.TaskID)
}
