package agentcli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

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
			return Status{}, fault.New(fault.InvalidParameter, "cursor must be one that %s returned", e.Words.Cursor)
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
		r, err := e.present(store, id)
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

// present loads a record as it is to be told. Nothing is written: of a task whose
// server is gone only that is told, and who may settle it.
func (e *Engine) present(store *task.Store, id string) (*task.Record, error) {
	r, err := store.Load(id)
	if err != nil || task.Ended(r.Status) || !store.Abandoned(id) {
		return r, err
	}
	// It may have ended since it was read.
	if r, err = store.Load(id); err != nil || task.Ended(r.Status) {
		return r, err
	}
	last := task.Event{Time: r.StartedAt}
	if n := len(r.Events); n > 0 {
		last = r.Events[n-1]
	}
	r.Status = task.Interrupted
	r.Events = append(r.Events, task.Event{Seq: last.Seq + 1, Time: last.Time, Kind: "error",
		Text: "the server that ran it ended before it did; " + e.Words.Cancel + " ends what is left of it and tells what it changed"})
	return r, nil
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
	if err := task.CheckID(e.Words.TaskID, id); err != nil {
		return err
	}
	for _, home := range e.homes(cwd) {
		store, err := e.store(home, false)
		if err != nil {
			continue
		}
		err = f(store, home)
		store.Dir.Close()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fault.New(fault.FSNotFound, "there is no task %s here; %s tells the known ones, and %s names the directory that a task of another server ran in", fault.Clip(id), e.Words.List, e.Words.Cwd)
}

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
		store, err := e.store(home, false)
		if err != nil {
			continue
		}
		ids, err := store.List()
		for _, id := range ids {
			if ctx.Err() != nil {
				break
			}
			if l := e.liveTask(id); l != nil && l.store.Dir.Abs == store.Dir.Abs {
				continue
			}
			if r, err := e.present(store, id); err == nil {
				add(r)
			}
		}
		store.Dir.Close()
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

// Cancel ends a task with all it started and returns how it stands then.
func (e *Engine) Cancel(ctx context.Context, id string, cwd place.Place) (Status, error) {
	if l := e.liveTask(id); l != nil {
		l.requestCancel()
	} else if err := e.stored(id, cwd, func(store *task.Store, home place.Place) error {
		r, err := e.settle(ctx, store, id, home)
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

// Progress words an event in at most 200 characters.
func Progress(ev task.Event) string { return output.OneLine(ev.Kind + ": " + ev.Text) }
