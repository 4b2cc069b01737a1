// Package stdio serves MCP on a pair of byte streams: one JSON-RPC message a
// line or, where the client begins with one, framed by Content-Length headers.
//
// What is no valid message is answered here, and the session goes on. Replies
// that are ready at the same time leave in one write, large texts go past the
// encoders (package body), and when the input ends, what is in flight is still
// answered.
package stdio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/crew"
)

const (
	afterEOF    = 5 * time.Second // what is in flight gets this long once the input has ended
	afterSignal = time.Second     // and this long after Shutdown
)

// Options are what a transport needs beside its streams.
type Options struct {
	MaxRequest  int64        // bytes of the longest message read, without the line end; a longer one is discarded and refused
	MaxResponse int64        // bytes of the longest reply; a longer one becomes an error; 0: no limit
	Bodies      *body.Store  // the texts that tokens in replies stand for; nil: there are none
	Log         *slog.Logger // never nil
}

// A Transport is an [mcp.Transport] for one session.
type Transport struct {
	in  io.ReadCloser
	out io.Writer
	Options
	stop     chan struct{} // closed by Shutdown
	stopOnce sync.Once
}

// New returns a transport that reads in and writes out. It writes whole
// messages to out and nothing else, and closes in when the session ends.
func New(in io.ReadCloser, out io.Writer, o Options) *Transport {
	if o.Bodies == nil {
		o.Bodies = body.NewStore()
	}
	return &Transport{in: in, out: out, Options: o, stop: make(chan struct{})}
}

// Shutdown ends the session as if the input had ended, but with one second for
// what is in flight. It returns at once.
func (t *Transport) Shutdown() {
	t.stopOnce.Do(func() { close(t.stop) })
}

// Connect starts the session. The SDK calls it, once.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) {
	c := &conn{
		Transport: t,
		incoming:  make(chan jsonrpc.Message),
		closed:    make(chan struct{}),
		calls:     map[jsonrpc.ID]*call{},
		wake:      make(chan struct{}, 1),
		settled:   make(chan struct{}, 1),
	}
	go func() {
		defer close(c.incoming)
		c.guard(c.receive)
	}()
	go c.guard(c.send)
	return c, nil
}

// guard runs a loop of the session; a panic in it ends the session.
func (c *conn) guard(loop func() error) {
	if err := crew.Safely(loop); err != nil {
		c.Log.Error("stdio session ends", "err", err)
		c.Close()
	}
}

// A conn is the session. The receive loop turns input into messages, Read hands
// them to the SDK, Write queues replies, the send loop writes them: so neither
// a silent client nor one that does not read its replies blocks the SDK.
type conn struct {
	*Transport
	incoming chan jsonrpc.Message // closed at the end of the input
	closed   chan struct{}
	once     sync.Once

	mu      sync.Mutex
	framed  bool // replies get Content-Length headers
	calls   map[jsonrpc.ID]*call
	waiting int           // calls that the client waits for
	queue   []*outgoing   // what the send loop has not taken yet
	unsent  int           // messages queued or being written
	wake    chan struct{} // holds one value where queue is not empty
	settled chan struct{} // holds one value where waiting and unsent may have become 0
}

// A call is a request that has not been answered.
type call struct {
	method    string
	cancelled bool // its reply is dropped
	parked    bool // it is answered only when the session ends
}

// An outgoing is a message to be written.
type outgoing struct {
	line []byte
	sent chan struct{} // closed once it has left
}

// SessionID is empty: a pair of streams has one session.
func (c *conn) SessionID() string { return "" }

// Read returns the next valid message. At the end of the input and after
// Shutdown it waits for replies in flight, since the SDK cancels every call as
// soon as Read fails.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, ok := <-c.incoming:
		if ok {
			return m, nil
		}
		c.drain()
		return nil, io.EOF
	case <-c.stop:
		c.drain()
		return nil, io.EOF
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// drain waits until everything in flight is answered, within limits, and ends
// the session.
func (c *conn) drain() {
	defer c.Close()
	timeout, stop := time.After(afterEOF), c.stop
	for {
		c.mu.Lock()
		done, waiting, unsent := c.waiting+c.unsent == 0, c.waiting, c.unsent
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-c.settled:
		case <-stop:
			timeout, stop = time.After(afterSignal), nil
		case <-timeout:
			c.Log.Warn("stdio session ends with calls in flight", "calls", waiting, "unsent", unsent)
			return
		case <-c.closed:
			return
		}
	}
}

// Close ends the session at once.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		// On some systems closing a stream waits for a read of it to return.
		go c.in.Close()
	})
	return nil
}

// admit notes a request in flight. It reports false where the id is in use.
func (c *conn) admit(id jsonrpc.ID, method string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] != nil {
		return false
	}
	// The reply to a subscription comes when the client cancels it or leaves.
	parked := method == "subscriptions/listen"
	c.calls[id] = &call{method: method, parked: parked}
	if !parked {
		c.waiting++
	}
	return true
}

// inFlight reports whether id belongs to a request that is not answered yet.
func (c *conn) inFlight(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id] != nil
}

// cancel notes that the client no longer wants a reply to id.
func (c *conn) cancel(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.calls[id]; cl != nil && !cl.cancelled {
		cl.cancelled = true
		if !cl.parked {
			c.waiting--
			c.settle()
		}
	}
}

// settle tells drain that waiting or unsent has changed.
func (c *conn) settle() {
	select {
	case c.settled <- struct{}{}:
	default:
	}
}

// Write sends a message and returns once it has left. The reply to a cancelled
// request is dropped, one that is too long replaced by an error.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	reply, ok := m.(*jsonrpc.Response)
	if !ok {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		return c.await(c.push(line))
	}
	line := c.encode(reply)

	c.mu.Lock()
	cl := c.calls[reply.ID]
	delete(c.calls, reply.ID) // the client may use the id again as soon as it has the reply
	if cl != nil && cl.cancelled {
		c.mu.Unlock()
		c.Bodies.Drop(line)
		return nil
	}
	if cl != nil && !cl.parked {
		c.waiting--
	}
	o := c.enqueue(line)
	c.mu.Unlock()
	return c.await(o)
}

// await returns once o has left. io.EOF tells the SDK that the session has
// ended, which is no failure.
func (c *conn) await(o *outgoing) error {
	select {
	case <-o.sent:
		return nil
	case <-c.closed:
		left, _ := c.take()
		for _, o := range left {
			c.Bodies.Drop(o.line)
		}
		return io.EOF
	}
}

// encode returns the line of a reply.
func (c *conn) encode(reply *jsonrpc.Response) []byte {
	if e := new(jsonrpc.Error); reply.Error != nil && (!errors.As(reply.Error, &e) || e.Code == 0) {
		// What the SDK leaves without a code is a request out of order, such as
		// one before initialize.
		reply = invalid(reply.ID, reply.Error.Error())
	}
	line, err := jsonrpc.EncodeMessage(reply)
	if err != nil {
		c.Log.Error("a reply cannot be encoded", "err", err)
		c.Bodies.Drop(reply.Result)
		return mustEncode(unencodable(reply.ID))
	}
	if c.MaxResponse > 0 {
		if n := c.Bodies.Len(line); n > c.MaxResponse {
			c.Log.Warn("a reply is too long", "bytes", n, "limit", c.MaxResponse)
			c.Bodies.Drop(line)
			c.mu.Lock()
			cl := c.calls[reply.ID]
			c.mu.Unlock()
			return mustEncode(tooLong(reply.ID, cl, n, c.MaxResponse))
		}
	}
	return line
}
