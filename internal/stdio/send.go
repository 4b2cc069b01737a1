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
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enqueue(line)
}

// enqueue queues a message; c.mu is held.
func (c *conn) enqueue(line []byte) *outgoing {
	o := &outgoing{line: line, sent: make(chan struct{})}
	c.queue = append(c.queue, o)
	c.unsent++
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return o
}

// send writes messages until the session ends. All that has come meanwhile
// leaves together.
func (c *conn) send() error {
	p := &patient{w: c.out, fire: time.AfterFunc(stall, func() {
		c.Log.Warn("the client does not read its replies")
		c.Close()
	})}
	p.fire.Stop()
	defer p.fire.Stop()
	out := bufio.NewWriterSize(p, chunk)
	for {
		select {
		case <-c.wake:
		case <-c.closed:
			return nil
		}
		batch, framed := c.take()
		for _, o := range batch {
			c.write(out, o.line, framed)
		}
		if err := out.Flush(); err != nil {
			c.Log.Info("the client has closed its end", "err", err)
			c.Close()
			continue
		}
		for _, o := range batch {
			close(o.sent)
		}
		c.mu.Lock()
		c.unsent -= len(batch)
		c.settle()
		c.mu.Unlock()
	}
}

func (c *conn) take() (batch []*outgoing, framed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch, c.queue = c.queue, nil
	return batch, c.framed
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

// A patient writer writes in chunks. Where one of them takes too long, fire
// goes off.
type patient struct {
	w    io.Writer
	fire *time.Timer
}

func (p *patient) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		p.fire.Reset(stall)
		k, err = p.w.Write(b[n:min(n+chunk, len(b))])
		p.fire.Stop()
		n += k
		if err == nil && k == 0 {
			err = io.ErrShortWrite
		}
	}
	return n, err
}
