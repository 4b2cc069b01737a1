// Package registry holds the operations that make up a conduit server.
//
// An operation ("op") is a [Desc] and a builder: [Register] reflects its
// schemas, decoder, settings and documentation from the types of the builder.
// Adding one means adding a package that calls Register from init.
package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An Effect says what an op may do to its surroundings. The zero Effect is
// invalid, so nobody can forget to choose.
type Effect uint8

const (
	_           Effect = iota
	ReadOnly           // changes nothing
	Additive           // creates, but never overwrites or removes
	Destructive        // may overwrite or remove
)

func (e Effect) String() string {
	return [...]string{"invalid", "read-only", "additive", "destructive"}[e]
}

// An Example is a call shown in the docs and run by the conformance test.
type Example struct {
	Title string
	Args  string // the op's arguments as JSON, without the discriminator
}

// A Desc describes an operation to people, models and the docs generator.
type Desc struct {
	Tool    string // MCP tool that carries the op
	Name    string // discriminator value; empty when the tool has one op
	Summary string // one sentence
	Effect  Effect

	Idempotent bool // calling again with the same arguments changes nothing more
	OpenWorld  bool // talks to hosts outside this machine
	Errors     []fault.Code
	Examples   []Example
}

// ID is the op's full name, such as read.content.
func (d Desc) ID() string {
	if d.Name == "" {
		return d.Tool
	}
	return d.Tool + "." + d.Name
}

// Func is a typed operation.
type Func[In, Out any] func(ctx context.Context, in In) (Out, error)

// An Answer is what a call yields on its way back up the chain.
type Answer struct {
	Value   any     // what the op returned
	Blocks  []Block // media that follow the text
	Notices []any   // objects to put in front of Value
	Remarks []any   // info notices beside Value, in a text block of their own
	Failed  bool    // the call, or every item of it, failed
}

// A Block is a piece of media that a result carries beside its JSON. An Out
// type with a Blocks() []Block method has some; so has an item of a batch that
// has the method, and what it carries counts as part of the item where a
// response is fitted.
type Block struct {
	Kind string // "image" or "audio"
	MIME string
	Data []byte
}

// Handler runs a call; it is what middleware wraps.
type Handler func(ctx context.Context, c *Call) (Answer, error)

// Middleware wraps a Handler with one concern.
type Middleware func(next Handler) Handler

// Chain joins mw so that the first one sees the call first.
func Chain(mw ...Middleware) Middleware {
	return func(h Handler) Handler {
		for i := len(mw) - 1; i >= 0; i-- {
			h = mw[i](h)
		}
		return h
	}
}

// A Leaner has a lean view: text for reading in place of the JSON. Out types
// that have one get the view parameter.
type Leaner interface {
	Lean(w io.Writer) error
}

// An Op is a registered operation. Its fields are not changed once made.
type Op struct {
	Desc
	Params   *jsonschema.Schema        // reflected from In
	Result   func() *jsonschema.Schema // reflected from Out, for docs
	Settings []Setting                 // reflected from Cfg
	Lean     bool                      // Out is a Leaner

	decode  *objectPlan
	foreign foreign // parameters of the tool's other ops; set by NewSet
	word    string  // the tool's discriminator; set by NewSet
	texts   bool    // Out can hold a *Text
	newIn   func() any
	build   func(*Env) (Handler, error)
}

// Bind builds the op's handler with the settings and services of env.
func (op *Op) Bind(env *Env) (Handler, error) { return op.build(env) }

// New makes an Op from a typed builder. Cfg, In and Out are reflected into the
// op's settings and schemas; the server calls build once, at start. New panics
// on types that no schema can describe, which is a mistake of the author.
func New[Cfg, In, Out any](d Desc, build func(Cfg, *Env) (Func[In, Out], error)) *Op {
	in := reflect.TypeFor[In]()
	params := paramSchema(in)
	op := &Op{
		Desc:   d,
		Params: params,
		Result: func() *jsonschema.Schema {
			return (&jsonschema.Reflector{Anonymous: true}).ReflectFromType(reflect.TypeFor[Out]())
		},
		Settings: SettingsOf[Cfg](),
		texts:    holds(reflect.TypeFor[Out](), textType, nil),
		newIn:    func() any { return new(In) },
	}
	_, op.Lean = any(*new(Out)).(Leaner)
	op.decode = planObject(d.ID(), in, params)
	op.build = func(env *Env) (Handler, error) {
		cfg, err := LoadSettings[Cfg](env.Lookup)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.ID(), err)
		}
		f, err := build(cfg, env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.ID(), err)
		}
		return func(ctx context.Context, c *Call) (Answer, error) {
			ctx, remarks := withRemarks(ctx)
			out, err := f(ctx, *c.Input.(*In))
			a := Answer{Value: out, Failed: allFailed(out), Remarks: remarks.list()}
			if b, ok := any(out).(interface{ Blocks() []Block }); ok && err == nil {
				a.Blocks = b.Blocks()
			}
			return a, err
		}, nil
	}
	return op
}

// Decode parses args into a new *In, checking everything the op's schema says
// in the same pass: unknown names, types, required, enums and ranges. Explicit
// nulls count as absent. It fails with ERR_INVALID_PARAMETER and a message that
// names the parameter and what would be right. It takes args over: large strings
// take the place of their JSON.
func (op *Op) Decode(args json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	in := op.newIn()
	d := decoding{scanner: scanner{b: args}, op: op}
	if err := d.object(op.decode, reflect.ValueOf(in).Elem()); err != nil {
		return nil, err
	}
	return in, nil
}

// paramSchema reflects a parameter type as one plain schema without references.
func paramSchema(t reflect.Type) *jsonschema.Schema {
	if recursive(t, nil) {
		// The reflector would overflow the stack, and a flat schema cannot say it anyway.
		panic(fmt.Sprintf("registry: parameter type %s contains itself", t))
	}
	r := jsonschema.Reflector{
		Anonymous:      true, // no $id
		DoNotReference: true, // no $ref or $defs
		ExpandedStruct: true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if t.Kind() == reflect.Interface { // any: {} and not the bare schema true
				return &jsonschema.Schema{Extras: map[string]any{}}
			}
			return nil
		},
	}
	s := r.ReflectFromType(t)
	s.Version = "" // no $schema
	return s
}

func recursive(t reflect.Type, seen []reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return recursive(t.Elem(), seen)
	case reflect.Struct:
		for _, s := range seen {
			if s == t {
				return true
			}
		}
		seen = append(seen[:len(seen):len(seen)], t)
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && recursive(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// holds reports whether a value of type t can hold one of type want.
func holds(t, want reflect.Type, seen []reflect.Type) bool {
	if t == want {
		return true
	}
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holds(t.Elem(), want, seen)
	case reflect.Struct:
		for _, s := range seen {
			if s == t {
				return false
			}
		}
		seen = append(seen[:len(seen):len(seen)], t)
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && holds(f.Type, want, seen) {
				return true
			}
		}
	}
	return false
}
