// Package agent is a family of tools that hand tasks to command line agents,
// such as Codex or Claude Code, and tell exactly what those changed.
package agent

import (
	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/ops/agent/cli"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Toolset is the name by which CONDUIT_TOOLSETS picks the family.
const Toolset = "agent"

// Tools of the family.
const (
	RunTool    = "run_task"
	HealthTool = "providers_health"
	StatusTool = "task_status"
	CancelTool = "task_cancel"
	ListTool   = "task_list"
	ApplyTool  = "task_apply"
)

func init() {
	registry.RegisterToolset(registry.Toolset{
		Name:      Toolset,
		Summary:   "Coding agents of this machine under policy: give them tasks and get back exactly what they changed.",
		Own:       own,
		Commands:  commands,
		Variables: []string{agentcli.DepthVar, agentcli.MarkVar},
	})
	for name, summary := range map[string]string{
		RunTool:    "Give a task to a coding agent that runs on this machine (codex, claude, gemini, opencode or another by configuration) and get back what it changed, as a diff.",
		HealthTool: "Check which coding agents can be used. Costs nothing.",
		StatusTool: "Tell how a task stands, with its events and in the end its result; wait_ms waits for them.",
		CancelTool: "End a running task with every process it started.",
		ListTool:   "List tasks, the latest first.",
		ApplyTool:  "Bring the changes of a task that ran with worktree:true into the working tree, all or nothing.",
	} {
		registry.RegisterTool(registry.Tool{Name: name, Toolset: Toolset, Summary: summary, Structured: true})
	}
	registry.Register(runDesc, buildRun)
	registry.Register(healthDesc, buildHealth)
	registry.Register(statusDesc, buildStatus)
	registry.Register(cancelDesc, buildCancel)
	registry.Register(listDesc, buildList)
	registry.Register(applyDesc, buildApply)
}

// own are the places of audits, logs and tasks. Where the configuration cannot be
// read they are those without one.
func own(env *registry.Env) ([]string, error) {
	c, err := configuration(env)
	if err != nil {
		c = config.Default()
	}
	return agentcli.Records(c, env.Lookup), err
}

func configuration(env *registry.Env) (*config.Config, error) {
	s, err := registry.LoadSettings[agentcli.Settings](env.Lookup)
	if err != nil {
		return nil, err
	}
	return s.Load(env.Project)
}

// words are those of the tools.
var words = agentcli.Words{
	Health: HealthTool, Cancel: CancelTool, List: ListTool, Wait: StatusTool, Cursor: StatusTool,
	Instructions: "instructions", Test: "testCommand", Allowlist: "allowlist", Worktree: "worktree", Env: "env", Cwd: "cwd", TaskID: "taskId",
}

// engine returns the one engine of the server.
func engine(env *registry.Env) (*agentcli.Engine, error) {
	return registry.Shared(env, func(env *registry.Env) (*agentcli.Engine, error) {
		c, err := configuration(env)
		if err != nil {
			return nil, err
		}
		e := agentcli.New(c, agentcli.Services{Log: env.Log, Now: env.Now, Lookup: env.Lookup, Places: env.Server.AllowedPaths, Words: words})
		env.OnClose(e.Close)
		env.OnList(e.Warm)
		return e, nil
	})
}

// commands are the family's verbs.
func commands(c *registry.CLI) []*cobra.Command { return cli.Commands(c, engine) }

// Where is the parameter by which tasks of other servers are found.
type Where struct {
	Cwd registry.Path `json:"cwd,omitempty" jsonschema:"default=." jsonschema_description:"Directory the task ran in, where another server ran it."`
}

func (w Where) place() (place.Place, error) { return w.Cwd.Place() }
