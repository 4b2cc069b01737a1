package stdio

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Refuse is the server that cannot start: it answers the first request with an
// error that says why, so that the client can show it, and returns. The error
// has the JSON-RPC code -32603, the message "CODE: message" and the object why as
// its data; what is no request is answered with -32600. Notifications are passed
// over. Refuse returns without an answer at the end of in, or once ctx is done.
func Refuse(ctx context.Context, in io.Reader, out io.Writer, why fault.Object) error {
	type reply struct {
		line   []byte
		framed bool
		err    error
	}
	answered := make(chan reply, 1)
	go func() { // reading cannot be interrupted
		var r reply
		err := panics.Try(func() (err error) {
			r.line, r.framed, err = refuseFirst(in, why)
			return err
		})
		r.err = err
		answered <- r
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-answered:
		if r.err != nil {
			return r.err
		}
		if r.framed {
			_, err := fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", len(r.line), r.line)
			return err
		}
		_, err := fmt.Fprintf(out, "%s\n", r.line)
		return err
	}
}

// longestRefused is how much of the first request is kept, in bytes.
const longestRefused = 1 << 20

// refuseFirst reads up to the first message that wants an answer.
func refuseFirst(r io.Reader, why fault.Object) (line []byte, framed bool, err error) {
	in := &input{r: bufio.NewReader(r), m: message{max: longestRefused}}
	for {
		m, err := in.next()
		s := &m.scan
		if !s.blank() {
			id, idErr := parseID(&s.id)
			code := int64(jsonrpc.CodeInternalError)
			if m.size > m.max || !s.complete() || s.kind != '{' || s.flaw(idErr) != "" {
				code = jsonrpc.CodeInvalidRequest
			}
			if code == jsonrpc.CodeInvalidRequest || id.IsValid() {
				response := refusal(id, code, detail{Object: why})
				response.Error.(*jsonrpc.Error).Message = string(why.Code) + ": " + why.Message
				return mustEncode(response), in.framed, nil
			}
		}
		if err != nil {
			return nil, false, err
		}
	}
}
