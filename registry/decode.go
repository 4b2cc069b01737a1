package registry

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An objectPlan is how one struct type is decoded: its fields by JSON name,
// each with the part of the schema that governs it.
type objectPlan struct {
	fields map[string]*fieldPlan
	names  []string // in the schema's order
}

type fieldPlan struct {
	name     string
	index    []int
	schema   *jsonschema.Schema
	position int // among the object's fields
	required bool
	value    valuePlan
	elem     valuePlan   // of an array
	object   *objectPlan // of a struct, or of the elements of an array of structs
}

type valuePlan uint8

const (
	planString valuePlan = iota
	planText             // string by way of encoding.TextUnmarshaler
	planBool
	planInt
	planFloat
	planArray
	planObjectValue
	planAny
)

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// planObject makes the plan for struct type t, whose schema is s.
func planObject(id string, t reflect.Type, s *jsonschema.Schema) *objectPlan {
	p := &objectPlan{fields: map[string]*fieldPlan{}}
	if s.Properties == nil {
		return p
	}
	index := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			index[name] = f
		}
	}
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		f, ok := index[pair.Key]
		if !ok {
			panic(fmt.Sprintf("registry: %s: parameter %q needs a json tag with its name", id, pair.Key))
		}
		fp := &fieldPlan{name: pair.Key, index: f.Index, schema: pair.Value, position: len(p.names),
			required: slices.Contains(s.Required, pair.Key)}
		at := id + "." + pair.Key
		if f.Type.Kind() == reflect.Slice {
			fp.value = planArray
			fp.elem, fp.object = planValue(at, f.Type.Elem(), pair.Value.Items)
		} else {
			fp.value, fp.object = planValue(at, f.Type, pair.Value)
		}
		p.fields[pair.Key] = fp
		p.names = append(p.names, pair.Key)
	}
	if len(p.names) > 64 {
		panic(fmt.Sprintf("registry: %s: more than 64 parameters", id))
	}
	return p
}

func planValue(id string, t reflect.Type, s *jsonschema.Schema) (valuePlan, *objectPlan) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return planText, nil
	}
	switch t.Kind() {
	case reflect.String:
		return planString, nil
	case reflect.Bool:
		return planBool, nil
	case reflect.Int, reflect.Int64:
		return planInt, nil
	case reflect.Float64:
		return planFloat, nil
	case reflect.Interface:
		return planAny, nil
	case reflect.Struct:
		return planObjectValue, planObject(id, t, s)
	}
	panic(fmt.Sprintf("registry: %s: parameters of type %s are not supported", id, t))
}

// A decoding is one run of Op.Decode.
type decoding struct {
	scanner
	op   *Op
	path []step // to the value that is read, outermost first
	room [4]step
}

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

// object decodes an object into struct v.
func (d *decoding) object(p *objectPlan, v reflect.Value) error {
	root := len(d.path) == 0
	if c := d.peek(); c != '{' {
		if root {
			return d.fail("the arguments must be a JSON object, not %s", d.kind(c))
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

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
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

func (d *decoding) wrong(want string, c byte) error {
	return d.fail("%s must be %s, not %s", d.at(), want, d.kind(c))
}

func (d *decoding) kind(c byte) string {
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

// viewName is the parameter that ops with a lean view have.
const viewName = "view"

// foreign holds, by shape ("recursive", "entries.recursive"), the parameters
// that a tool publishes for its other ops.
type foreign map[string]*foreignParam

type foreignParam struct {
	ops    []string // names of the ops that take it
	schema *jsonschema.Schema
}

// idle reports whether raw is what a caller who fills in every published
// parameter sends for one that does not matter: null, empty or its default.
func (p *foreignParam) idle(raw json.RawMessage) bool {
	switch string(raw) {
	case "null", `""`, "[]", "{}":
		return true
	}
	want := p.schema.Default
	if want == nil {
		switch p.schema.Type {
		case "boolean":
			want = false
		case "integer", "number":
			want = 0
		default:
			return false
		}
	}
	b, err := json.Marshal(want)
	return err == nil && string(b) == string(raw)
}
