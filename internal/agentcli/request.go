package agentcli

import (
	"encoding/json"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Request is a task for an agent.
type Request struct {
	Provider     string
	Instructions string
	TaskID       string      // "": one is made up
	Cwd          place.Place // where the agent works
	DefaultCwd   bool        // the caller named none, so the provider's comes before Cwd
	Allowlist    []string
	DryRun       bool
	Env          map[string]string
	AuditEnabled *bool // nil: as configured
	LogsEnabled  *bool
	TestCommand  *string
	Worktree     bool
}

// A Result is what became of a task. Sizes are bytes, durations milliseconds.
type Result struct {
	OK             bool           `json:"ok"`
	TaskID         string         `json:"taskId"`
	Status         string         `json:"status"`
	Provider       string         `json:"provider"`
	StartedAt      string         `json:"startedAt"`
	Prompt         string         `json:"prompt"`
	Git            Git            `json:"git"`
	Invocation     Invocation     `json:"invocation"`
	ExecutionLog   *ExecutionLog  `json:"executionLog,omitempty"`
	Runner         Runner         `json:"runner"`
	Test           *Test          `json:"test,omitempty"` // of interrupted tasks nothing is known
	Result         Answer         `json:"result"`
	PolicyIssues   []policy.Issue `json:"policyIssues"`
	PolicyWarnings []policy.Issue `json:"policyWarnings"`
	Errors         []string       `json:"errors"`
	Failure        *Failure       `json:"failure,omitempty"`
	Attempts       int            `json:"attempts"`
	Worktree       *task.Worktree `json:"worktree,omitempty"`
	AuditPath      string         `json:"auditPath,omitempty"`
	Truncated      []string       `json:"truncated,omitempty"` // fields that are whole in the audit file alone
}

// Git is the state of the working tree before and after the run, each compared
// with the last commit.
type Git struct {
	Baseline State `json:"baseline"`
	Post     State `json:"post"`
}

// A State is how a working tree differs from the last commit. Paths are relative
// to the working directory of the task.
type State struct {
	Status      string   `json:"status"`
	Diff        string   `json:"diff"`
	Paths       []string `json:"paths"`
	BinaryPaths []string `json:"binaryPaths,omitempty"`
}

// An Invocation is the command that was run, the prompt in its arguments shown
// as {prompt}. ExitCode is null where there was no exit of its own.
type Invocation struct {
	Cmd        string   `json:"cmd"`
	Args       []string `json:"args"`
	Cwd        string   `json:"cwd"`
	ExitCode   *int     `json:"exitCode"`
	DurationMs int64    `json:"durationMs"`
}

// An ExecutionLog names the log of the run.
type ExecutionLog struct {
	Path   string `json:"path"`
	Format string `json:"format"` // "markdown"
}

// A Runner is how the command ran. TimedOut covers both limits.
type Runner struct {
	Stdout     string  `json:"stdout"`
	Stderr     string  `json:"stderr"`
	ExitCode   *int    `json:"exitCode"`
	DurationMs int64   `json:"durationMs"`
	TimedOut   bool    `json:"timedOut"`
	Signal     *string `json:"signal"`
}

// A Test is the outcome of the task's test command.
type Test struct {
	Command    string `json:"command"`
	OK         bool   `json:"ok"`
	ExitCode   *int   `json:"exitCode"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	DurationMs int64  `json:"durationMs"`
	Skipped    bool   `json:"skipped,omitempty"`
	Note       string `json:"note,omitempty"`
}

// An Answer is what the agent said and changed. Diff is what differs between the
// working tree before and after the run, whatever was uncommitted before.
type Answer struct {
	Summary   string          `json:"summary,omitempty"`
	Diff      string          `json:"diff,omitempty"`
	Paths     []string        `json:"paths,omitempty"`
	Logs      string          `json:"logs,omitempty"`
	Tests     []output.Test   `json:"tests,omitempty"`
	Raw       string          `json:"raw,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Usage     json.RawMessage `json:"usage,omitempty"`
	CostUSD   *float64        `json:"costUsd,omitempty"`
}

// A Failure is why a run failed, by kind.
type Failure struct {
	Class   output.Class `json:"class"`
	Message string       `json:"message"`
}
