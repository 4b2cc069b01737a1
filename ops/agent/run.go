package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

var runDesc = registry.Desc{
	Tool:      RunTool,
	Summary:   "Give a task to a coding agent and get back what it changed.",
	Effect:    registry.Destructive,
	OpenWorld: true,
	Errors: []fault.Code{fault.InvalidParameter, fault.FSNotFound, fault.FSIsFile, fault.FSAccessDenied, fault.FSAlreadyExists, fault.FSPathResolution,
		fault.FSBadPathInput, fault.FSOperation, fault.LimitExceeded, fault.ConfigInvalid},
	Examples: []registry.Example{
		{Title: "What would be run, without running it", Args: `{"provider": "codex", "instructions": "Add a test for the parser.", "cwd": ".", "allowlist": ["**/*_test.go"], "dryRun": true}`},
	},
}

type runParams struct {
	Provider     string        `json:"provider" jsonschema_description:"Agent to use, as providers_health lists them."`
	Instructions string        `json:"instructions" log:"content" jsonschema_description:"What to do, in full: the agent sees nothing of this conversation and cannot ask."`
	TaskID       string        `json:"taskId,omitempty" jsonschema_description:"Name of the task; one is made up otherwise."`
	Allowlist    []string      `json:"allowlist,omitempty" jsonschema_description:"Paths or globs below cwd that may change; others are reported in policyWarnings."`
	Cwd          registry.Path `json:"cwd,omitempty" jsonschema:"default=." jsonschema_description:"Directory to work in."`
	DryRun       bool          `json:"dryRun,omitempty" jsonschema_description:"Check and show prompt and command only."`
	Env          any           `json:"env,omitempty" log:"secret" jsonschema:"type=object" jsonschema_description:"Object of environment variables for agent and tests, strings by name."`
	AuditEnabled *bool         `json:"auditEnabled,omitempty" jsonschema_description:"Write an audit file; by default as configured."`
	LogsEnabled  *bool         `json:"logsEnabled,omitempty" jsonschema_description:"Write a log of the run; by default as configured."`
	TestCommand  *string       `json:"testCommand,omitempty" log:"secret" jsonschema_description:"Shell command run after the agent; where it fails the task does."`
	Background   bool          `json:"background,omitempty" jsonschema_description:"Return at once; task_status tells the rest. For anything that may take a minute."`
	Worktree     bool          `json:"worktree,omitempty" jsonschema_description:"Work in a copy of the git working tree; task_apply brings the changes over."`
}

func buildRun(_ agentcli.Settings, env *registry.Env) (registry.Func[runParams, *agentcli.Result], error) {
	e, err := engine(env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in runParams) (*agentcli.Result, error) {
		cwd, err := in.Cwd.Place()
		if err != nil {
			return nil, err
		}
		vars, err := variables(in.Env)
		if err != nil {
			return nil, err
		}
		r := agentcli.Request{Provider: in.Provider, Instructions: in.Instructions, TaskID: in.TaskID, Cwd: cwd, DefaultCwd: in.Cwd.String() == ".",
			Allowlist: in.Allowlist, DryRun: in.DryRun, Env: vars, AuditEnabled: in.AuditEnabled, LogsEnabled: in.LogsEnabled,
			TestCommand: in.TestCommand, Worktree: in.Worktree}
		if in.Background && !in.DryRun {
			return e.Start(ctx, r)
		}
		tell, stop := heartbeat(ctx)
		defer stop()
		return e.Run(ctx, r, func(ev task.Event) { tell(agentcli.Progress(ev)) })
	}, nil
}

// variables reads env, which no plain schema can describe.
func variables(v any) (map[string]string, error) {
	if v == nil {
		return nil, nil
	}
	members, ok := v.(map[string]any)
	if !ok {
		return nil, fault.New(fault.InvalidParameter, `run_task: env must be an object of strings, such as {"CI": "1"}`)
	}
	vars := map[string]string{}
	for name, value := range members {
		s, ok := value.(string)
		if !ok {
			return nil, fault.New(fault.InvalidParameter, `run_task: env.%s must be a string, such as "1"`, name)
		}
		vars[name] = s
	}
	return vars, nil
}

// silence is how long a caller is left without progress, less than the 5
// seconds promised.
const silence = 4 * time.Second

// heartbeat reports progress for the call of ctx: what tell is given, and every
// 4 seconds how long it has taken.
func heartbeat(ctx context.Context) (tell func(message string), stop func()) {
	var steps atomic.Int64
	tell = func(message string) { registry.Progress(ctx, steps.Add(1), 0, message) }
	began := time.Now()
	done := make(chan struct{})
	g := parallel.New()
	g.Go(func() error {
		t := time.NewTicker(silence)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				tell("running for " + time.Since(began).Round(time.Second).String())
			case <-done:
				return nil
			}
		}
	})
	tell("started")
	return tell, func() {
		close(done)
		_ = g.Wait()
	}
}
