package registry

import (
	"fmt"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Outline tells the arguments of c for the log, before Decode. Of what is tagged
// as content or secret, of what is no parameter of the op and of what is not of
// its type it tells the length alone:
//
//	Text string `json:"text" log:"content"` // or log:"secret"; log:"plain" says that it may be shown
//
// Other values stand as they are, long strings by their length.
func (c *Call) Outline() string {
	o := outline{scanner: scanner{b: c.Args}, call: c}
	if o.peek() == '{' {
		o.object(c.Op.decode, 0)
	} else {
		o.length()
	}
	return o.text.String()
}

const (
	outlineLongest = 200 // bytes of a value that is shown
	outlineDeepest = 4
	outlineSize    = 4096
)

type outline struct {
	scanner
	call *Call
	text strings.Builder
	cut  bool // something was left out
}

// full reports whether nothing more is to be told, and tells that once.
func (o *outline) full(depth int) bool {
	full := o.text.Len() > outlineSize || depth > outlineDeepest
	if full && !o.cut {
		o.cut = true
		o.text.WriteString("…")
	}
	return full
}

// length tells the next value by its length.
func (o *outline) length() error {
	v, err := o.skip()
	fmt.Fprintf(&o.text, "(%d bytes)", len(v))
	return err
}

func (o *outline) object(p *objectPlan, depth int) error {
	separator := "{"
	err := o.members(func(name []byte) error {
		if o.full(depth) {
			_, err := o.skip()
			return err
		}
		o.text.WriteString(separator + fault.Clip(string(name)) + ":")
		separator = " "
		f := p.fields[string(name)]
		switch {
		case depth == 0 && o.call.selects(string(name)):
			return o.plain()
		case f == nil || f.hidden():
			return o.length()
		case f.value == planArray && o.peek() == '[':
			o.text.WriteByte('[')
			err := o.elements(func(n int) error {
				if o.full(depth) {
					_, err := o.skip()
					return err
				}
				if n > 0 {
					o.text.WriteByte(' ')
				}
				return o.value(f.elem, f.object, depth)
			})
			o.text.WriteByte(']')
			return err
		}
		return o.value(f.value, f.object, depth)
	})
	if separator == "{" {
		o.text.WriteByte('{')
	}
	o.text.WriteByte('}')
	return err
}

func (o *outline) value(plan valuePlan, object *objectPlan, depth int) error {
	c := o.peek()
	switch {
	case c == '{' && plan == planObjectValue:
		return o.object(object, depth+1)
	case c == '"' && plan != planString && plan != planText && plan != planAny:
		return o.length()
	}
	return o.plain()
}

// plain tells a scalar as it is, unless it is long.
func (o *outline) plain() error {
	if c := o.peek(); c == '{' || c == '[' {
		return o.length()
	}
	v, err := o.skip()
	if len(v) > outlineLongest {
		v = fmt.Appendf(nil, "(%d bytes)", len(v))
	}
	o.text.Write(v)
	return err
}

// selects reports whether the argument called name picks the op or the view.
func (c *Call) selects(name string) bool {
	return name == c.Tool.Discriminator && name != "" || name == viewName && c.Op.Lean
}
