package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
)

// stall is how long a client may take for the next 64 KiB before it is taken
// for dead.
const stall = 5 * time.Minute

// push queues a message that answers no call.
func (c *conn) push(line []byte) *outgoing {
	o := &outgoing{line: line, sent: make(chan struct{})}
	c.mu.Lock()
	c.enqueue(o)
	c.mu.Unlock()
	signal(c.wake)
	return o
}

// enqueue queues a message; c.mu is held.
func (c *conn) enqueue(o *outgoing) {
	if !c.ended {
		c.queue = append(c.queue, o)
		c.unsent++
	}
}

// send writes messages until the session ends.
func (c *conn) send() error {
	for {
		select {
		case <-c.wake:
			c.flush()
		case <-c.closed:
			return nil
		}
	}
}

// flush writes what is queued, unless somebody is at it. All that has come
// meanwhile leaves together.
func (c *conn) flush() {
	c.mu.Lock()
	if c.writing {
		c.mu.Unlock()
		return
	}
	c.writing = true
	for len(c.queue) > 0 {
		batch, framed := c.queue, c.framed
		c.queue = c.spare
		c.mu.Unlock()
		for _, o := range batch {
			c.write(c.out, o.line, framed)
		}
		err := c.out.Flush()
		if err != nil {
			c.Log.Info("the client has closed its end", "err", err)
			c.Close()
		} else {
			for _, o := range batch {
				if o.sent != nil {
					close(o.sent)
				}
			}
		}
		c.mu.Lock()
		if err == nil {
			c.unsent -= len(batch)
			signal(c.settled)
			signal(c.room)
		}
		clear(batch)
		c.spare = batch[:0]
	}
	c.writing = false
	c.mu.Unlock()
}

// write writes one message. Errors of out stay with it until it is flushed.
func (c *conn) write(out *bufio.Writer, line []byte, framed bool) {
	var err error
	if framed {
		// The header tells the length, which a text that fails under way changes.
		var whole bytes.Buffer
		err = c.Bodies.Expand(&whole, line)
		fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", whole.Len(), whole.Bytes())
	} else {
		err = c.Bodies.Expand(out, line)
		out.WriteByte('\n')
	}
	if _, ok := errors.AsType[*body.Failure](err); ok {
		c.Log.Warn("a reply is incomplete", "err", err)
	}
}

// chunk is the most that is written at once.
const chunk = 64 << 10

// A patient writer writes in chunks, each under the eyes of watch.
type patient struct {
	w     io.Writer
	watch *watchdog
	wide  bool // w was widened
}

func (p *patient) Write(b []byte) (n int, err error) {
	if len(b) >= chunk && !p.wide {
		p.wide = true
		widen(p.w)
	}
	for n < len(b) && err == nil {
		var k int
		p.watch.begin()
		k, err = p.w.Write(b[n:min(n+chunk, len(b))])
		p.watch.end()
		n += k
		if err == nil && k == 0 {
			err = io.ErrShortWrite
		}
	}
	return n, err
}
