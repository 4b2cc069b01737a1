package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Failure returns the object that tells the client of c about err: the one of
// the tool's dialect and, in conduit's own, the fields that the op's results
// have in common as well: the discriminator where the tool echoes it, and the
// path the call is about.
func (c *Call) Failure(err error) any {
	v := c.Tool.Errors.Render(err)
	object, ok := v.(fault.Object)
	if !ok {
		return v
	}
	f := failure{Object: object}
	for _, path := range Peek(c.Args, "archive_path", "path") {
		if len(path) > 0 && path[0] == '"' {
			f.Path = path
		}
	}
	if c.Tool.Echo && c.Op != nil {
		f.Action = c.Op.Name
	}
	return f
}

type failure struct {
	fault.Object
	Action string          `json:"action_performed,omitempty"`
	Path   json.RawMessage `json:"path,omitempty"`
}

// Lean is the failure in the lean view: one line.
func (f failure) Lean(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s", f.Code, f.Message)
	return err
}

// Outline tells the arguments of c without their content: member names with
// scalars and paths as they are, long strings by their length.
func (c *Call) Outline() string {
	var b strings.Builder
	outline(&b, &scanner{b: c.Args}, 0)
	return b.String()
}

const outlineLongest = 200

func outline(b *strings.Builder, s *scanner, depth int) {
	if b.Len() > 4096 || depth > 4 {
		b.WriteString("…")
		s.skip()
		return
	}
	switch s.peek() {
	case '{':
		b.WriteByte('{')
		first := true
		s.members(func(name []byte) error {
			if !first {
				b.WriteByte(' ')
			}
			first = false
			fmt.Fprintf(b, "%s:", fault.Clip(string(name)))
			if string(name) == "content" || strings.HasSuffix(string(name), "_text") {
				v, err := s.skip()
				fmt.Fprintf(b, "(%d bytes)", len(v))
				return err
			}
			outline(b, s, depth+1)
			return nil
		})
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		s.elements(func(n int) error {
			if n > 0 {
				b.WriteByte(' ')
			}
			outline(b, s, depth+1)
			return nil
		})
		b.WriteByte(']')
	default:
		v, _ := s.skip()
		if len(v) > outlineLongest {
			fmt.Fprintf(b, "(%d bytes)", len(v))
			return
		}
		b.Write(v)
	}
}
