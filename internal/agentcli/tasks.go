package agentcli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
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
	stop := context.AfterFunc(ctx, l.ask)
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
	dir, err := audit.Open(p.Cwd, e.tasksDir(), true)
	if err != nil {
		return nil, err
	}
	store := &task.Store{Dir: dir}
	l := &live{e: e, store: store, news: make(chan struct{}), over: make(chan struct{}), watch: watch, record: task.Record{
		TaskID: p.TaskID, Provider: p.Request.Provider, Cwd: p.Cwd.Abs, Status: task.Queued, Background: background,
		StartedAt: audit.ISO(p.started), Allowlist: p.Allowlist, Mark: p.mark}}
	if p.Worktree {
		l.record.Worktree = &task.Worktree{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, used := e.live[p.TaskID]; used {
		dir.Close()
		return nil, fault.New(fault.FSAlreadyExists, "there is a task %s already; choose another taskId or leave it out", p.TaskID)
	}
	if l.release, err = store.Create(&l.record); err != nil {
		dir.Close()
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
		heed := every(500*time.Millisecond, func() {
			if l.store.Asked(p.TaskID) {
				l.ask()
			}
		})
		var res *Result
		err := panics.Try(func() (err error) {
			res, err = e.execute(ctx, p, l)
			return err
		})
		heed()
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

// A Status is how a task stands. Events are those after the cursor that was
// given, and Cursor is where to go on.
type Status struct {
	TaskID     string         `json:"taskId"`
	Provider   string         `json:"provider"`
	Cwd        string         `json:"cwd"`
	Status     string         `json:"status"`
	Background bool           `json:"background"`
	StartedAt  string         `json:"startedAt"`
	FinishedAt string         `json:"finishedAt,omitempty"`
	Worktree   *task.Worktree `json:"worktree,omitempty"`
	AuditPath  string         `json:"auditPath,omitempty"`
	LogPath    string         `json:"logPath,omitempty"`
	Events     []task.Event   `json:"events,omitzero"`
	Cursor     string         `json:"cursor,omitempty"`
	Result     *Result        `json:"result,omitempty"`
}

func summary(r *task.Record) Status {
	var w *task.Worktree
	if r.Worktree != nil {
		c := *r.Worktree
		w = &c
	}
	return Status{TaskID: r.TaskID, Provider: r.Provider, Cwd: r.Cwd, Status: r.Status, Background: r.Background, StartedAt: r.StartedAt,
		FinishedAt: r.FinishedAt, Worktree: w, AuditPath: r.AuditPath, LogPath: r.LogPath, Events: []task.Event{}}
}

// maxEvents is how many events one answer carries, the latest.
const maxEvents = 40

// full is the answer about a record: its events after seq, its result where it
// is over.
func full(r *task.Record, events []task.Event, after int64) Status {
	s := summary(r)
	last := after
	for _, ev := range events {
		if ev.Seq > after {
			s.Events = append(s.Events, ev)
			last = ev.Seq
		}
	}
	s.Events = s.Events[max(0, len(s.Events)-maxEvents):]
	s.Cursor = strconv.FormatInt(last, 10)
	if task.Ended(r.Status) && len(r.Result) > 0 {
		res := &Result{}
		if json.Unmarshal(r.Result, res) == nil {
			s.Result = res.fit(maxResult - size(s) - 64)
		}
	}
	return s
}

// Read tells how a task stands. It waits up to wait for the task to end or,
// where a cursor is given, for something after it. The task is looked for in
// this process, then in cwd and the known directories.
func (e *Engine) Read(ctx context.Context, id, cursor string, wait time.Duration, cwd place.Place) (Status, error) {
	after := int64(0)
	if cursor != "" {
		n, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil || n < 0 {
			return Status{}, fault.New(fault.InvalidParameter, "cursor must be one that task_status returned")
		}
		after = n
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		s, news, err := e.look(ctx, id, after, cwd)
		if err != nil || news == nil || cursor != "" && len(s.Events) > 0 {
			return s, err
		}
		select {
		case <-news:
		case <-timer.C:
			return s, nil
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// look returns the task's status, and a channel that tells of news where it
// goes on.
func (e *Engine) look(ctx context.Context, id string, after int64, cwd place.Place) (Status, <-chan struct{}, error) {
	if l := e.liveTask(id); l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		s := full(&l.record, l.events, after)
		if task.Ended(l.record.Status) {
			return s, nil, nil
		}
		return s, l.news, nil
	}
	var s Status
	var news chan struct{}
	err := e.stored(id, cwd, func(store *task.Store, home place.Place) error {
		r, err := e.recovered(ctx, store, id, home)
		if err != nil {
			return err
		}
		s = full(r, r.Events, after)
		if !task.Ended(r.Status) { // another process runs it
			news = make(chan struct{})
			time.AfterFunc(task.Retry, func() { close(news) })
		}
		return nil
	})
	return s, news, err
}

func (e *Engine) liveTask(id string) *live {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.live[id]
}

// homes are the directories that tasks are looked for in: cwd, those of this
// process's tasks, the project and the allowed ones.
func (e *Engine) homes(cwd place.Place) []place.Place {
	e.mu.Lock()
	list := append([]place.Place{cwd}, e.known...)
	e.mu.Unlock()
	for _, dir := range e.Places {
		if cwd.Guard == nil {
			break
		}
		if p, err := cwd.Guard.Resolve(dir); err == nil {
			list = append(list, p)
		}
	}
	var homes []place.Place
	for _, p := range list {
		if !slices.ContainsFunc(homes, func(h place.Place) bool { return h.Abs == p.Abs }) {
			homes = append(homes, p)
		}
	}
	return homes
}

// stored runs f with the store that holds task id.
func (e *Engine) stored(id string, cwd place.Place, f func(*task.Store, place.Place) error) error {
	if err := task.CheckID(id); err != nil {
		return err
	}
	for _, home := range e.homes(cwd) {
		dir, err := audit.Open(home, e.tasksDir(), false)
		if err != nil {
			continue
		}
		err = f(&task.Store{Dir: dir}, home)
		dir.Close()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fault.New(fault.FSNotFound, "there is no task %s here; task_list tells the known ones, and cwd names the directory that a task of another server ran in", clip(id))
}

// recovered loads a record. A task that was running when its server ended is
// settled first: what is left of it is ended, what it changed is told.
func (e *Engine) recovered(ctx context.Context, store *task.Store, id string, home place.Place) (*task.Record, error) {
	r, err := store.Load(id)
	if err != nil || task.Ended(r.Status) {
		return r, err
	}
	release, gone := store.Orphan(id)
	if !gone {
		return r, nil
	}
	defer release()
	if r, err = store.Load(id); err != nil || task.Ended(r.Status) {
		return r, err
	}
	process.EndMarked(r.Mark)
	res := &Result{TaskID: id, Status: task.Interrupted, Provider: r.Provider, StartedAt: r.StartedAt,
		Git: Git{State{Paths: []string{}}, State{Paths: []string{}}}, Invocation: Invocation{Args: []string{}, Cwd: r.Cwd},
		PolicyIssues: []policy.Issue{}, PolicyWarnings: []policy.Issue{}, Errors: []string{}, Worktree: r.Worktree}
	res.fail(output.Stopped, "the server that ran it ended before it did")
	if err := e.whatChanged(ctx, store, r, res, home); err != nil {
		res.Errors = append(res.Errors, "what it changed cannot be told: "+err.Error())
	}
	// Of the task's own variables nothing is known any more, of the provider's all.
	p := &plan{provider: e.config.Providers[r.Provider], Request: Request{Provider: r.Provider, TaskID: id}}
	e.environment(p, 0)
	eachString(reflect.ValueOf(res), "", func(_, s string) string { return p.red.Text(s) })
	r.Status, r.FinishedAt = task.Interrupted, audit.ISO(e.Now())
	if r.Result, err = json.Marshal(res.fit(maxResult)); err != nil {
		return nil, err
	}
	return r, store.Save(r)
}

// whatChanged compares the state before an interrupted task with the present
// one.
func (e *Engine) whatChanged(ctx context.Context, store *task.Store, r *task.Record, res *Result, home place.Place) error {
	before := snapshot.Snapshot{}
	switch {
	case r.Hashed:
		var err error
		if before, err = store.Files(r.TaskID); err != nil {
			return err
		}
	case r.Before == nil:
		return nil // it had not begun
	default:
		before = *r.Before
	}
	dir := r.Cwd
	options := e.snapshotOptions(home)
	isolated := r.Worktree != nil && r.Worktree.Dir != ""
	if isolated {
		dir, options = r.Worktree.Dir, snapshot.Options{}
		if _, err := os.Stat(dir); err != nil {
			return nil // it had not begun there
		}
	}
	space := snapshot.Open(ctx, dir, options)
	if r.Hashed {
		space = snapshot.Hashes(dir, options)
	}
	defer space.Close()
	after, err := space.Take(ctx)
	if err != nil {
		return err
	}
	d, err := space.Compare(ctx, before, after)
	if err != nil {
		return err
	}
	res.Result.Paths, res.Result.Diff = d.Paths(), d.Diff
	res.PolicyWarnings = append(res.PolicyWarnings, policy.After(r.Allowlist, res.Result.Paths, nil, d.Diff)...)
	if !r.Hashed {
		r.After = &after
	}
	if main, ok := snapshot.Open(ctx, r.Cwd, snapshot.Options{}).(*snapshot.Git); ok && isolated {
		defer main.Close()
		if len(d.Changes) > 0 {
			if err := main.Keep(ctx, after, snapshot.Ref(r.TaskID)); err != nil {
				return err
			}
			r.Worktree.Ref = snapshot.Ref(r.TaskID)
		}
		unlock, err := e.lock(ctx, worktreesOf(main))
		if err != nil {
			return err
		}
		defer unlock()
		if err := main.RemoveWorktree(ctx, r.Worktree.Dir); err != nil {
			return err
		}
		r.Worktree.Dir = ""
	}
	return nil
}

// Cancel ends a task with all it started and returns how it stands then.
func (e *Engine) Cancel(ctx context.Context, id string, cwd place.Place) (Status, error) {
	if l := e.liveTask(id); l != nil {
		l.ask()
	} else if err := e.stored(id, cwd, func(store *task.Store, home place.Place) error {
		r, err := e.recovered(ctx, store, id, home)
		if err != nil || task.Ended(r.Status) {
			return err
		}
		return store.Ask(id)
	}); err != nil {
		return Status{}, err
	}
	s, err := e.Read(ctx, id, "", cancelWait, cwd)
	if err == nil && !task.Ended(s.Status) {
		return s, fault.New(fault.FSOperation, "task %s does not end; what it started may still run", id)
	}
	return s, err
}

// cancelWait exceeds what ending a run may take.
const cancelWait = 8 * time.Second

// List returns the tasks known here, the latest first, without events and
// results, and how many more there are than limit.
func (e *Engine) List(ctx context.Context, cwd place.Place, limit int) (tasks []Status, more int, err error) {
	tasks = []Status{}
	seen := map[string]bool{}
	add := func(r *task.Record) {
		if !seen[r.TaskID+"\x00"+r.Cwd] {
			seen[r.TaskID+"\x00"+r.Cwd] = true
			s := summary(r)
			s.Events = nil
			tasks = append(tasks, s)
		}
	}
	e.mu.Lock()
	for _, l := range e.live {
		l.mu.Lock()
		add(&l.record)
		l.mu.Unlock()
	}
	e.mu.Unlock()
	for _, home := range e.homes(cwd) {
		dir, err := audit.Open(home, e.tasksDir(), false)
		if err != nil {
			continue
		}
		store := &task.Store{Dir: dir}
		ids, err := store.List()
		for _, id := range ids {
			if ctx.Err() != nil {
				break
			}
			if l := e.liveTask(id); l != nil && filepath.Clean(l.store.Dir.Abs) == filepath.Clean(dir.Abs) {
				continue
			}
			if r, err := e.recovered(ctx, store, id, home); err == nil {
				add(r)
			}
		}
		dir.Close()
		if err != nil {
			return nil, 0, err
		}
	}
	slices.SortFunc(tasks, func(a, b Status) int {
		return cmp.Or(cmp.Compare(b.StartedAt, a.StartedAt), cmp.Compare(a.TaskID, b.TaskID))
	})
	if len(tasks) > limit {
		tasks, more = tasks[:limit], len(tasks)-limit
	}
	return tasks, more, ctx.Err()
}

// An Applied is what Apply brought into the working tree.
type Applied struct {
	TaskID string   `json:"taskId"`
	Top    string   `json:"top"` // of the working tree
	Paths  []string `json:"paths"`
}

// Apply brings what a task changed in a working tree of its own into the one
// that it was made from, all or nothing. Where the changes do not fit any more
// it is ERR_PRECONDITION_FAILED.
func (e *Engine) Apply(ctx context.Context, id string, cwd place.Place) (Applied, error) {
	out := Applied{TaskID: id, Paths: []string{}}
	if l := e.liveTask(id); l != nil {
		l.mu.Lock()
		ended := task.Ended(l.record.Status)
		l.mu.Unlock()
		if !ended {
			return out, fault.New(fault.PreconditionFailed, "task %s is not over; wait for it with task_status", id)
		}
	}
	err := e.stored(id, cwd, func(store *task.Store, home place.Place) error {
		r, err := e.recovered(ctx, store, id, home)
		switch {
		case err != nil:
			return err
		case !task.Ended(r.Status):
			return fault.New(fault.PreconditionFailed, "task %s is not over; wait for it with task_status", id)
		case r.Worktree == nil:
			return fault.New(fault.InvalidParameter, "task %s did not run with worktree; its changes are in %s already", id, r.Cwd)
		case r.Worktree.Applied:
			return fault.New(fault.PreconditionFailed, "the changes of task %s were applied already", id)
		case r.Worktree.Ref == "" || r.Before == nil || r.After == nil:
			return fault.New(fault.PreconditionFailed, "task %s changed nothing", id)
		}
		g, ok := snapshot.Open(ctx, home.Abs, e.snapshotOptions(home)).(*snapshot.Git)
		if !ok {
			return fault.New(fault.PreconditionFailed, "%s belongs to no git repository any more", home.Abs)
		}
		defer g.Close()
		unlock, err := e.lock(ctx, g.Top())
		if err != nil {
			return err
		}
		defer unlock()
		d, err := g.Compare(ctx, *r.Before, *r.After)
		if err != nil {
			return err
		}
		if err := g.Apply(ctx, *r.Before, *r.After); err != nil {
			return err
		}
		out.Top, out.Paths = g.Top(), d.Paths()
		r.Worktree.Applied = true
		if err := g.Drop(ctx, r.Worktree.Ref); err != nil {
			e.Log.Warn("removing a reference", "ref", r.Worktree.Ref, "err", err)
		}
		r.Worktree.Ref = ""
		if l := e.liveTask(id); l != nil {
			l.mu.Lock()
			l.record.Worktree = r.Worktree
			l.mu.Unlock()
		}
		return store.Save(r)
	})
	return out, err
}

// Progress words an event in at most 200 characters.
func Progress(ev task.Event) string { return output.OneLine(ev.Kind + ": " + ev.Text) }
