package registry

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// An objectPlan is how one struct type is decoded: its fields by JSON name,
// each with the part of the schema that governs it.
type objectPlan struct {
	fields map[string]*fieldPlan
	names  []string // in the schema's order
	hides  bool     // a field, or one of a field's, is hidden
}

type fieldPlan struct {
	name     string
	index    []int
	schema   *jsonschema.Schema
	position int // among the object's fields
	required bool
	log      string // its tag, see [Call.Outline]
	value    valuePlan
	elem     valuePlan   // of an array
	object   *objectPlan // of a struct, or of the elements of an array of structs
}

// hidden reports whether the log tells but the length of the field.
func (f *fieldPlan) hidden() bool { return f.log == "content" || f.log == "secret" }

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
			required: slices.Contains(s.Required, pair.Key), log: f.Tag.Get("log")}
		at := id + "." + pair.Key
		if !slices.Contains([]string{"", "plain", "content", "secret"}, fp.log) {
			panic(fmt.Sprintf("registry: %s: log must be plain, content or secret, not %q", at, fp.log))
		}
		if f.Type.Kind() == reflect.Slice {
			fp.value = planArray
			fp.elem, fp.object = planValue(at, f.Type.Elem(), pair.Value.Items)
		} else {
			fp.value, fp.object = planValue(at, f.Type, pair.Value)
		}
		p.hides = p.hides || fp.hidden() || fp.object != nil && fp.object.hides
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
