package agentcli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
)

// worktreesOf names the lock on the list of working trees of a repository, which
// git does not guard well against two commands at once.
func worktreesOf(g *snapshot.Git) string { return "worktrees " + g.Top() }

// enterWorktree makes a working tree in the state before and moves the plan
// there. remove ends it.
func (e *Engine) enterWorktree(ctx context.Context, p *plan, l *live, before snapshot.Snapshot) (remove func(), err error) {
	g := p.space.(*snapshot.Git)
	home, err := audit.Open(p.Cwd, e.worktreesDir(), true)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	unlock, err := e.lock(ctx, worktreesOf(g))
	if err != nil {
		return nil, err
	}
	w, err := g.Worktree(ctx, before, filepath.Join(e.worktrees(p.Cwd), p.TaskID))
	unlock()
	if err != nil {
		return nil, fmt.Errorf("making a working tree: %w", err)
	}
	l.setWorktree(w.Dir)
	p.dir = filepath.Join(w.Dir, filepath.FromSlash(g.Prefix()))
	p.prompt = p.red.Text(prompt(p.dir, p.Request))
	remove = func() {
		ctx := context.WithoutCancel(ctx)
		unlock, err := e.lock(ctx, worktreesOf(g))
		if err == nil {
			err = w.Remove(ctx)
			unlock()
		}
		if err != nil {
			e.Log.Warn("removing a working tree", "task", p.TaskID, "err", err)
		}
		l.setWorktree("")
	}
	if err := e.command(p); err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}
