package stdio

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
)

const toolsCall = "tools/call"

// A Caller runs a tool as the server's own handler would. Progress is nil where
// the client asked for none. The result asks for no input. An error means that
// nobody waits for the result.
type Caller func(ctx context.Context, tool string, args json.RawMessage, progress func(done, total int64, message string)) (*mcp.CallToolResult, error)

// A request is a tools/call that needs nothing of the SDK.
type request struct {
	tool      string
	args      json.RawMessage // nil: there are none
	token     any             // of progress; nil: none is wanted
	stateless bool            // it carries what others left to initialize
}

// A direct call is one that is answered without the SDK.
type direct struct {
	*request
	*call
	id jsonrpc.ID
}

// maxWorkers bounds the calls that run at one time beside the reader's.
const maxWorkers = 64

// stateless is the revision from which on each request tells its own in _meta.
const stateless = "2026-07-28"

// toolCall returns the call that m holds, or nil where it has anything that the
// SDK might refuse or use.
func (m *message) toolCall(meta mcp.Meta, known func(tool string) bool) *request {
	s := &m.scan
	name, ok := s.tool.text()
	if s.extra || !ok || !known(name) || !utf8.Valid(s.tool.raw) || s.meta.kind != 0 && s.meta.kind != 'n' && meta == nil {
		return nil
	}
	r := &request{tool: name, token: meta["progressToken"]}
	switch s.arguments.kind {
	case 0:
	case '{':
		r.args = m.part(&s.arguments)
	default:
		return nil
	}
	if v := revision(meta); v != "" {
		var caps struct {
			mcp.ClientCapabilities
			Roots *struct {
				ListChanged bool `json:"listChanged"`
			} `json:"roots"`
		}
		var client mcp.Implementation
		if r.stateless = true; !slices.Contains(mcp.SupportedProtocolVersions(), v) || !decodes(meta, mcp.MetaKeyClientCapabilities, &caps) {
			return nil
		}
		if _, named := meta[mcp.MetaKeyClientInfo]; named && !decodes(meta, mcp.MetaKeyClientInfo, &client) {
			return nil
		}
	}
	return r
}

// decodes reports whether meta has a value called name that v can hold.
func decodes(meta mcp.Meta, name string, v any) bool {
	b, err := json.Marshal(meta[name])
	return err == nil && meta[name] != nil && json.Unmarshal(b, v) == nil
}

// requestMeta is what m holds as _meta, nil where that is no object.
func (m *message) requestMeta() mcp.Meta {
	var meta mcp.Meta
	if m.scan.meta.kind != '{' || json.Unmarshal(m.part(&m.scan.meta), &meta) != nil {
		return nil
	}
	return meta
}

// revision is the one that a request with this _meta tells, empty where it has
// that of its session.
func revision(meta mcp.Meta) string {
	if v, _ := meta[mcp.MetaKeyProtocolVersion].(string); v >= stateless {
		return v
	}
	return ""
}

// opened is the revision of the session that a request opens by its success,
// empty where it opens none.
func (m *message) opened(method string, meta mcp.Meta) string {
	if method != "initialize" {
		return revision(meta)
	}
	var params map[string]any
	if json.Unmarshal(m.part(&m.scan.params), &params) != nil {
		return ""
	}
	v, _ := params["protocolVersion"].(string)
	return cmp.Or(v, "0") // older than any
}

// reopens reports whether a session that is open can change its revision with a
// request of this method.
func reopens(method string) bool { return method == "initialize" || method == "server/discover" }

// encodeResult is what the SDK sends as the result of a call: in a session of
// the stateless revision (typed) it says that it is complete, and in reply to a
// stateless request whose server it is from (nil: to another).
func encodeResult(res *mcp.CallToolResult, typed bool, server *mcp.Implementation) ([]byte, error) {
	r := struct {
		Meta       mcp.Meta      `json:"_meta,omitempty"`
		Content    []mcp.Content `json:"content"`
		Structured any           `json:"structuredContent,omitempty"`
		IsError    bool          `json:"isError,omitempty"`
		Type       string        `json:"resultType,omitempty"`
	}{Meta: res.Meta, Content: res.Content, Structured: res.StructuredContent, IsError: res.IsError}
	if r.Content == nil {
		r.Content = []mcp.Content{} // and not null
	}
	if typed {
		r.Type = "complete"
	}
	if server != nil && res.Meta[mcp.MetaKeyServerInfo] == nil {
		r.Meta = mcp.Meta{mcp.MetaKeyServerInfo: server}
		maps.Copy(r.Meta, res.Meta)
	}
	return json.Marshal(r)
}

// start runs a call: in the goroutine of the reader where nothing more has come
// to be read, else in that of a worker.
func (c *conn) start(r *reader, d *direct) {
	if patience <= 0 || c.in.r.Buffered() > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.jobs = append(c.jobs, d)
		if c.workers < maxWorkers {
			c.workers++
			go c.guard(c.work)
		}
		return
	}
	c.setBusy(r, true)
	r.watch.begin()
	c.run(d)
	r.watch.end()
	c.setBusy(r, false)
}

func (c *conn) setBusy(r *reader, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.busy = busy
}

// work runs calls until none waits. One goroutine for many of them spares the
// growth of a stack for each.
func (c *conn) work() error {
	for {
		c.mu.Lock()
		if len(c.jobs) == 0 {
			c.jobs = nil
			c.workers--
			c.mu.Unlock()
			return nil
		}
		d := c.jobs[0]
		c.jobs[0] = nil
		c.jobs = c.jobs[1:]
		c.mu.Unlock()
		c.run(d)
	}
}

// run answers a call.
func (c *conn) run(d *direct) {
	o := &outgoing{}
	err := panics.Try(func() error {
		defer c.running.Done()
		defer d.stop()
		if err := d.ctx.Err(); err != nil {
			return err
		}
		res, err := c.Call(d.ctx, d.tool, d.args, c.progress(d.token))
		if err == nil {
			o.line, err = c.line(d, res)
		}
		return err
	})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			c.Log.Error("a call cannot be answered", "tool", d.tool, "err", err)
		}
		o.line = mustEncode(unencodable(d.id))
	}
	switch queued, more := c.answer(d.id, o); {
	case more:
		signal(c.wake) // the replies may leave together
	case queued:
		c.flush()
	}
}

// line is the reply to d.
func (c *conn) line(d *direct, res *mcp.CallToolResult) ([]byte, error) {
	var server *mcp.Implementation
	if d.stateless {
		server = c.Server
	}
	b, err := encodeResult(res, d.typed, server)
	if err != nil {
		return nil, err
	}
	return c.encode(&jsonrpc.Response{ID: d.id, Result: b}), nil
}

// progress returns what tells the client of progress under token, nil where it
// has none.
func (c *conn) progress(token any) func(done, total int64, message string) {
	if token == nil {
		return nil
	}
	return func(done, total int64, message string) {
		var params bytes.Buffer
		e := json.NewEncoder(&params)
		e.SetEscapeHTML(false)
		err := e.Encode(&mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(done), Total: float64(total), Message: message})
		if err != nil {
			return
		}
		if line, err := jsonrpc.EncodeMessage(&jsonrpc.Request{Method: "notifications/progress", Params: params.Bytes()}); err == nil {
			_ = c.await(c.push(line))
		}
	}
}
