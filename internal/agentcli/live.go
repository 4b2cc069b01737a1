package agentcli

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
)

const (
	keptEvents  = 500 // in memory
	savedEvents = 50  // in the file
)

// A live is a task that this process runs or ran.
type live struct {
	e       *Engine
	store   *task.Store
	release func() // gives the record up

	mu      sync.Mutex
	record  task.Record
	events  []task.Event
	seq     int64
	news    chan struct{} // closed at the next change
	over    chan struct{} // closed at the end
	cancel  context.CancelFunc
	stopped bool // somebody asked to cancel it
	result  *Result
	saved   time.Time
	watch   func(task.Event) // of the caller that waits; may be nil
}

// change runs f on the record, wakes those who wait and saves it.
func (l *live) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.news)
	l.news = make(chan struct{})
	l.save()
}

// save writes the record. The lock is held.
func (l *live) save() {
	l.saved = time.Now()
	l.record.Events = slices.Clone(l.events[max(0, len(l.events)-savedEvents):])
	if err := l.store.Save(&l.record); err != nil {
		l.e.Log.Error("saving a task", "task", l.record.TaskID, "err", err)
	}
}

func (l *live) begin() { l.change(func() { l.record.Status = task.Running }) }

// recordBefore notes the state before the run.
func (l *live) recordBefore(s snapshot.Snapshot, hashed bool) {
	if !hashed {
		l.change(func() { l.record.Before = &s })
		return
	}
	if err := l.store.SaveFiles(l.record.TaskID, s); err != nil {
		l.e.Log.Error("saving a list of files", "task", l.record.TaskID, "err", err)
	}
	l.change(func() { l.record.Hashed = true })
}

// recordAfter notes the state after it.
func (l *live) recordAfter(s snapshot.Snapshot) {
	if s.Files == nil {
		l.change(func() { l.record.After = &s })
	}
}

// setWorktree notes the working tree of the task, "" where it is gone.
func (l *live) setWorktree(dir string) {
	l.change(func() {
		if l.record.Worktree == nil {
			l.record.Worktree = &task.Worktree{}
		}
		l.record.Worktree.Dir = dir
	})
}

// setRef notes the reference of what the task changed in a working tree of its
// own.
func (l *live) setRef(ref string) { l.change(func() { l.record.Worktree.Ref = ref }) }

// saveEvery is how often events alone have the record saved.
const saveEvery = time.Second

// emit adds an event.
func (l *live) emit(kind, text string) {
	l.mu.Lock()
	l.seq++
	ev := task.Event{Seq: l.seq, Time: audit.ISO(l.e.Now()), Kind: kind, Text: text}
	if l.events = append(l.events, ev); len(l.events) > keptEvents {
		l.events = slices.Delete(l.events, 0, len(l.events)-keptEvents)
	}
	close(l.news)
	l.news = make(chan struct{})
	if time.Since(l.saved) > saveEvery {
		l.save()
	}
	watch := l.watch
	l.mu.Unlock()
	if watch != nil {
		watch(ev)
	}
}

// finish notes the result and gives the record up.
func (l *live) finish(res *Result) {
	l.change(func() {
		l.result = res
		l.record.Status, l.record.FinishedAt, l.record.AuditPath = res.Status, audit.ISO(l.e.Now()), res.AuditPath
		if res.ExecutionLog != nil {
			l.record.LogPath = res.ExecutionLog.Path
		}
		if b, err := json.Marshal(res); err == nil {
			l.record.Result = b
		}
	})
	l.release()
	close(l.over)
}

// status tells how a run that has ended did.
func (l *live) status(res *Result) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case res.OK:
		return task.Succeeded
	case res.Failure != nil && res.Failure.Class == output.Stopped:
		if !l.stopped && l.e.ctx.Err() != nil {
			return task.Interrupted
		}
		return task.Cancelled
	}
	return task.Failed
}

// requestCancel has the task cancelled.
func (l *live) requestCancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.cancel != nil {
		l.cancel()
	}
}
