package mux

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"sync"
	"unicode/utf8"

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
	text := `{"status":"error","error_code":"ERR_INTERNAL_SERVER_ERROR","error_message":"internal error"}`
	if d, err := r.plain(c.Failure(err)); err == nil {
		text = string(d.bytes())
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
}

// encode returns v as compact JSON without HTML escapes.
func encode(v any) ([]byte, error) {
	var d document
	err := d.encode(v)
	return d.bytes(), err
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
		if !t.HasToken() {
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
	if r.lean && len(r.tokens) > 0 { // the view may leave texts out
		r.m.Bodies.Prune(r.tokens, text.bytes())
	}
	if r.answer.Failed { // every item was too large: no success to put a notice before
		front, notices = nil, nil
	}
	res := &mcp.CallToolResult{IsError: r.answer.Failed}
	if r.structured() {
		if res.StructuredContent, err = r.object(text.bytes(), notices); err != nil {
			return nil, err
		}
	}
	if front != nil {
		text = joinArrays(front, text)
	}
	shown := ""
	if r.m.Bodies != nil && len(r.bodies) == 0 && text.size > carried {
		shown = r.m.Bodies.Put(text).Plain()
	} else {
		shown = string(text.bytes())
	}
	res.Content = append(res.Content, &mcp.TextContent{Text: shown})
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
func (r *response) text() (*document, error) {
	list := reflect.ValueOf(r.answer.Value)
	batch := list.Kind() == reflect.Slice && list.Len() > 0
	if batch {
		_, batch = list.Index(0).Addr().Interface().(registry.Trimmer)
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
		return nil, r.tooLarge(int64(text.size))
	}
	return text, nil
}

// plain encodes v in the view of the call.
func (r *response) plain(v any) (*document, error) {
	d := new(document)
	if leaner, ok := v.(registry.Leaner); ok && r.lean {
		var b bytes.Buffer
		if err := leaner.Lean(&b); err != nil {
			return nil, err
		}
		text := b.Bytes()
		if !utf8.Valid(text) {
			text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
		}
		return &document{[][]byte{text}, len(text)}, nil
	}
	err := d.encode(v)
	return d, err
}

// batch encodes the items of a list one by one. One that no longer fits sheds
// its bulk and fails; later, smaller ones still go.
func (r *response) batch(list reflect.Value) (*document, error) {
	all := new(document)
	all.add("[")
	allFailed := true
	for i := range list.Len() {
		item := list.Index(i).Addr().Interface()
		bodies := r.stand(item)
		if i > 0 {
			all.add(",")
		}
		begin := all.end()
		if err := all.encode(item); err != nil {
			return nil, err
		}
		blocks := blocksOf(item)
		size := r.cost(all.from(begin), bodies) + carriage(blocks)
		if !r.fits(size) {
			r.bodies = r.bodies[:len(r.bodies)-len(bodies)]
			if r.m.Bodies != nil {
				r.m.Bodies.Drop(all.from(begin).bytes())
			} else { // what the item sheds is not found later
				closeTexts(item)
			}
			item.(registry.Trimmer).Trim(r.tooLarge(size))
			all.cut(begin)
			if err := all.encode(item); err != nil {
				return nil, err
			}
			size, blocks = r.cost(all.from(begin), nil), nil
		}
		r.left -= size
		r.blocks = append(r.blocks, blocks...)
		f, ok := item.(interface{ Failed() bool })
		allFailed = allFailed && ok && f.Failed()
	}
	r.answer.Failed = allFailed
	if r.lean {
		return r.plain(r.answer.Value)
	}
	all.add("]")
	return all, nil
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
			t.SetToken(token.Plain())
		} else {
			t.SetToken(token.Nested())
		}
		r.bodies = append(r.bodies, t.Body())
		r.tokens = append(r.tokens, token.Plain()...)
	})
	return r.bodies[before:]
}

// cost is what text with bodies takes of the response line.
func (r *response) cost(text *document, bodies []registry.Body) int64 {
	if r.m.MaxResponse == 0 {
		return 0
	}
	layers := 2
	if r.lean {
		layers = 1
	}
	n := text.EscapedSize(1) + 1
	for _, b := range bodies {
		n += b.EscapedSize(layers)
	}
	if r.structured() {
		n += int64(text.size)
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
func joinArrays(front []byte, v *document) *document {
	out := new(document)
	switch {
	case v.size == 2 && v.first() == '[':
		out.Write(front)
		return out
	case v.first() == '[':
		out.pieces = [][]byte{append(front[:len(front)-1:len(front)-1], ','), v.pieces[0][1:]}
		out.pieces = append(out.pieces, v.pieces[1:]...)
		out.size = len(front) + v.size - 1
		return out
	}
	out.Write(front[:len(front)-1])
	out.add(",")
	v.WriteTo(out)
	out.add("]")
	return out
}
