// Package stdio serves MCP on a pair of byte streams: one JSON-RPC message a
// line or, where the client begins with one, framed by Content-Length headers.
//
// What is no valid message is answered here, and the session goes on. Replies
// that are ready at the same time leave in one write, large texts go past the
// encoders (package body), and when the input ends, what is in flight is still
// answered.
//
// The SDK serves every method but one: once it has opened the session, a
// tools/call that needs only the tool is answered here, with the same bytes, by
// the goroutine that has read it where nothing else is to be read.
package stdio

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
)

const (
	afterEOF    = 5 * time.Second // what is in flight gets this long once the input has ended
	afterSignal = time.Second     // and this long after Shutdown
)

// Options are what a transport needs beside its streams.
type Options struct {
	MaxRequest  int64                  // bytes of the longest message read, without the line end; a longer one is discarded and refused
	MaxResponse int64                  // bytes of the longest reply; a longer one becomes an error; 0: no limit
	Bodies      *body.Store            // the texts that tokens in replies stand for; nil: there are none
	Call        Caller                 // runs a tool as the server's handlers do; nil: the SDK answers every call
	Has         func(tool string) bool // whether Call runs the tool; of others the SDK answers the calls; needed with Call
	Server      *mcp.Implementation    // what the server was made with; needed with Call
	Log         *slog.Logger           // never nil
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
		in:        &input{r: bufio.NewReaderSize(t.in, 64<<10), m: message{max: t.MaxRequest}},
		incoming:  make(chan jsonrpc.Message),
		closed:    make(chan struct{}),
		calls:     map[jsonrpc.ID]*call{},
		room:      make(chan struct{}, 1),
		wake:      make(chan struct{}, 1),
		settled:   make(chan struct{}, 1),
	}
	c.stalled = watch(stall, func() {
		c.Log.Warn("the client does not read its replies")
		c.Close()
	})
	c.out = bufio.NewWriterSize(&patient{w: t.out, watch: c.stalled}, chunk)
	c.mu.Lock()
	c.read()
	c.mu.Unlock()
	go c.guard(c.send)
	return c, nil
}

// guard runs a loop of the session; a panic in it ends the session.
func (c *conn) guard(loop func() error) {
	if err := panics.Try(loop); err != nil {
		c.Log.Error("stdio session ends", "err", err)
		c.Close()
	}
}

// A conn is the session. A reader turns input into messages, which it answers
// itself or hands to the SDK by way of Read. Replies are queued, and written by
// the send loop or by who has the only one: so neither a silent client nor one
// that does not read its replies blocks the SDK.
type conn struct {
	*Transport
	in       *input               // the reader's
	out      *bufio.Writer        // the writer's
	incoming chan jsonrpc.Message // closed at the end of the input
	closed   chan struct{}
	once     sync.Once
	running  sync.WaitGroup // calls that are run here
	stalled  *watchdog      // over what is being written

	mu       sync.Mutex
	ended    bool // the session has
	framed   bool // replies get Content-Length headers
	reader   *reader
	calls    map[jsonrpc.ID]*call
	revision string    // that the session was opened with; empty: it is not yet
	opening  int       // requests in flight that may change the revision
	jobs     []*direct // calls that no worker has begun
	workers  int
	waiting  int           // calls that the client waits for
	held     int64         // bytes of the requests in calls
	queue    []*outgoing   // what nobody has begun to write
	spare    []*outgoing   // room for the next queue
	writing  bool          // somebody writes
	unsent   int           // messages queued or being written
	wake     chan struct{} // holds one value where the send loop must look at queue
	room     chan struct{} // holds one value where calls, held or unsent may have become less
	settled  chan struct{} // holds one value where waiting and unsent may have become 0
}

// A call is a request that has not been answered.
type call struct {
	method    string
	size      int64
	cancelled bool   // its reply is dropped
	parked    bool   // it is answered only when the session ends
	opens     string // the revision of the session that its success opens

	typed bool // its result tells its type
	ctx   context.Context
	stop  context.CancelFunc // nil: the SDK answers it
}

// An outgoing is a message to be written.
type outgoing struct {
	line []byte
	sent chan struct{} // closed once it has left; nil: nobody waits for that
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
	case <-c.stop:
		c.drain()
	case <-c.closed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.running.Wait()
	return nil, io.EOF
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
		c.mu.Lock()
		c.ended = true
		left := c.queue
		c.queue = nil
		for _, cl := range c.calls {
			if cl.stop != nil {
				cl.stop()
			}
		}
		c.mu.Unlock()
		close(c.closed)
		c.stalled.stop()
		for _, o := range left {
			c.Bodies.Drop(o.line)
		}
		// On some systems closing a stream waits for a read of it to return.
		go c.Transport.in.Close()
	})
	return nil
}

// admit notes a request in flight, which may be answered here where it is simple.
// It reports false where the id is in use.
func (c *conn) admit(id jsonrpc.ID, cl *call, simple bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] != nil {
		return false
	}
	// The reply to a subscription comes when the client cancels it or leaves.
	cl.parked = cl.method == "subscriptions/listen"
	if c.calls[id] = cl; !cl.parked {
		c.waiting++
	}
	c.held += cl.size
	if reopens(cl.method) {
		c.opening++
	}
	if simple && c.revision != "" && c.opening == 0 && !c.ended {
		cl.typed = c.revision >= stateless
		cl.ctx, cl.stop = context.WithCancel(context.Background())
		c.running.Add(1)
	}
	return true
}

// full reports whether a request of size bytes must wait until others are
// answered.
func (c *conn) full(size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)+c.unsent >= backlog || c.held > 0 && c.held+size > maxHeld
}

// inFlight reports whether id belongs to a request that is not answered yet.
func (c *conn) inFlight(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id] != nil
}

// cancel notes that the client no longer wants a reply to id. It reports
// whether the SDK need not know.
func (c *conn) cancel(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.calls[id]
	if cl == nil {
		return false
	}
	if !cl.cancelled {
		cl.cancelled = true
		if cl.stop != nil {
			cl.stop()
		}
		if !cl.parked {
			c.waiting--
			signal(c.settled)
		}
	}
	return cl.stop != nil
}

// signal sees to it that c holds a value.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
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
	c.mu.Lock()
	if cl := c.calls[reply.ID]; cl != nil && cl.opens != "" && reply.Error == nil && (c.revision == "" || reopens(cl.method)) {
		c.revision = cl.opens
	}
	c.mu.Unlock()
	o := &outgoing{line: c.encode(reply), sent: make(chan struct{})}
	if queued, _ := c.answer(reply.ID, o); !queued {
		return nil
	}
	signal(c.wake)
	return c.await(o)
}

// answer queues o, the reply to the call id, unless nobody waits for it any more.
// It reports whether it did, and whether the client waits for another reply.
func (c *conn) answer(id jsonrpc.ID, o *outgoing) (queued, more bool) {
	c.mu.Lock()
	cl := c.calls[id]
	delete(c.calls, id) // the client may use the id again as soon as it has the reply
	if cl != nil {
		c.held -= cl.size
		if reopens(cl.method) {
			c.opening--
		}
	}
	signal(c.room)
	if c.ended || cl != nil && cl.cancelled {
		c.mu.Unlock()
		c.Bodies.Drop(o.line)
		return false, false
	}
	defer c.mu.Unlock()
	if cl != nil && !cl.parked {
		c.waiting--
	}
	c.enqueue(o)
	return true, c.waiting > 0
}

// await returns once o has left. io.EOF tells the SDK that the session has
// ended, which is no failure.
func (c *conn) await(o *outgoing) error {
	select {
	case <-o.sent:
		return nil
	case <-c.closed:
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
	return c.fit(reply.ID, line)
}

// fit returns line, the reply to id, or the error in its place where it is too
// long.
func (c *conn) fit(id jsonrpc.ID, line []byte) []byte {
	if c.MaxResponse > 0 {
		if n := c.Bodies.Len(line); n > c.MaxResponse {
			c.Log.Warn("a reply is too long", "bytes", n, "limit", c.MaxResponse)
			c.Bodies.Drop(line)
			c.mu.Lock()
			cl := c.calls[id]
			c.mu.Unlock()
			return mustEncode(tooLong(id, cl, n, c.MaxResponse))
		}
	}
	return line
}
