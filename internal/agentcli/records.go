package agentcli

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/internal/userdir"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Records returns the places of what engines with the configuration c keep, for
// rules that keep them from callers: audits and logs, and the records of tasks
// of every engine of the user. Those that are relative to the directories of
// tasks are globs, the others absolute.
func Records(c *config.Config, lookup func(key string) (string, bool)) []string {
	list := c.Records()
	for _, usual := range config.Default().Records() {
		if !slices.Contains(list, usual) { // a server with another configuration has left its own there
			list = append(list, usual)
		}
	}
	if dir := stateDir(lookup); dir != "" {
		list = append(list, dir)
	}
	return list
}

// stateDir is where agents have no business, unlike in the working tree: what
// stands there as a record is one of ours.
func stateDir(lookup userdir.Lookup) string {
	if dir := userdir.State(lookup); dir != "" {
		return filepath.Join(dir, "conduit-mcp", "agent")
	}
	return ""
}

// store opens the records of tasks that work in cwd. With create it is made
// where there are none yet.
func (e *Engine) store(cwd place.Place, create bool) (*task.Store, error) {
	if e.State == "" {
		return nil, fault.New(fault.FSOperation, "there is no place to keep records of tasks: the home directory of the user is not known")
	}
	dir, err := audit.Open(cwd, filepath.Join(e.State, "tasks", shortHash(cwd.Abs)), create)
	return &task.Store{Dir: dir, Cwd: cwd.Abs, Worktrees: e.worktrees(cwd)}, err
}

func (e *Engine) worktreesDir() string { return audit.Beside(e.config.Audit.Dir, "worktrees") }

// worktrees is where working trees of tasks in cwd are made. Links on the way to
// an absolute place are the user's; others are not followed.
func (e *Engine) worktrees(cwd place.Place) string {
	dir := config.Abs(e.worktreesDir(), cwd.Abs)
	if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(e.worktreesDir()) {
		return real
	}
	return dir
}

// shortHash names a directory by its path.
func shortHash(path string) string {
	sum := sha256.Sum256([]byte(path))
	return fmt.Sprintf("%x", sum[:16])
}
