package agentcli

import (
	"context"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

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
			return out, fault.New(fault.PreconditionFailed, "task %s is not over; wait for it with %s", id, e.Words.Wait)
		}
	}
	err := e.stored(id, cwd, func(store *task.Store, home place.Place) error {
		r, err := e.settle(ctx, store, id, home)
		switch {
		case err != nil:
			return err
		case !task.Ended(r.Status):
			return fault.New(fault.PreconditionFailed, "task %s is not over; wait for it with %s", id, e.Words.Wait)
		case r.Worktree == nil:
			return fault.New(fault.InvalidParameter, "task %s did not run with %s; its changes are in %s already", id, e.Words.Worktree, r.Cwd)
		case r.Worktree.Applied:
			return fault.New(fault.PreconditionFailed, "the changes of task %s were applied already", id)
		case r.Worktree.Ref == "" || r.Before == nil || r.After == nil:
			return fault.New(fault.PreconditionFailed, "task %s changed nothing", id)
		}
		g, ok := snapshot.Open(ctx, home.Abs, snapshot.Options{}).(*snapshot.Git)
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
		if kept, err := g.RefTree(ctx, snapshot.Ref(id)); err != nil || kept != r.After.Tree {
			return fault.New(fault.PreconditionFailed, "what task %s changed is not in %s any more", id, snapshot.Ref(id))
		}
		for _, name := range d.Paths() {
			if err := mayWrite(home.Guard, filepath.Join(home.Abs, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
		if err := g.Apply(ctx, *r.Before, *r.After); err != nil {
			return err
		}
		out.Top, out.Paths = g.Top(), d.Paths()
		r.Worktree.Applied = true
		if err := g.DeleteRef(ctx, snapshot.Ref(id)); err != nil {
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

// mayWrite refuses a file that callers may not change.
func mayWrite(guard place.Guard, abs string) error {
	if guard == nil {
		return nil
	}
	dir, err := guard.Resolve(filepath.Dir(abs))
	if err != nil {
		return err
	}
	if guard.Denied(filepath.Join(dir.Abs, filepath.Base(abs))) {
		return place.Refused(abs)
	}
	return nil
}
