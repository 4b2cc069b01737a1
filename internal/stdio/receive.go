package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// backlog is how many requests may be in flight and messages wait to be written
// before a client is made to read the answers.
const backlog = 1000

// maxHeld is how many bytes of requests may be in flight. One alone may be
// longer. Notifications are read meanwhile, up to the next request.
const maxHeld = 32 << 20

// patience is how long a call may hold up its reader before another goes on
// reading. To hand every call to a goroutine of its own takes twice as long for
// a short one: see BenchmarkShortCall.
var patience = time.Millisecond

// A reader is a goroutine that reads the input and runs what it reads. While it
// runs a call for long, another takes its place. Each has a watch of its own, so
// that one whose place was taken cannot end that over its successor.
type reader struct {
	busy  bool // it runs a call
	watch *watchdog
}

// read starts a reader in the place of the one there is; c.mu is held.
func (c *conn) read() {
	r := &reader{}
	r.watch = watch(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.reader == r && r.busy && !c.ended {
			c.read()
		}
	})
	c.reader = r
	go c.guard(func() error { return c.receive(r) })
}

// receive reads messages until the input or the session ends or another reader
// has taken the place of r.
func (c *conn) receive(r *reader) error {
	defer r.watch.stop()
	for {
		m, err := c.in.next()
		if c.in.framed {
			c.mu.Lock()
			c.framed = true
			c.mu.Unlock()
		}
		goesOn := c.accept(r, m)
		c.mu.Lock()
		replaced := c.reader != r
		c.mu.Unlock()
		if replaced {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			c.Log.Warn("reading the input failed", "err", err)
		}
		if err != nil || !goesOn {
			close(c.incoming)
			return nil
		}
	}
}

// accept handles one message. It reports false once the session ends.
func (c *conn) accept(r *reader, m *message) bool {
	s := &m.scan
	isResponse := s.method.kind == 0 && (s.result.kind != 0 || s.fault.kind != 0)
	id, idErr := parseID(&s.id)
	switch {
	case s.blank():
		return true
	case m.size > m.max:
		method, _ := s.method.text()
		c.Log.Warn("a message is too large", "bytes", m.size, "limit", m.max)
		if isResponse {
			return true
		}
		return c.refuse(tooLarge(c.unused(id), method, m.size, m.max))
	case !s.complete():
		return c.refuse(malformed())
	case s.kind == '[':
		return c.refuse(invalid(jsonrpc.ID{}, "batching is not supported; send each message on a line of its own"))
	case s.kind != '{':
		return c.refuse(invalid(jsonrpc.ID{}, "a message must be a JSON object"))
	case isResponse:
		return c.response(m, idErr)
	}
	if reason := s.flaw(idErr); reason != "" {
		return c.refuse(invalid(c.unused(id), reason))
	}
	method, _ := s.method.text()
	req := &jsonrpc.Request{ID: id, Method: method}
	if s.params.kind != 0 {
		req.Params = m.part(&s.params)
	}
	if !id.IsValid() {
		if method == "notifications/cancelled" {
			target := cancelled(req.Params)
			if !target.IsValid() {
				return true
			}
			if c.cancel(target) {
				return true
			}
		}
		return c.deliver(req)
	}
	if !c.makeRoom(m.size) {
		return false
	}
	meta := m.requestMeta()
	cl := &call{method: method, size: m.size, opens: m.opened(method, meta)}
	var q *request
	if method == toolsCall && c.Call != nil {
		q = m.toolCall(meta, c.Has)
	}
	if !c.admit(id, cl, q != nil) {
		c.Log.Warn("a request has the id of one in flight", "id", id.Raw(), "method", method)
		return c.refuse(invalid(jsonrpc.ID{}, "a request with this id is in flight; give each request an id of its own"))
	}
	if cl.stop != nil {
		c.start(r, &direct{request: q, call: cl, id: id})
		return true
	}
	if !c.deliver(req) {
		c.cancel(id)
		return false
	}
	return true
}

// makeRoom waits until a request of size bytes may be in flight. It reports
// false once the session ends.
func (c *conn) makeRoom(size int64) bool {
	for c.full(size) {
		select {
		case <-c.room:
		case <-c.stop:
		case <-c.closed:
		}
		if c.ending() {
			return false
		}
	}
	return !c.ending()
}

// ending reports whether no more input is to be read.
func (c *conn) ending() bool {
	select {
	case <-c.stop:
		return true
	case <-c.closed:
		return true
	default:
		return false
	}
}

// flaw says why a JSON object is no valid request; empty: it is one.
func (s *scanner) flaw(idErr error) string {
	version, _ := s.version.string()
	_, named := s.method.string()
	switch {
	case s.deep:
		return "the message is nested more than 1000 levels deep"
	case idErr != nil:
		return idErr.Error()
	case string(version) != "2.0":
		return `jsonrpc must be "2.0"`
	case !named:
		return "method must be a string of at most 4096 bytes"
	case s.params.kind != 0 && s.params.kind != '{' && s.params.kind != '[' && s.params.kind != 'n':
		return "params must be an object"
	}
	return ""
}

// response passes on the client's answer to a request of the server. One that
// is none is dropped: an error in return for an error could go on for ever.
func (c *conn) response(m *message, idErr error) bool {
	r, err := jsonrpc.DecodeMessage(m.text())
	if err = errors.Join(idErr, err); err != nil {
		c.Log.Warn("a response is not valid", "err", err)
		return true
	}
	return c.deliver(r)
}

// deliver hands a message to Read. It reports false once the session ends.
func (c *conn) deliver(m jsonrpc.Message) bool {
	select {
	case c.incoming <- m:
		return true
	case <-c.stop:
	case <-c.closed:
	}
	return false
}

// refuse answers a message itself. It waits for the answer to leave only where
// many others wait before it. It reports false once the session ends.
func (c *conn) refuse(r *jsonrpc.Response) bool {
	o := c.push(mustEncode(r))
	c.mu.Lock()
	full := c.unsent > backlog
	c.mu.Unlock()
	if full {
		select {
		case <-o.sent:
		case <-c.stop:
		case <-c.closed:
		}
	}
	return !c.ending()
}

// unused is id, or none where a request in flight has it: an error with its id
// would seem to answer that one.
func (c *conn) unused(id jsonrpc.ID) jsonrpc.ID {
	if c.inFlight(id) {
		return jsonrpc.ID{}
	}
	return id
}

// cancelled returns the id that a notifications/cancelled names, invalid where
// it names none.
func cancelled(params json.RawMessage) jsonrpc.ID {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil || len(p.RequestID) == 0 {
		return jsonrpc.ID{}
	}
	id, err := parseID(&member{kind: p.RequestID[0], raw: p.RequestID, end: int64(len(p.RequestID))})
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}

// A message is one JSON text of the input.
type message struct {
	scan  scanner
	max   int64
	size  int64           // bytes of the message, all counted
	kept  [][]byte        // the message, unless it is longer than max
	large strings.Builder // it is here once it is longer than reserve
}

// reserve is how long a message gets before room is made for the longest: pieces
// that are joined in the end take twice the memory, and room that nothing was
// written to takes none.
const reserve = 1 << 20

// maxReserve bounds the room that is made at once.
const maxReserve = 64 << 20

// add appends the next piece of the message.
func (m *message) add(b []byte) {
	m.scan.feed(b)
	most := m.max + int64(len("\r\n"))
	switch m.size += int64(len(b)); {
	case m.size > most:
		m.kept, m.large = nil, strings.Builder{}
	case m.size <= reserve:
		m.kept = append(m.kept, bytes.Clone(b))
	default:
		if m.large.Len() == 0 {
			m.large.Grow(int(min(most, maxReserve)))
			for _, piece := range m.kept {
				m.large.Write(piece)
			}
			m.kept = m.kept[:0]
		}
		m.large.Write(b)
	}
}

// reset prepares m for another message.
func (m *message) reset() {
	m.scan.reset()
	m.size = 0
	m.large = strings.Builder{}
	clear(m.kept)
	m.kept = m.kept[:0]
}

// text is the whole message, if it is not longer than max. Who takes over a part
// of it may change that.
func (m *message) text() []byte {
	if n := m.large.Len(); n > 0 {
		s := m.large.String()
		if m.large.Cap() > 2*n {
			s = strings.Clone(s)
		}
		m.large = strings.Builder{}
		m.kept = append(m.kept, unsafe.Slice(unsafe.StringData(s), n))
	}
	if len(m.kept) > 1 {
		m.kept = [][]byte{slices.Concat(m.kept...)}
	}
	if len(m.kept) == 0 {
		return nil
	}
	return m.kept[0]
}

// part is the value of a member of the message.
func (m *message) part(of *member) []byte { return m.text()[of.start:of.end] }

// An input is cut into messages.
type input struct {
	r      *bufio.Reader
	m      message // the one that was read last
	begun  bool    // something other than blanks was read
	framed bool    // the first line was a Content-Length header
}

// next reads one message, in memory bounded by its max. An error comes with what
// was read before it. The message is good until the next one is read.
func (in *input) next() (*message, error) {
	m, err := in.line()
	if m.scan.blank() {
		return m, err
	}
	name, value := m.header()
	if !in.begun {
		in.begun, in.framed = true, name == "content-length"
	}
	if !in.framed || name == "" {
		return m, err
	}
	length := int64(-1)
	for ; err == nil && name != ""; name, value = m.header() {
		if name == "content-length" {
			if length, err = strconv.ParseInt(value, 10, 64); err != nil || length < 0 {
				return m, nil // refused, like any line that is not JSON
			}
		}
		m, err = in.line()
	}
	if length < 0 || err != nil || !m.scan.blank() {
		return m, err
	}
	return in.frame(length)
}

// line reads up to the end of the line.
func (in *input) line() (*message, error) {
	m := &in.m
	m.reset()
	var last byte // of the piece before
	for {
		b, err := in.r.ReadSlice('\n')
		if !in.begun && m.size == 0 {
			b = bytes.TrimPrefix(b, []byte("\uFEFF"))
		}
		m.add(b)
		switch n := len(b); {
		case err == bufio.ErrBufferFull:
			last = b[n-1]
			continue
		case err == nil && (n > 1 && b[n-2] == '\r' || n == 1 && last == '\r'):
			m.size -= 2
		case err == nil:
			m.size--
		}
		return m, err
	}
}

// frame reads a message of n bytes.
func (in *input) frame(n int64) (*message, error) {
	m := &in.m
	m.reset()
	for n > 0 {
		b, err := in.r.Peek(int(min(n, int64(in.r.Size()))))
		m.add(b)
		in.r.Discard(len(b))
		if n -= int64(len(b)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// header splits a header line. The name is in lower case, empty where the line
// is something else.
func (m *message) header() (name, value string) {
	if m.scan.state != broken || m.size > 1000 {
		return "", ""
	}
	name, value, ok := strings.Cut(string(m.text()), ":")
	notName := func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }
	if name = strings.ToLower(name); !ok || name == "" || strings.ContainsFunc(name, notName) {
		return "", ""
	}
	return name, strings.TrimSpace(value)
}
