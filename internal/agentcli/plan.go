package agentcli

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A plan is a request made ready.
type plan struct {
	Request
	provider config.Provider
	dir      string // where the agent works
	space    snapshot.Space
	argv     []string
	stdin    []byte
	shown    []string // argv as results show it
	prompt   string
	env      []string
	testEnv  []string
	mark     string
	red      *audit.Redactor
	started  time.Time
	auditDir *audit.Dir // nil: no audit
	logDir   *audit.Dir // nil: no log
	issues   []policy.Issue
	words    Words
}

func (p *plan) close() {
	if p.space != nil {
		p.space.Close()
	}
	if p.auditDir != nil {
		p.auditDir.Close()
	}
	if p.logDir != nil {
		p.logDir.Close()
	}
}

// plan checks r and makes it ready. Policy issues are not errors.
func (e *Engine) plan(ctx context.Context, r Request) (_ *plan, err error) {
	p := &plan{Request: r, started: e.Now(), words: e.Words}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	var known bool
	if p.provider, known = e.config.Providers[r.Provider]; !known {
		return nil, fault.New(fault.InvalidParameter, "there is no provider %q; the configured ones are %s", fault.Clip(r.Provider), e.choice())
	}
	if p.TaskID == "" {
		p.TaskID = "task-" + strings.NewReplacer(":", "-", ".", "-").Replace(audit.ISO(p.started)) + "-" + strings.ToLower(rand.Text()[:6])
	}
	if err := task.CheckID(e.Words.TaskID, p.TaskID); err != nil {
		return nil, err
	}
	for name := range r.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(r.Env[name], "\x00") {
			return nil, fault.New(fault.InvalidParameter, "%s: %q is no name of a variable", e.Words.Env, fault.Clip(name))
		}
	}
	if r.DefaultCwd && p.provider.Cwd != "" {
		if p.Cwd, err = r.Cwd.Guard.Resolve(config.Abs(p.provider.Cwd, r.Cwd.Abs)); err != nil {
			return nil, err
		}
	}
	if fi, err := p.Cwd.Stat(); err != nil {
		return nil, err
	} else if !fi.IsDir() {
		return nil, fault.New(fault.FSIsFile, "%s %s is a file; name a directory", e.Words.Cwd, p.Cwd.Abs)
	}
	p.dir = p.Cwd.Abs
	p.space = snapshot.Open(ctx, p.dir, e.snapshotOptions(p.Cwd))
	depth := e.depth()
	p.issues = policy.Before(policy.Task{
		Instructions: r.Instructions, TestCommand: r.TestCommand, TestRequired: e.config.Policy.RequireTestCommand, Allowlist: r.Allowlist,
		Depth: depth, MaxDepth: e.config.Runner.MaxDepth, Worktree: r.Worktree, Repository: p.space.Repository(), Words: e.Words,
	})
	e.environment(p, depth)
	return p, e.command(p)
}

// choice lists the providers, with what the last check found.
func (e *Engine) choice() string {
	ids := e.config.IDs()
	for _, h := range e.Known() {
		if !h.OK {
			ids[slices.Index(ids, h.ID)] += " (unavailable)"
		}
	}
	return strings.Join(ids, ", ")
}

// snapshotOptions leave out what the engine itself writes.
func (e *Engine) snapshotOptions(cwd place.Place) snapshot.Options {
	o := snapshot.Options{Exclude: []string{
		config.Abs(e.config.Audit.Dir, cwd.Abs), config.Abs(e.config.Logs.Dir, cwd.Abs), config.Abs(e.worktreesDir(), cwd.Abs)}}
	if parent := filepath.Dir(o.Exclude[0]); parent != cwd.Abs && !filepath.IsAbs(e.config.Audit.Dir) {
		o.Exclude = append(o.Exclude, parent) // holds the .gitignore as well
	}
	if cwd.Guard != nil {
		o.Within = func(dir string) bool { _, err := cwd.Guard.Resolve(dir); return err == nil }
	}
	return o
}

// environment sets what the agent and the test command see of the environment:
// what is allowed by name, the provider's, the task's.
func (e *Engine) environment(p *plan, depth int) {
	vars := map[string]string{}
	take := func(names []string) {
		for _, name := range names {
			if v, ok := e.Lookup(name); ok {
				vars[name] = v
			}
		}
	}
	entries := func(m map[string]string) []string {
		list := make([]string, 0, len(m)+2)
		for name, v := range m {
			list = append(list, name+"="+v)
		}
		slices.Sort(list)
		return list
	}
	p.mark = task.NewMark(p.TaskID)
	system := []string{DepthVar + "=" + strconv.Itoa(depth+1), p.mark}
	take(config.Usual)
	take(e.config.Runner.EnvAllow)
	maps.Copy(vars, p.Env)
	forTests := entries(vars)
	take(p.provider.EnvAllow)
	maps.Copy(vars, p.provider.Env)
	maps.Copy(vars, p.Env) // the task's word is the last
	forAgent := entries(vars)
	p.red = audit.NewRedactor(slices.Concat(forTests, entries(p.provider.Env), forAgent))
	p.testEnv, p.env = append(forTests, system...), append(forAgent, system...)
}

// maxArgument is what one argument may take, in bytes, on Linux.
const maxArgument = 128<<10 - 1

// command sets what is run.
func (e *Engine) command(p *plan) error {
	p.prompt = p.red.Text(prompt(p.dir, p.Request))
	pr := p.provider
	p.argv = slices.Clone(pr.Args)
	if pr.Model != "" && *pr.ModelFlag != "" {
		p.argv = append(p.argv, *pr.ModelFlag, pr.Model)
	}
	p.shown = slices.Clone(p.argv)
	if pr.Type == config.ACP {
		return nil
	}
	if pr.InputMode == config.Stdin {
		p.stdin = []byte(p.prompt)
		return nil
	}
	if len(p.prompt) > maxArgument {
		return fault.New(fault.LimitExceeded, "the prompt of %d bytes is too long for an argument (%d); set inputMode %q for provider %s", len(p.prompt), maxArgument, config.Stdin, p.Request.Provider)
	}
	if *pr.InputFlag != "" {
		p.argv, p.shown = append(p.argv, *pr.InputFlag), append(p.shown, *pr.InputFlag)
	}
	p.argv, p.shown = append(p.argv, p.prompt), append(p.shown, "{prompt}")
	return nil
}

// program finds the provider's binary: by its path, relative to the
// configuration, or by its name along PATH.
func (e *Engine) program(pr config.Provider) (string, error) {
	name := pr.Binary
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, os.PathSeparator) {
		if !filepath.IsAbs(name) && e.config.File != "" {
			name = filepath.Join(filepath.Dir(e.config.File), name)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s was not found: install it, or set its binary in the configuration", pr.Binary)
	}
	return filepath.Abs(path)
}

// openDirs opens the directories of the plan's records.
func (e *Engine) openDirs(p *plan) (err error) {
	enabled := func(store config.Store, asked *bool) bool {
		if asked != nil {
			return *asked
		}
		return store.Enabled
	}
	if enabled(e.config.Audit, p.AuditEnabled) {
		if p.auditDir, err = audit.Open(p.Cwd, e.config.Audit.Dir, true); err != nil {
			return err
		}
	}
	if enabled(e.config.Logs, p.LogsEnabled) {
		p.logDir, err = audit.Open(p.Cwd, e.config.Logs.Dir, true)
	}
	return err
}

// depth is how many agents are above this server. Agents may keep their
// environment from the servers they start, so that of the processes above counts
// as well.
func (e *Engine) depth() int {
	own, _ := e.Lookup(DepthVar)
	n, _ := strconv.Atoi(own)
	m, _ := strconv.Atoi(process.Inherited(DepthVar))
	return max(n, m, 0)
}
