package registry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A step leads to a member of an object and, where index is not negative, to an
// element of the array it is.
type step struct {
	name  string
	index int
}

// at names the value that is read in messages ("entries[2].path"); it is empty
// at the root.
func (d *decoding) at() string { return d.spell(true) }

// shape is at without indexes, the key of foreign.
func (d *decoding) shape() string { return d.spell(false) }

func (d *decoding) spell(indexes bool) string {
	var b strings.Builder
	for i, s := range d.path {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
		if indexes && s.index >= 0 {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	return b.String()
}

func (d *decoding) fail(format string, args ...any) error {
	return fault.New(fault.InvalidParameter, "%s: %s", d.op.ID(), fmt.Sprintf(format, args...))
}

// syntax turns a scanner's error into one a client can read. The transport has
// already parsed the message, so only direct callers see it.
func (d *decoding) syntax(err error) error {
	if err == errSyntax {
		return d.fail("the arguments are not one valid JSON object (near byte %d)", d.i)
	}
	return err
}

func (d *decoding) missing(f *fieldPlan) error {
	at := join(d.at(), f.name)
	if f.value == planArray && f.schema.MinItems != nil {
		return d.emptyArray(at)
	}
	return d.fail("%s is required: %s", at, expects(f.schema))
}

// emptyArray words the missing or empty list as section 5.2 of the
// specification does for entries.
func (d *decoding) emptyArray(at string) error {
	msg := fmt.Sprintf("`%s` array is required and cannot be empty", at)
	if d.op.Name != "" && d.op.word != "" {
		msg += fmt.Sprintf(" for %s '%s'", d.op.word, d.op.Name)
	}
	return fault.New(fault.InvalidParameter, "%s.", msg)
}

func (d *decoding) unknown(p *objectPlan, name string) error {
	at := d.at()
	if fp := d.op.foreign[join(d.shape(), name)]; fp != nil || (at == "" && name != "" && (name == d.op.word || name == viewName && d.op.Lean)) {
		raw, err := d.skip()
		if err != nil || fp == nil || fp.idle(raw) {
			return err
		}
		return d.fail("%s is a parameter of %s, not of %s; leave it out here (valid: %s)",
			join(at, name), strings.Join(fp.ops, ", "), d.op.Name, d.valid(p, at))
	}
	where := ""
	if at != "" {
		where = " in " + at
	}
	return d.fail("unknown parameter %q%s; valid: %s", fault.Clip(name), where, d.valid(p, at))
}

func (d *decoding) valid(p *objectPlan, at string) string {
	names := slices.Clone(p.names)
	if at == "" && d.op.Lean {
		names = append(names, viewName)
	}
	return strings.Join(names, ", ")
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func (d *decoding) wrong(want string, c byte) error {
	return d.fail("%s must be %s, not %s", d.at(), want, kind(c))
}

// kind names the value that begins with c.
func kind(c byte) string {
	switch c {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case 0:
		return "nothing"
	}
	return "a number"
}

// expects words what a value of schema s looks like.
func expects(s *jsonschema.Schema) string {
	if len(s.Enum) > 0 {
		var vals []string
		for _, e := range s.Enum {
			vals = append(vals, fmt.Sprintf("%q", e))
		}
		return "one of " + strings.Join(vals, ", ")
	}
	switch s.Type {
	case "string":
		return `a string, such as "…"`
	case "boolean":
		return "true or false"
	case "integer", "number":
		what := map[string]string{"integer": "an integer", "number": "a number"}[s.Type]
		switch {
		case s.Minimum != "" && s.Maximum != "":
			return fmt.Sprintf("%s from %s to %s", what, s.Minimum, s.Maximum)
		case s.Minimum != "":
			return fmt.Sprintf("%s of at least %s", what, s.Minimum)
		case s.Maximum != "":
			return fmt.Sprintf("%s of at most %s", what, s.Maximum)
		}
		return what + ", such as 1"
	case "array":
		if s.Items != nil && s.Items.Type == "object" {
			return "an array of objects, such as [{…}]"
		}
		return `an array of strings, such as ["…"]`
	case "object":
		return "an object, such as {…}"
	}
	return "a value"
}
