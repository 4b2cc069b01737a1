// Package mux serves a registry.Set as MCP tools: it finds the op that a call
// means, runs it through the chain, and turns the answer into bytes, once.
package mux

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// maxRunning bounds the calls that run at one time; more wait their turn.
const maxRunning = 64

// Options are what the composition root decides about answers.
type Options struct {
	Bodies      *body.Store // carries large texts past the encoders; nil: they are written out in memory
	MaxResponse int64       // CONDUIT_MAX_RESPONSE_BYTES, of a whole response line; 0: no limit
	Structured  bool        // CONDUIT_STRUCTURED_CONTENT
	LeanDefault bool        // CONDUIT_DEFAULT_VIEW is lean
}

// A Mux maps tools onto bound ops.
type Mux struct {
	tools   map[string]*tool
	names   []string
	env     *registry.Env
	log     *slog.Logger
	running chan struct{}
	owed    owed
	Options
}

type tool struct {
	registry.Tool
	ops      map[string]*bound
	opNames  []string
	declared func() *mcp.Tool
}

type bound struct {
	*registry.Op
	handle registry.Handler
}

// New binds every op of set with env and wraps it in chain.
func New(set *registry.Set, env *registry.Env, chain registry.Middleware, o Options) (*Mux, error) {
	m := &Mux{tools: map[string]*tool{}, env: env, log: env.Log, running: make(chan struct{}, maxRunning), Options: o}
	for _, t := range set.Tools() {
		ops := set.Ops(t.Name)
		mt := &tool{Tool: t, ops: map[string]*bound{}}
		for _, op := range ops {
			h, err := op.Bind(env)
			if err != nil {
				return nil, err
			}
			mt.ops[op.Name] = &bound{op, chain(h)}
			mt.opNames = append(mt.opNames, op.Name)
		}
		mt.declared = sync.OnceValue(func() *mcp.Tool {
			return &mcp.Tool{Name: t.Name, Description: t.Summary, InputSchema: set.InputSchema(t.Name), Annotations: annotations(ops)}
		})
		m.tools[t.Name] = mt
		m.names = append(m.names, t.Name)
	}
	return m, nil
}

// Mount adds every tool of m to s. The tools are declared as soon as s has
// answered its first request, or another one asks for them: a client need not
// wait for what it does not know yet.
func (m *Mux) Mount(s *mcp.Server) {
	declare := sync.OnceFunc(func() {
		for _, name := range m.names {
			s.AddTool(m.tools[name].declared(), m.handle)
		}
	})
	s.AddReceivingMiddleware(m.unknownTool, m.listed, func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" || method == "server/discover" {
				defer func() {
					go func() {
						if err := panics.Try(func() error { declare(); return nil }); err != nil {
							m.log.Error("the tools cannot be declared", "err", err)
						}
					}()
				}()
			} else {
				declare()
			}
			return next(ctx, method, req)
		}
	})
}

// handle runs a call that the SDK hands over.
func (m *Mux) handle(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var progress func(done, total int64, message string)
	if token := req.Params.GetProgressToken(); token != nil {
		progress = func(done, total int64, message string) {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(done), Total: float64(total), Message: message})
		}
	}
	return m.CallWithProgress(ctx, req.Params.Name, req.Params.Arguments, progress)
}

// listed lets ops know that a client asks for the list of tools.
func (m *Mux) listed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/list" {
			m.env.Listed()
		}
		return next(ctx, method, req)
	}
}

// unknownTool answers calls of tools that do not exist with our own code; the
// SDK would answer with a bare protocol error.
func (m *Mux) unknownTool(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/call" {
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && p != nil && !m.Has(p.Name) {
				return m.Call(ctx, p.Name, p.Arguments)
			}
		}
		return next(ctx, method, req)
	}
}

// Has reports whether there is a tool called name.
func (m *Mux) Has(name string) bool { return m.tools[name] != nil }

// Tools returns what tools/list tells, sorted by name.
func (m *Mux) Tools() []*mcp.Tool {
	var list []*mcp.Tool
	for _, name := range m.names {
		list = append(list, m.tools[name].declared())
	}
	return list
}

// CallWithProgress is [Mux.Call] for a caller who wants to be told of progress;
// where progress is nil he does not.
func (m *Mux) CallWithProgress(ctx context.Context, name string, args json.RawMessage, progress func(done, total int64, message string)) (*mcp.CallToolResult, error) {
	if progress != nil {
		p := newPacer(progress)
		defer p.end()
		ctx = registry.WithProgress(ctx, p.report)
	}
	return m.Call(ctx, name, args)
}

// Call runs one call of a tool. Failures of any kind are results with IsError;
// only a cancelled ctx is an error.
func (m *Mux) Call(ctx context.Context, name string, args json.RawMessage) (res *mcp.CallToolResult, err error) {
	select {
	case m.running <- struct{}{}:
		defer func() { <-m.running }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c := &registry.Call{Args: args}
	defer func() { // the chain recovers what ops do; this is for what comes after
		if r := recover(); r != nil {
			m.log.ErrorContext(ctx, "panic", "tool", name, "value", fmt.Sprint(r), "stack", string(debug.Stack()))
			res, err = failed(c, fmt.Errorf("panic: %v", r), false), nil
		}
	}()
	t, ok := m.tools[name]
	if !ok {
		return failed(c, fault.New(fault.UnknownTool, "there is no tool %q; the tools are %s", fault.Clip(name), strings.Join(m.names, ", ")), false), nil
	}
	c.Tool = t.Tool
	op, err := t.find(c)
	if err != nil {
		return failed(c, err, false), nil
	}
	c.Op = op.Op
	lean, err := m.lean(c)
	if err != nil {
		return failed(c, err, false), nil
	}
	a, err := op.handle(ctx, c)
	if err != nil {
		return nil, err // the chain maps errors; this is a cancelled call
	}
	if ctx.Err() != nil {
		closeTexts(a.Value)
		return nil, ctx.Err()
	}
	return m.reply(c, a, lean), nil
}

// find returns the op that the discriminator of c names.
func (t *tool) find(c *registry.Call) (*bound, error) {
	if t.Discriminator == "" {
		return t.ops[""], nil
	}
	raw := c.Arg(t.Discriminator)
	if n := len(raw); n > 2 {
		if op, ok := t.ops[string(raw[1:n-1])]; ok && raw[0] == '"' {
			return op, nil
		}
	}
	var name string
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &name) != nil {
		return nil, fault.New(fault.InvalidParameter, "%s: %s is required and must be one of %s", t.Name, t.Discriminator, quoted(t.opNames))
	}
	op, ok := t.ops[name]
	if !ok {
		return nil, fault.New(fault.UnknownOperation, "%s has no %s %q; it must be one of %s", t.Name, t.Discriminator, fault.Clip(name), quoted(t.opNames))
	}
	return op, nil
}

// lean reports whether the call wants the lean view.
func (m *Mux) lean(c *registry.Call) (bool, error) {
	if !c.Op.Lean {
		return false, nil
	}
	switch raw := c.Arg("view"); string(raw) {
	case "", "null":
		return m.LeanDefault, nil
	case `"full"`:
		return false, nil
	case `"lean"`:
		return true, nil
	}
	return false, fault.New(fault.InvalidParameter, `%s: view must be one of "full", "lean"`, c.Op.ID())
}

func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// annotations describes a tool by the most dangerous of its ops.
func annotations(ops []*registry.Op) *mcp.ToolAnnotations {
	a := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}
	var destructive, open bool
	for _, op := range ops {
		a.ReadOnlyHint = a.ReadOnlyHint && op.Effect == registry.ReadOnly
		a.IdempotentHint = a.IdempotentHint && (op.Idempotent || op.Effect == registry.ReadOnly)
		destructive = destructive || op.Effect == registry.Destructive
		open = open || op.OpenWorld
	}
	a.OpenWorldHint = &open
	if !a.ReadOnlyHint { // where it means nothing
		a.DestructiveHint = &destructive
	}
	return a
}
