package agentcli

import (
	"encoding/json"
	"reflect"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
)

// seal takes secrets out of res, writes the audit and returns the result as
// callers get it.
func (e *Engine) seal(p *plan, res *Result) *Result {
	eachString(reflect.ValueOf(res), "", func(_, s string) string { return p.red.Text(s) })
	if p.auditDir == nil {
		return res.fit(maxResult)
	}
	name := audit.Name(p.started, p.Request.Provider, p.TaskID) + ".json"
	res.AuditPath = p.auditDir.Path(name)
	hidden := map[string]string{}
	for k := range p.Env {
		hidden[k] = policy.Hidden
	}
	record := struct {
		Task      auditTask `json:"task"`
		Result    *Result   `json:"result"`
		Timestamp string    `json:"timestamp"`
	}{auditTask{p.TaskID, p.Request.Provider, p.red.Text(p.Instructions), p.Cwd.Abs, p.Allowlist, hidden, p.red.Text(p.noTest().Command), p.Worktree}, res, audit.ISO(e.Now())}
	b, err := json.MarshalIndent(record, "", "  ")
	if err == nil {
		err = p.auditDir.Replace(name, append(b, '\n'))
	}
	if err != nil {
		res.AuditPath = ""
		res.Errors = append(res.Errors, "the audit could not be written")
		e.Log.Error("writing an audit", "task", p.TaskID, "err", err)
	}
	return res.fit(maxResult)
}

// An auditTask is a request as the audit has it.
type auditTask struct {
	TaskID       string            `json:"taskId"`
	Provider     string            `json:"provider"`
	Instructions string            `json:"instructions"`
	Cwd          string            `json:"cwd"`
	Allowlist    []string          `json:"allowlist,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	TestCommand  string            `json:"testCommand,omitempty"`
	Worktree     bool              `json:"worktree,omitempty"`
}
