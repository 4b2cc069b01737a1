package agentcli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// settle loads a record. Of a task that was running when its server ended, what
// is left is ended first and what it changed is told. Only what may write does
// that.
func (e *Engine) settle(ctx context.Context, store *task.Store, id string, home place.Place) (*task.Record, error) {
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
	dir, options := home.Abs, e.snapshotOptions(home)
	var main *snapshot.Git // that a working tree of the task's own was made of
	if r.Worktree != nil && r.Worktree.Dir != "" {
		dir, options = r.Worktree.Dir, snapshot.Options{}
		if _, err := os.Stat(dir); err != nil {
			return nil // it had not begun there
		}
		var ok bool
		if main, ok = snapshot.Open(ctx, home.Abs, options).(*snapshot.Git); !ok {
			return fmt.Errorf("%s belongs to no git repository any more", home.Abs)
		}
		defer main.Close()
	}
	space := snapshot.Open(ctx, dir, options)
	if r.Hashed {
		space = snapshot.Hashes(dir, options)
	}
	defer space.Close()
	if g, ok := space.(*snapshot.Git); main != nil && (!ok || !g.Of(main)) {
		return fmt.Errorf("%s is no working tree of %s any more", dir, home.Abs)
	}
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
	if main == nil {
		return nil
	}
	if len(d.Changes) > 0 {
		if err := main.SetRef(ctx, after, snapshot.Ref(r.TaskID)); err != nil {
			return err
		}
		r.Worktree.Ref = snapshot.Ref(r.TaskID)
	}
	unlock, err := e.lock(ctx, worktreesOf(main))
	if err != nil {
		return err
	}
	defer unlock()
	if err := main.RemoveWorktree(ctx, dir); err != nil {
		return err
	}
	r.Worktree.Dir = ""
	return nil
}
