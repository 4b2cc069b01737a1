package agentcli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// A Health tells whether a provider can be used.
type Health struct {
	ID        string `json:"id"`
	OK        bool   `json:"ok"`
	Reason    string `json:"reason,omitempty"`
	Version   string `json:"version,omitempty"`
	CheckedAt string `json:"checkedAt,omitempty"`
}

// markTime is how long a provider that failed counts as unavailable.
const markTime = 10 * time.Minute

type mark struct {
	class output.Class
	text  string
	until time.Time
}

type health struct {
	once  sync.Once
	mu    sync.Mutex
	found map[string]Health
	marks map[string]mark
}

func (h *health) init() { h.found, h.marks = map[string]Health{}, map[string]mark{} }

// mark has the provider count as unavailable for a while.
func (h *health) mark(id string, class output.Class, text string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks[id] = mark{class, text, now.Add(markTime)}
}

// unavailable returns why the provider may not be used now, or nil.
func (h *health) unavailable(id string, now time.Time) *mark {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, marked := h.marks[id]
	if !marked || now.After(m.until) {
		delete(h.marks, id)
		return nil
	}
	return &m
}

// Warm checks all providers once, in the background; it returns at once, and
// after the first time does nothing.
func (e *Engine) Warm() {
	e.health.once.Do(func() {
		e.runs.Go(func() {
			if err := panics.Try(func() error { e.Check(e.ctx, nil); return nil }); err != nil {
				e.Log.Error("checking providers", "err", err)
			}
		})
	})
}

// Known is the outcome of the last checks, sorted; providers that were not
// checked are missing.
func (e *Engine) Known() []Health {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	list := []Health{}
	for _, id := range e.config.IDs() {
		if h, ok := e.health.found[id]; ok {
			list = append(list, h)
		}
	}
	return list
}

// Check checks the providers ids, all without any, and returns the outcomes in
// that order. A provider that is well is no longer marked unavailable.
func (e *Engine) Check(ctx context.Context, ids []string) []Health {
	if len(ids) == 0 {
		ids = e.config.IDs()
	}
	list := make([]Health, len(ids))
	g := parallel.New()
	for i, id := range ids {
		g.Go(func() error {
			list[i] = e.check(ctx, id)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		e.Log.Error("checking providers", "err", err)
	}
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	for _, h := range list {
		if _, configured := e.config.Providers[h.ID]; configured && ctx.Err() == nil {
			e.health.found[h.ID] = h
			delete(e.health.marks, h.ID)
		}
	}
	return list
}

func (e *Engine) check(ctx context.Context, id string) Health {
	h := Health{ID: id}
	pr, known := e.config.Providers[id]
	if !known {
		h.Reason = "unknown provider"
		return h
	}
	h.CheckedAt = audit.ISO(e.Now())
	program, err := e.program(pr)
	if err != nil {
		h.Reason = err.Error()
		return h
	}
	p := &plan{provider: pr, Request: Request{Provider: id, TaskID: "health"}}
	e.environment(p, e.depth())
	run := func(args []string) (stdout, reason string) {
		out, errs := &process.HeadTail{Max: 64 << 10}, &process.HeadTail{Max: 4 << 10}
		keptOut, keptErr := p.red.Writer(out), p.red.Writer(errs)
		limit := time.Duration(pr.HealthCheck.TimeoutMs) * time.Millisecond
		res, err := process.Run(ctx, process.Spec{Path: program, Args: args, Env: p.env, Mark: p.mark, Hard: limit, Grace: time.Second, Out: keptOut, Err: keptErr})
		keptOut.Close()
		keptErr.Close()
		command := strings.TrimSpace(pr.Binary + " " + strings.Join(args, " "))
		switch {
		case err != nil:
			return "", fmt.Sprintf("%s could not be run: %v", command, err)
		case res.End == process.Hard:
			return "", fmt.Sprintf("%s took longer than %s", command, limit)
		case res.End != process.Exited:
			return "", "the check was cancelled"
		case !slices.Contains(pr.HealthCheck.SuccessExitCodes, res.ExitCode):
			said := lastLine(errs.String(), lastLine(out.String(), "nothing was printed"))
			if class := output.Classify(pr.OutputFormat, res.ExitCode, nil, errs.String()); class == output.Auth {
				return "", "not logged in: " + output.OneLine(said)
			}
			return out.String(), fmt.Sprintf("%s ended with exit code %d: %s", command, res.ExitCode, output.OneLine(said))
		}
		return out.String(), ""
	}
	version, reason := run(pr.HealthCheck.VersionArgs)
	if reason != "" {
		h.Reason = reason
		return h
	}
	h.Version = output.OneLine(lastLine(version, ""))
	if len(pr.HealthCheck.AuthArgs) > 0 {
		said, reason := run(pr.HealthCheck.AuthArgs)
		if denied := denies(pr.HealthCheck.AuthOutputMode, said); denied != "" {
			reason = denied
		}
		h.Reason = reason
	}
	h.OK = h.Reason == ""
	return h
}

// denies reads the output of an authentication check: why it says no, or "".
func denies(mode, said string) string {
	var values []map[string]any
	switch mode {
	case config.AuthText:
		return ""
	case config.AuthJSON:
		var v map[string]any
		if json.Unmarshal([]byte(said), &v) != nil {
			return "the authentication check printed no JSON object"
		}
		values = append(values, v)
	default:
		for line := range strings.Lines(said) {
			var v map[string]any
			if json.Unmarshal([]byte(line), &v) == nil {
				values = append(values, v)
			}
		}
	}
	for _, v := range values {
		for _, key := range []string{"loggedIn", "logged_in", "authenticated", "ok"} {
			if in, told := v[key].(bool); told && !in {
				return "not logged in"
			}
		}
		if failed, _ := v["is_error"].(bool); failed || v["error"] != nil {
			return "the authentication check reports an error"
		}
	}
	return ""
}
