package mux

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// envelope is what the JSON-RPC message takes beside the text, generously.
const envelope = 512

// carried is the length from which a finished text travels as a body of its
// own, past the encoders.
const carried = 512

// failed is the reply of a call that failed as a whole.
func failed(c *registry.Call, err error, lean bool) *mcp.CallToolResult {
	r := &response{call: c, lean: lean}
	text, encErr := r.plain(c.Failure(err))
	if encErr != nil {
		text = []byte(`{"status":"error","error_code":"ERR_INTERNAL_SERVER_ERROR","error_message":"internal error"}`)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, IsError: true}
}

// encode returns v as compact JSON without HTML escapes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// A response is an answer on its way to bytes.
type response struct {
	m      *Mux
	call   *registry.Call
	answer registry.Answer
	lean   bool
	left   int64           // bytes that still fit; meaningless where there is no limit
	bodies []registry.Body // of the texts encoded so far
	tokens []byte          // that stand for them
	blocks []registry.Block
}

func (m *Mux) reply(c *registry.Call, a registry.Answer, lean bool) *mcp.CallToolResult {
	if !a.Failed && c.Tool.Notices {
		a.Notices = append(m.owed.collect(), a.Notices...)
	}
	r := &response{m: m, call: c, answer: a, lean: lean, left: m.MaxResponse - envelope}
	res, err := r.encode()
	if err != nil || r.answer.Failed {
		m.owed.keep(a.Notices)
	}
	if m.Bodies == nil || err != nil {
		closeTexts(a.Value)
	}
	if err != nil {
		if m.Bodies != nil {
			m.Bodies.Drop(r.tokens)
		}
		m.log.Error("response failed", "op", c.Op.ID(), "err", err)
		return failed(c, err, lean)
	}
	return res
}

// owed are the notices of answers that were successes until they turned out too
// large to send. They go with the next success.
type owed struct {
	mu      sync.Mutex
	notices []any
}

func (o *owed) keep(notices []any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notices = append(o.notices, notices...)
}

func (o *owed) collect() []any {
	o.mu.Lock()
	defer o.mu.Unlock()
	notices := o.notices
	o.notices = nil
	return notices
}

// closeTexts closes the large texts in v that are not in the store's charge.
func closeTexts(v any) {
	registry.Texts(v, func(t *registry.Text) {
		if !t.Stands() {
			t.Body().Close()
		}
	})
}

func (r *response) encode() (*mcp.CallToolResult, error) {
	r.blocks = r.answer.Blocks
	r.left -= carriage(r.blocks)
	if len(r.answer.Blocks) > 0 && r.m.MaxResponse != 0 && r.left < 0 { // no shedding of items makes room for media
		return nil, r.tooLarge(r.m.MaxResponse - r.left)
	}
	var notes []byte // the second text block
	notices := r.answer.Notices
	if r.lean {
		if all := append(notices, r.answer.Remarks...); len(all) > 0 {
			b, err := encode(all)
			if err != nil {
				return nil, err
			}
			notes, notices = b, nil
		}
	} else if len(r.answer.Remarks) > 0 {
		b, err := encode(r.answer.Remarks)
		if err != nil {
			return nil, err
		}
		notes = b
	}
	r.left -= int64(body.EscapedLen(notes, 1))

	front := []byte(nil)
	if len(notices) > 0 {
		var err error
		if front, err = encode(notices); err != nil {
			return nil, err
		}
		r.left -= int64(body.EscapedLen(front, 1))
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	if r.answer.Failed { // every item was too large: no success to put a notice before
		front, notices = nil, nil
	}
	res := &mcp.CallToolResult{IsError: r.answer.Failed}
	if r.structured() {
		if res.StructuredContent, err = r.object(text, notices); err != nil {
			return nil, err
		}
	}
	if front != nil {
		text = joinArrays(front, text)
	}
	if r.m.Bodies != nil && len(r.bodies) == 0 && len(text) > carried {
		text = []byte(r.m.Bodies.Put(memory(text)).Plain())
	}
	res.Content = append(res.Content, &mcp.TextContent{Text: string(text)})
	if notes != nil {
		res.Content = append(res.Content, &mcp.TextContent{Text: string(notes)})
	}
	for _, b := range r.blocks {
		switch b.Kind {
		case "audio":
			res.Content = append(res.Content, &mcp.AudioContent{MIMEType: b.MIME, Data: b.Data})
		default:
			res.Content = append(res.Content, &mcp.ImageContent{MIMEType: b.MIME, Data: b.Data})
		}
	}
	return res, nil
}

func (r *response) structured() bool {
	return !r.lean && (r.m.Structured || r.call.Tool.Structured)
}

// text returns the response itself: JSON, or the lean view.
func (r *response) text() ([]byte, error) {
	list := reflect.ValueOf(r.answer.Value)
	batch := list.Kind() == reflect.Slice && list.Len() > 0
	if batch {
		_, batch = list.Index(0).Addr().Interface().(registry.Shedder)
	}
	if batch {
		return r.batch(list)
	}
	r.stand(r.answer.Value)
	text, err := r.plain(r.answer.Value)
	if err != nil {
		return nil, err
	}
	if !r.fits(r.cost(text, r.bodies)) {
		return nil, r.tooLarge(int64(len(text)))
	}
	return text, nil
}

// plain encodes v in the view of the call.
func (r *response) plain(v any) ([]byte, error) {
	if leaner, ok := v.(registry.Leaner); ok && r.lean {
		var b bytes.Buffer
		if err := leaner.Lean(&b); err != nil {
			return nil, err
		}
		return []byte(strings.ToValidUTF8(b.String(), "\uFFFD")), nil
	}
	return encode(v)
}

// batch encodes the items of a list one by one. One that no longer fits sheds
// its bulk and fails; later, smaller ones still go.
func (r *response) batch(list reflect.Value) ([]byte, error) {
	var parts [][]byte
	allFailed := true
	for i := range list.Len() {
		item := list.Index(i).Addr().Interface()
		bodies := r.stand(item)
		part, err := encode(item)
		if err != nil {
			return nil, err
		}
		blocks := blocksOf(item)
		size := r.cost(part, bodies) + carriage(blocks)
		if !r.fits(size) {
			r.bodies = r.bodies[:len(r.bodies)-len(bodies)]
			if r.m.Bodies != nil {
				r.m.Bodies.Drop(part)
			} else { // what the item sheds is not found later
				closeTexts(item)
			}
			item.(registry.Shedder).Shed(r.tooLarge(size))
			if part, err = encode(item); err != nil {
				return nil, err
			}
			size, blocks = r.cost(part, nil), nil
		}
		r.left -= size
		r.blocks = append(r.blocks, blocks...)
		parts = append(parts, part)
		f, ok := item.(interface{ Failed() bool })
		allFailed = allFailed && ok && f.Failed()
	}
	r.answer.Failed = allFailed
	if r.lean {
		return r.plain(r.answer.Value)
	}
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']'), nil
}

// stand puts tokens in the place of the large texts in v and returns their
// bodies. Without a store the texts are encoded as they are.
func (r *response) stand(v any) []registry.Body {
	if r.m.Bodies == nil {
		return nil
	}
	before := len(r.bodies)
	registry.Texts(v, func(t *registry.Text) {
		token := r.m.Bodies.Put(t.Body())
		if r.lean {
			t.Stand(token.Plain())
		} else {
			t.Stand(token.Nested())
		}
		r.bodies = append(r.bodies, t.Body())
		r.tokens = append(r.tokens, token.Plain()...)
	})
	return r.bodies[before:]
}

// cost is what text with bodies takes of the response line.
func (r *response) cost(text []byte, bodies []registry.Body) int64 {
	layers := 2
	if r.lean {
		layers = 1
	}
	n := int64(body.EscapedLen(text, 1)) + 1
	for _, b := range bodies {
		n += b.EscapedSize(layers)
	}
	if r.structured() {
		n += int64(len(text))
		for _, b := range bodies {
			n += b.EscapedSize(1)
		}
	}
	return n
}

func (r *response) fits(size int64) bool {
	return r.m.MaxResponse == 0 || size <= r.left
}

// blocksOf is the media that an item of a batch carries.
func blocksOf(item any) []registry.Block {
	if c, ok := item.(interface{ Blocks() []registry.Block }); ok {
		return c.Blocks()
	}
	return nil
}

// carriage is what blocks take of the response line.
func carriage(blocks []registry.Block) (n int64) {
	for _, b := range blocks {
		n += int64(base64.StdEncoding.EncodedLen(len(b.Data))) + 100
	}
	return n
}

// tooLarge says how to ask for less, by what the op takes.
func (r *response) tooLarge(size int64) error {
	how := "ask for less"
	takes := func(name string) bool {
		_, ok := r.call.Op.Params.Properties.Get(name)
		return ok
	}
	switch {
	case takes("offset"):
		how = "read it in parts with offset and length, or start_line and end_line"
	case takes("start_line"):
		how = "read it in parts with start_line and end_line"
	case takes("max_results"):
		how = "page with max_results and cursor"
	case takes("context_lines"):
		how = "ask for fewer context_lines, or compare smaller files"
	}
	return fault.New(fault.LimitExceeded, "the response of %d bytes would exceed CONDUIT_MAX_RESPONSE_BYTES (%d); %s", size, r.m.MaxResponse, how)
}

// object is the structured form of a response: itself, or its array as results,
// with notice and remarks beside.
func (r *response) object(text []byte, notices []any) (json.RawMessage, error) {
	plain := text
	if r.m.Bodies != nil {
		plain = r.m.Bodies.OneLayer(text)
	}
	object := plain
	if len(plain) == 0 || plain[0] != '{' {
		object = append(append([]byte(`{"results":`), plain...), '}')
	}
	beside := func(key string, v any) error {
		b, err := encode(v)
		if err != nil {
			return err
		}
		sep := ","
		if string(object) == "{}" {
			sep = ""
		}
		object = append(append(append(object[:len(object)-1:len(object)-1], sep+`"`+key+`":`...), b...), '}')
		return nil
	}
	if len(notices) > 0 {
		if err := beside("notice", notices[0]); err != nil {
			return nil, err
		}
	}
	if len(r.answer.Remarks) > 0 {
		if err := beside("remarks", r.answer.Remarks); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// joinArrays puts the JSON array front before the JSON value v: into it where v
// is an array, else before it in a new one.
func joinArrays(front, v []byte) []byte {
	out := front[: len(front)-1 : len(front)-1]
	switch {
	case string(v) == "[]":
		return front
	case v[0] == '[':
		return append(append(out, ','), v[1:]...)
	}
	return append(append(append(out, ','), v...), ']')
}

// memory is a body that is at hand.
type memory []byte

func (m memory) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m)
	return int64(n), err
}

func (m memory) Close() error { return nil }
