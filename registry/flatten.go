package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// InputSchema returns the one schema a tool publishes for all its ops: a flat
// object, the discriminator as an enum, and no combinators, because model APIs
// refuse oneOf, anyOf, allOf and if at the root. The exact schema of each op is
// enforced by [Op.Decode]. The bytes are the same from run to run.
func (s *Set) InputSchema(tool string) json.RawMessage {
	t, ops := s.tools[tool], s.Ops(tool)
	merged := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	if t.Discriminator != "" {
		disc := &jsonschema.Schema{Type: "string"}
		var lines []string
		for _, op := range ops {
			disc.Enum = append(disc.Enum, op.Name)
			lines = append(lines, op.Name+": "+op.Summary)
		}
		disc.Description = strings.Join(lines, "\n")
		merged.Properties.Set(t.Discriminator, disc)
		merged.Required = []string{t.Discriminator}
	}
	mergeInto(merged, ops, (*Op).Published)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(merged); err != nil {
		panic(err) // a schema is strings and numbers
	}
	return bytes.TrimSpace(b.Bytes())
}

// Published returns the op's own schema as documentation shows it: with the
// view parameter where the op has one, and defaults in the descriptions.
func (op *Op) Published() *jsonschema.Schema {
	p := publish(op.Params)
	if op.Lean {
		p.Properties.Set(viewName, &jsonschema.Schema{Type: "string", Enum: []any{"full", "lean"},
			Description: "lean: plain text."})
	}
	return p
}

// mergeInto adds to dst the properties of one object as several ops have
// it: same-named objects and array items merge; what some ops do not take is
// described with the names of those that do.
func mergeInto(dst *jsonschema.Schema, ops []*Op, object func(*Op) *jsonschema.Schema) {
	type use struct {
		op     *Op
		schema *jsonschema.Schema
		needed bool
	}
	var order []string
	uses := map[string][]use{}
	for _, op := range ops {
		o := object(op)
		for p := o.Properties.Oldest(); p != nil; p = p.Next() {
			if uses[p.Key] == nil {
				order = append(order, p.Key)
			}
			uses[p.Key] = append(uses[p.Key], use{op, p.Value, slices.Contains(o.Required, p.Key)})
		}
	}
	for _, key := range order {
		first := *uses[key][0].schema
		first.Minimum, first.Maximum = "", "" // some APIs refuse bounds; the decoder's errors name them
		first.MinItems, first.MaxItems, first.MinLength = nil, nil, nil
		var takers []*Op
		described := map[string][]string{} // description → ops
		var texts []string
		needed := len(uses[key]) == len(ops)
		for _, u := range uses[key] {
			loosen(&first, u.schema)
			if described[u.schema.Description] == nil {
				texts = append(texts, u.schema.Description)
			}
			described[u.schema.Description] = append(described[u.schema.Description], u.op.Name)
			takers = append(takers, u.op)
			needed = needed && u.needed
		}
		if inner(&first) != nil {
			item := *inner(&first)
			item.Properties = jsonschema.NewProperties()
			item.Required = nil
			at := func(op *Op) *jsonschema.Schema {
				i := slices.IndexFunc(uses[key], func(u use) bool { return u.op == op })
				return inner(uses[key][i].schema)
			}
			mergeInto(&item, takers, at)
			setInner(&first, &item)
		}
		var parts []string
		for _, text := range texts {
			if len(described[text]) < len(ops) {
				text = strings.TrimSpace("(" + among(described[text], ops) + ") " + text)
			}
			parts = append(parts, text)
		}
		first.Description = strings.Join(parts, " ")
		dst.Properties.Set(key, &first)
		if needed {
			dst.Required = append(dst.Required, key)
		}
	}
}

// loosen makes s accept what o does as well: the enums of both.
func loosen(s, o *jsonschema.Schema) {
	if len(s.Enum) == 0 || len(o.Enum) == 0 {
		s.Enum = nil
	}
	for _, e := range o.Enum {
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, e) {
			s.Enum = append(slices.Clip(s.Enum), e)
		}
	}
}

// among names some of ops, or where that is shorter the others.
func among(names []string, ops []*Op) string {
	var others []string
	for _, op := range ops {
		if !slices.Contains(names, op.Name) {
			others = append(others, op.Name)
		}
	}
	these, those := strings.Join(names, ", "), "not "+strings.Join(others, ", ")
	if len(those) < len(these) {
		return those
	}
	return these
}

// inner returns the object schema of s or of its array items, or nil.
func inner(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Items != nil {
		s = s.Items
	}
	if s.Properties == nil || s.Properties.Len() == 0 {
		return nil
	}
	return s
}

func setInner(s, object *jsonschema.Schema) {
	if s.Items != nil {
		s.Items = object
		return
	}
	*s = *object
}

// publish returns a deep copy of s as documentation shows it: without the
// default keyword, its value in the description instead.
func publish(s *jsonschema.Schema) *jsonschema.Schema {
	c := *s
	c.Required = slices.Clone(s.Required)
	c.Enum = slices.Clone(s.Enum)
	if s.Default != nil {
		b, _ := json.Marshal(s.Default)
		c.Description = strings.TrimSpace(fmt.Sprintf("%s Default %s.", s.Description, strings.Trim(string(b), `"`)))
		c.Default = nil
	}
	if s.Items != nil {
		c.Items = publish(s.Items)
	}
	if s.Properties != nil {
		c.Properties = jsonschema.NewProperties()
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			c.Properties.Set(p.Key, publish(p.Value))
		}
	}
	return &c
}
