package agent

import (
	"context"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

var taskErrors = []fault.Code{fault.InvalidParameter, fault.FSNotFound, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput,
	fault.FSReadFailed, fault.FSOperation, fault.ConfigInvalid}

var statusDesc = registry.Desc{
	Tool:       StatusTool,
	Summary:    "Tell how a task stands, with its events and in the end its result.",
	Effect:     registry.ReadOnly,
	Idempotent: true,
	Errors:     taskErrors,
	Examples: []registry.Example{
		{Title: "Wait up to half a minute for the end", Args: `{"taskId": "parser-test", "wait_ms": 30000, "cwd": "."}`},
	},
}

type statusParams struct {
	TaskID string `json:"taskId" jsonschema_description:"Task to look at."`
	Wait   int    `json:"wait_ms,omitempty" jsonschema:"minimum=0,maximum=300000" jsonschema_description:"Time to wait, in milliseconds, for the task to end or, with cursor, for new events. Default 0."`
	Cursor string `json:"cursor,omitempty" jsonschema_description:"cursor of the answer before: only later events are told."`
	Where
}

func buildStatus(_ agentcli.Settings, env *registry.Env) (registry.Func[statusParams, agentcli.Status], error) {
	e, err := engine(env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in statusParams) (agentcli.Status, error) {
		cwd, err := in.place()
		if err != nil {
			return agentcli.Status{}, err
		}
		_, stop := heartbeat(ctx)
		defer stop()
		return e.Read(ctx, in.TaskID, in.Cursor, time.Duration(in.Wait)*time.Millisecond, cwd)
	}, nil
}

var cancelDesc = registry.Desc{
	Tool:       CancelTool,
	Summary:    "End a running task with every process it started.",
	Effect:     registry.Destructive,
	Idempotent: true,
	Errors:     taskErrors,
	Examples:   []registry.Example{{Title: "End a task", Args: `{"taskId": "parser-test", "cwd": "."}`}},
}

type taskParams struct {
	TaskID string `json:"taskId" jsonschema_description:"The task."`
	Where
}

func buildCancel(_ agentcli.Settings, env *registry.Env) (registry.Func[taskParams, agentcli.Status], error) {
	e, err := engine(env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in taskParams) (agentcli.Status, error) {
		cwd, err := in.place()
		if err != nil {
			return agentcli.Status{}, err
		}
		return e.Cancel(ctx, in.TaskID, cwd)
	}, nil
}

var listDesc = registry.Desc{
	Tool:       ListTool,
	Summary:    "List tasks, the latest first.",
	Effect:     registry.ReadOnly,
	Idempotent: true,
	Errors:     taskErrors,
	Examples:   []registry.Example{{Title: "The tasks of the project", Args: `{"cwd": "."}`}},
}

type listParams struct {
	Max int `json:"max_results,omitempty" jsonschema:"minimum=1,maximum=50,default=50" jsonschema_description:"Most tasks."`
	Where
}

type listResult struct {
	Tasks []agentcli.Status `json:"tasks"`
	More  int               `json:"more,omitempty"` // tasks beyond max_results
}

func buildList(_ agentcli.Settings, env *registry.Env) (registry.Func[listParams, listResult], error) {
	e, err := engine(env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in listParams) (listResult, error) {
		cwd, err := in.place()
		if err != nil {
			return listResult{}, err
		}
		tasks, more, err := e.List(ctx, cwd, in.Max)
		return listResult{tasks, more}, err
	}, nil
}

var applyDesc = registry.Desc{
	Tool:     ApplyTool,
	Summary:  "Bring the changes of a task that ran with worktree:true into the working tree, all or nothing.",
	Effect:   registry.Destructive,
	Errors:   append([]fault.Code{fault.PreconditionFailed}, taskErrors...),
	Examples: []registry.Example{{Title: "Take over what a task did", Args: `{"taskId": "parser-test", "cwd": "."}`}},
}

func buildApply(_ agentcli.Settings, env *registry.Env) (registry.Func[taskParams, agentcli.Applied], error) {
	e, err := engine(env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in taskParams) (agentcli.Applied, error) {
		cwd, err := in.place()
		if err != nil {
			return agentcli.Applied{}, err
		}
		return e.Apply(ctx, in.TaskID, cwd)
	}, nil
}
