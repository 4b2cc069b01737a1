package registry

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Call is one run of one op as it passes down the middleware chain.
type Call struct {
	Tool  Tool
	Op    *Op
	Args  json.RawMessage // as sent, the discriminator included; Decode takes them over
	Input any             // *In, set by Decode

	scanned bool
	args    []arg
	room    [8]arg // for args
}

// An arg is a member of the object of arguments, its value as it stands there.
type arg struct {
	name  []byte
	value json.RawMessage
}

// Arg returns the value of the argument called name as it stands in Args; nil
// for one that is absent or where Args is no valid object. Of duplicates the last
// one counts. All of Args is scanned once, whatever is asked for.
func (c *Call) Arg(name string) json.RawMessage {
	c.scan()
	for i := len(c.args) - 1; i >= 0; i-- {
		if string(c.args[i].name) == name {
			return c.args[i].value
		}
	}
	return nil
}

func (c *Call) scan() {
	if c.scanned {
		return
	}
	c.scanned = true
	c.args = c.room[:0]
	s := scanner{b: c.Args}
	err := s.members(func(name []byte) error {
		v, err := s.skip()
		c.args = append(c.args, arg{name, v})
		return err
	})
	if err != nil {
		c.args = nil
	}
}

// Decode sets Input from Args, which it takes over: large strings take the place
// of their JSON.
func (c *Call) Decode() (err error) {
	c.scan() // while Args can be read
	c.Input, err = c.Op.Decode(c.Args)
	return err
}

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
	for _, name := range []string{"archive_path", "path"} {
		if path := c.Arg(name); len(path) > 0 && path[0] == '"' {
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
