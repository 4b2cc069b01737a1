package registry

import (
	"cmp"
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A decoding is one run of Op.Decode.
type decoding struct {
	scanner
	op   *Op
	path []step // to the value that is read, outermost first
	room [4]step
}

// object decodes an object into struct v.
func (d *decoding) object(p *objectPlan, v reflect.Value) error {
	root := len(d.path) == 0
	if c := d.peek(); c != '{' {
		if root {
			return d.fail("the arguments must be a JSON object, not %s", kind(c))
		}
		return d.wrong("an object, such as {…}", c)
	}
	var seen uint64
	err := d.members(func(raw []byte) error {
		f := p.fields[string(raw)]
		if f == nil {
			return d.unknown(p, string(raw))
		}
		field := v.FieldByIndex(f.index)
		field.SetZero() // of duplicates the last one counts
		if d.null() {
			seen &^= 1 << f.position
			return nil
		}
		seen |= 1 << f.position
		return d.field(f, field)
	})
	if err != nil {
		return d.syntax(err)
	}
	for _, name := range p.names {
		f := p.fields[name]
		switch {
		case seen&(1<<f.position) != 0:
		case f.required:
			return d.missing(f)
		case f.schema.Default != nil:
			if err := d.setDefault(f, v.FieldByIndex(f.index)); err != nil {
				return err
			}
		}
	}
	if root && d.peek() != 0 {
		return d.syntax(errSyntax)
	}
	return nil
}

// setDefault fills a field that was absent.
func (d *decoding) setDefault(f *fieldPlan, v reflect.Value) error {
	var b []byte
	switch value := f.schema.Default.(type) {
	case bool:
		b = strconv.AppendBool(nil, value)
	case json.Number:
		b = []byte(value)
	default:
		var err error
		if b, err = json.Marshal(value); err != nil {
			return err
		}
	}
	outside := d.scanner
	d.scanner = scanner{b: b}
	err := d.field(f, v)
	d.scanner = outside
	return err
}

// field decodes the value of f into v.
func (d *decoding) field(f *fieldPlan, v reflect.Value) error {
	if d.path == nil {
		d.path = d.room[:0]
	}
	d.path = append(d.path, step{f.name, -1})
	defer func() { d.path = d.path[:len(d.path)-1] }()
	if f.value == planArray {
		return d.array(f, v)
	}
	return d.value(f.value, f.object, f.schema, v)
}

func (d *decoding) array(f *fieldPlan, v reflect.Value) error {
	if c := d.peek(); c != '[' {
		return d.wrong(expects(f.schema), c)
	}
	v.SetLen(0)
	last := len(d.path) - 1
	err := d.elements(func(n int) error {
		if c := d.peek(); c == 'n' && d.null() {
			return d.fail("%s[%d] is null; give %s or leave it out", d.at(), n, expects(f.schema.Items))
		}
		if n == v.Cap() {
			v.Grow(max(1, n))
		}
		v.SetLen(n + 1)
		v.Index(n).SetZero()
		d.path[last].index = n
		err := d.value(f.elem, f.object, f.schema.Items, v.Index(n))
		d.path[last].index = -1
		return err
	})
	if err != nil {
		return d.syntax(err)
	}
	if m := f.schema.MinItems; m != nil && uint64(v.Len()) < *m {
		if v.Len() == 0 {
			return d.emptyArray(d.at())
		}
		return d.fail("%s has %d elements; at least %d are needed", d.at(), v.Len(), *m)
	}
	if m := f.schema.MaxItems; m != nil && uint64(v.Len()) > *m {
		return d.fail("%s has %d elements; at most %d are accepted", d.at(), v.Len(), *m)
	}
	return nil
}

func (d *decoding) value(plan valuePlan, object *objectPlan, s *jsonschema.Schema, v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	c := d.peek()
	switch plan {
	case planString, planText:
		if c != '"' {
			return d.wrong(expects(s), c)
		}
		str, err := d.str()
		if err != nil {
			return d.syntax(err)
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(str)) {
			return d.fail("%s is %q; it must be %s", d.at(), fault.Clip(str), expects(s))
		}
		if s.MinLength != nil && uint64(len(str)) < *s.MinLength {
			return d.fail("%s must not be empty", d.at())
		}
		if plan == planText {
			return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(str))
		}
		v.SetString(str)
	case planBool:
		w, err := d.scalar(c, s)
		if err != nil {
			return err
		}
		if string(w) != "true" && string(w) != "false" {
			return d.wrong(expects(s), c)
		}
		v.SetBool(w[0] == 't')
	case planInt, planFloat:
		w, err := d.scalar(c, s)
		if err != nil {
			return err
		}
		n, err := strconv.ParseFloat(string(w), 64)
		if err != nil || !json.Valid(w) {
			return d.wrong(expects(s), c)
		}
		if err := d.inRange(n, s, w); err != nil {
			return err
		}
		if plan == planFloat {
			v.SetFloat(n)
			return nil
		}
		i, err := strconv.ParseInt(string(w), 10, 64)
		if err != nil { // 5.0 and 1e3 are integers in JSON Schema
			if n != math.Trunc(n) || math.Abs(n) >= 1<<63 {
				return d.fail("%s is %s; it must be %s", d.at(), fault.Clip(string(w)), expects(s))
			}
			i = int64(n)
		}
		v.SetInt(i)
	case planObjectValue:
		return d.object(object, v)
	case planAny:
		raw, err := d.skip()
		if err != nil {
			return d.syntax(err)
		}
		var x any
		if err := json.Unmarshal(raw, &x); err != nil {
			return d.syntax(errSyntax)
		}
		v.Set(reflect.ValueOf(&x).Elem())
	}
	return nil
}

// scalar consumes a number or literal.
func (d *decoding) scalar(c byte, s *jsonschema.Schema) ([]byte, error) {
	if c == '"' || c == '{' || c == '[' {
		return nil, d.wrong(expects(s), c)
	}
	w, err := d.word()
	if err != nil {
		return nil, d.syntax(err)
	}
	return w, nil
}

func (d *decoding) inRange(n float64, s *jsonschema.Schema, w []byte) error {
	if beyond(n, s.Minimum, -1) || beyond(n, s.Maximum, 1) {
		return d.fail("%s is %s; it must be %s", d.at(), fault.Clip(string(w)), expects(s))
	}
	return nil
}

// beyond reports whether n lies on the given side of limit, which may be empty.
func beyond(n float64, limit json.Number, side int) bool {
	if limit == "" {
		return false
	}
	l, err := limit.Float64()
	return err == nil && cmp.Compare(n, l) == side
}
