package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
)

const toolsCall = "tools/call"

// A Caller runs a tool as the server's own handler would. Progress is nil where
// the client asked for none. An error means that nobody waits for the result.
type Caller func(ctx context.Context, tool string, args json.RawMessage, progress func(done, total int64, message string)) (*mcp.CallToolResult, error)

// A request is a tools/call that needs nothing of the SDK but its consent.
type request struct {
	kind  string // what the SDK looks at: calls of one kind are answered alike
	tool  string
	args  json.RawMessage
	token json.RawMessage // of progress; nil: none is wanted
}

// A direct call is one that is answered without the SDK.
type direct struct {
	*request
	*call
	id jsonrpc.ID
}

// A frame is what the SDK puts around the results of calls of one kind: an
// answer of its own shows it, and those that follow are framed here.
type frame struct {
	before, after string
}

// maxKinds bounds the kinds of calls that are remembered.
const maxKinds = 64

// maxWorkers bounds the calls that run at one time beside the reader's.
const maxWorkers = 64

// sdkMeta begins the names in _meta that the SDK looks at.
const sdkMeta = "io.modelcontextprotocol/"

// parseCall returns the request with these params, or nil where it has anything
// that the SDK might refuse or use.
func parseCall(params []byte) *request {
	var r request
	var meta []byte
	var unusual bool
	whole := members(params, func(name, v []byte) {
		switch string(name) {
		case "name":
			unusual = unusual || r.tool != "" || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 || !utf8.Valid(v)
			r.tool = string(bytes.Trim(v, `"`))
		case "arguments":
			unusual = unusual || r.args != nil || v[0] != '{'
			r.args = v
		case "_meta":
			unusual = unusual || meta != nil
			meta = v
		default:
			unusual = true
		}
	})
	if !whole || unusual || r.tool == "" || len(r.tool) > maxRaw {
		return nil
	}
	r.kind = r.tool
	if meta == nil {
		return &r
	}
	whole = members(meta, func(name, v []byte) {
		switch {
		case bytes.HasPrefix(name, []byte(sdkMeta)):
			r.kind += "\n" + string(name) + " " + string(v)
		case string(name) == "progressToken":
			r.token = v
			fallthrough
		default:
			unusual = unusual || !plain(v)
		}
	})
	if !whole || unusual || len(r.kind) > maxRaw {
		return nil
	}
	if string(r.token) == "null" {
		r.token = nil
	}
	return &r
}

// plain reports whether v is a string, a literal or a number that every reader
// can hold.
func plain(v []byte) bool {
	switch v[0] {
	case '"', 't', 'f', 'n':
		return true
	case '{', '[':
		return false
	}
	return len(v) <= 20 && !bytes.ContainsAny(v, "eE")
}

// members calls f with each member of b, which is valid JSON. It reports false
// where b is no object or a name has escapes.
func members(b []byte, f func(name, v []byte)) bool {
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	for i := blanks(b, 1); b[i] == '"'; i = blanks(b, i) {
		end := skip(b, i)
		name := b[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			return false
		}
		i = blanks(b, blanks(b, end)+len(":"))
		end = skip(b, i)
		f(name, b[i:end])
		if i = blanks(b, end); b[i] == ',' {
			i++
		}
	}
	return true
}

// blanks returns where the first token at or after i begins.
func blanks(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n' {
		i++
	}
	return i
}

// skip returns where the value that begins at i ends.
func skip(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i++
			for {
				i += bytes.IndexByte(b[i:], '"') + 1
				k := i - 1
				for b[k-1] == '\\' {
					k--
				}
				if (i-1-k)%2 == 0 {
					break
				}
			}
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
			continue
		default:
			for i < len(b) && strings.IndexByte(" \t\r\n,]}", b[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// renew forgets the frames where method is one after which the SDK may make
// others; c.mu is held.
func (c *conn) renew(method string) {
	if method == "initialize" || method == "server/discover" {
		c.era++
		clear(c.frames)
	}
}

// learn remembers how the SDK frames results of a kind of calls; c.mu is held.
func (c *conn) learn(kind string, result json.RawMessage) {
	if c.frames[kind] != nil || len(c.frames) == maxKinds {
		return
	}
	var r struct {
		Meta       json.RawMessage `json:"_meta"`
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
		Type       json.RawMessage `json:"resultType"`
	}
	d := json.NewDecoder(bytes.NewReader(result))
	d.DisallowUnknownFields()
	if d.Decode(&r) != nil {
		return
	}
	f := &frame{}
	if r.Meta != nil {
		f.before = `"_meta":` + string(r.Meta) + ","
	}
	if r.Type != nil {
		f.after = `,"resultType":` + string(r.Type)
	}
	c.frames[kind] = f
}

// start runs a call: in the goroutine of the reader where nothing more has come
// to be read, else in that of a worker.
func (c *conn) start(d *direct) {
	more := c.in.r.Buffered() > 0
	c.mu.Lock()
	if more {
		c.jobs = append(c.jobs, d)
		if c.workers < maxWorkers {
			c.workers++
			go c.guard(c.work)
		}
		c.mu.Unlock()
		return
	}
	me := c.reader
	me.busy = true
	c.mu.Unlock()
	c.lasting.begin()
	c.run(d)
	c.lasting.end()
	c.mu.Lock()
	me.busy = false
	c.mu.Unlock()
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
		var progress func(done, total int64, message string)
		if d.token != nil {
			progress = c.progress(d.token)
		}
		res, err := c.Call(d.ctx, d.tool, d.args, progress)
		if err == nil {
			o.line = c.fit(d.id, encodeResult(d.id, res, d.frame))
		}
		return err
	})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			c.Log.Error("a call cannot be answered", "tool", d.tool, "err", err)
		}
		o.line = mustEncode(unencodable(d.id))
	}
	switch c.answer(d.id, o) {
	case alone:
		c.flush()
	case among:
		signal(c.wake)
	}
}

// progress returns what tells the client of progress under token.
func (c *conn) progress(token json.RawMessage) func(done, total int64, message string) {
	var t any
	if json.Unmarshal(token, &t) != nil {
		return nil
	}
	return func(done, total int64, message string) {
		line, err := jsonrpc.EncodeMessage(&jsonrpc.Request{Method: "notifications/progress", Params: unescaped(
			&mcp.ProgressNotificationParams{ProgressToken: t, Progress: float64(done), Total: float64(total), Message: message})})
		if err == nil {
			_ = c.await(c.push(line))
		}
	}
}

// encodeResult is the line that the SDK would make of res.
func encodeResult(id jsonrpc.ID, res *mcp.CallToolResult, f *frame) []byte {
	b := make([]byte, 0, 512)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	switch id := id.Raw().(type) {
	case int64:
		b = strconv.AppendInt(b, id, 10)
	case string:
		b = append(b, unescaped(id)...)
	}
	b = append(append(append(b, `,"result":{`...), f.before...), `"content":[`...)
	for i, content := range res.Content {
		if i > 0 {
			b = append(b, ',')
		}
		if text, ok := content.(*mcp.TextContent); ok && text.Meta == nil && text.Annotations == nil {
			b = append(append(append(b, `{"type":"text","text":`...), mustMarshal(text.Text)...), '}')
		} else {
			b = append(b, mustMarshal(content)...)
		}
	}
	b = append(b, ']')
	if res.StructuredContent != nil {
		b = append(append(b, `,"structuredContent":`...), mustMarshal(res.StructuredContent)...)
	}
	if res.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(append(b, f.after...), "}}"...)
}

// unescaped encodes what cannot fail to be encoded, without HTML escapes.
func unescaped(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
