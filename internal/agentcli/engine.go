// Package agentcli gives tasks to command line agents under policy and tells
// exactly what they changed.
package agentcli

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// DepthVar tells how many agents under conduit are above a process.
const DepthVar = "CONDUIT_AGENT_DEPTH"

// MarkVar marks all processes of one run.
const MarkVar = "CONDUIT_AGENT_TASK"

// Services are what the engine may not make itself.
type Services struct {
	Log    *slog.Logger
	Now    func() time.Time
	Lookup func(key string) (string, bool) // of the environment
	// Places are directories whose tasks are known without being named, beside
	// those that tasks were run in: the project and the allowed directories.
	Places []string
}

// An Engine runs tasks. It is safe for use from several goroutines.
type Engine struct {
	*Services
	config *config.Config
	health health

	ctx  context.Context // ends with the engine
	stop context.CancelFunc
	runs sync.WaitGroup

	mu    sync.Mutex
	live  map[string]*live // tasks of this process by id
	ended []string         // those that are over, the oldest first
	trees map[string]chan struct{}
	known []place.Place // working directories of tasks
}

// remembered is how many ended tasks are kept in memory.
const remembered = 200

// New returns an engine for the configuration. Nothing runs before it is asked
// for.
func New(c *config.Config, s Services) *Engine {
	e := &Engine{Services: &s, config: c, live: map[string]*live{}, trees: map[string]chan struct{}{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.health.init()
	return e
}

// Close ends all runs, each with what it started, and records them as
// interrupted.
func (e *Engine) Close() error {
	e.stop()
	e.runs.Wait()
	return nil
}

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
	p := &plan{Request: r, started: e.Now()}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	var known bool
	if p.provider, known = e.config.Providers[r.Provider]; !known {
		return nil, fault.New(fault.InvalidParameter, "there is no provider %q; the configured ones are %s", clip(r.Provider), e.choice())
	}
	if p.TaskID == "" {
		p.TaskID = "task-" + strings.NewReplacer(":", "-", ".", "-").Replace(audit.ISO(p.started)) + "-" + strings.ToLower(rand.Text()[:6])
	}
	if err := task.CheckID(p.TaskID); err != nil {
		return nil, err
	}
	for name := range r.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(r.Env[name], "\x00") {
			return nil, fault.New(fault.InvalidParameter, "env: %q is no name of a variable", clip(name))
		}
	}
	if r.DefaultCwd && p.provider.Cwd != "" {
		if p.Cwd, err = r.Cwd.Guard.Resolve(absolute(p.provider.Cwd, r.Cwd.Abs)); err != nil {
			return nil, err
		}
	}
	if fi, err := p.Cwd.Stat(); err != nil {
		return nil, err
	} else if !fi.IsDir() {
		return nil, fault.New(fault.FSIsFile, "cwd %s is a file; name a directory", p.Cwd.Abs)
	}
	p.dir = p.Cwd.Abs
	p.space = snapshot.Open(ctx, p.dir, e.snapshotOptions(p.Cwd))
	depth := e.depth()
	p.issues = policy.Before(policy.Task{
		Instructions: r.Instructions, TestCommand: r.TestCommand, TestRequired: e.config.Policy.RequireTestCommand, Allowlist: r.Allowlist,
		Depth: depth, MaxDepth: e.config.Runner.MaxDepth, Worktree: r.Worktree, Repository: p.space.Repository(),
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

func absolute(path, base string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

func clip(s string) string { return fault.Clip(s) }

// depth is how many agents are above this server. Agents may keep their
// environment from the servers they start, so that of the processes above counts
// as well.
func (e *Engine) depth() int {
	own, _ := e.Lookup(DepthVar)
	n, _ := strconv.Atoi(own)
	m, _ := strconv.Atoi(process.Inherited(DepthVar))
	return max(n, m, 0)
}

// snapshotOptions leave out what the engine itself writes.
func (e *Engine) snapshotOptions(cwd place.Place) snapshot.Options {
	o := snapshot.Options{Exclude: []string{
		audit.Locate(cwd, e.config.Audit.Dir), audit.Locate(cwd, e.config.Logs.Dir), audit.Locate(cwd, e.tasksDir()), audit.Locate(cwd, e.worktreesDir())}}
	if parent := filepath.Dir(o.Exclude[0]); parent != cwd.Abs && !filepath.IsAbs(e.config.Audit.Dir) {
		o.Exclude = append(o.Exclude, parent) // holds the .gitignore as well
	}
	if cwd.Guard != nil {
		o.Within = func(dir string) bool { _, err := cwd.Guard.Resolve(dir); return err == nil }
	}
	return o
}

func (e *Engine) tasksDir() string     { return audit.Beside(e.config.Audit.Dir, "tasks") }
func (e *Engine) worktreesDir() string { return audit.Beside(e.config.Audit.Dir, "worktrees") }

// environment sets what the agent and the test command see of the environment:
// what is allowed by name, the provider's, the task's.
func (e *Engine) environment(p *plan, depth int) {
	vars := map[string]string{}
	var secret []string // entries that must not show anywhere
	take := func(names []string, hide bool) {
		for _, name := range names {
			if v, ok := e.Lookup(name); ok {
				vars[name] = v
				if hide || strings.Contains(v, "@") { // proxies may hold a password
					secret = append(secret, name+"="+v)
				}
			}
		}
	}
	entries := func() []string {
		list := make([]string, 0, len(vars)+2)
		for name, v := range vars {
			list = append(list, name+"="+v)
		}
		slices.Sort(list)
		return list
	}
	put := func(m map[string]string) {
		for name, v := range m {
			vars[name] = v
			secret = append(secret, name+"="+v)
		}
	}
	take(config.Usual, false)
	take(e.config.Runner.EnvAllow, true)
	p.mark = MarkVar + "=" + p.TaskID + "-" + rand.Text()
	system := []string{DepthVar + "=" + strconv.Itoa(depth+1), p.mark}
	put(p.Env)
	p.testEnv = append(entries(), system...)
	take(p.provider.EnvAllow, true)
	put(p.provider.Env)
	put(p.Env) // the task's word is the last
	p.env = append(entries(), system...)
	p.red = audit.NewRedactor(secret)
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

// lock waits until no other run, of this process or another, works in the tree
// whose top is top.
func (e *Engine) lock(ctx context.Context, top string) (unlock func(), err error) {
	e.mu.Lock()
	turn := e.trees[top]
	if turn == nil {
		turn = make(chan struct{}, 1)
		e.trees[top] = turn
	}
	e.mu.Unlock()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	name := filepath.Join(os.TempDir(), fmt.Sprintf("conduit-agent-%d-%x.lock", os.Getuid(), shortHash(top)))
	for {
		l, ok, err := task.TryLock(name)
		if err != nil {
			<-turn
			return nil, fmt.Errorf("locking %s: %w", top, err)
		}
		if ok {
			return func() {
				_ = l.Unlock()
				<-turn
			}, nil
		}
		select {
		case <-time.After(task.Retry):
		case <-ctx.Done():
			<-turn
			return nil, ctx.Err()
		}
	}
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

// lastLine is the last line of s that is not empty, or other where there is
// none.
func lastLine(s, other string) string {
	s = strings.TrimSpace(s)
	return cmp.Or(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]), other)
}
