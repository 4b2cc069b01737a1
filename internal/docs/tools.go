package docs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Toolset renders the reference of the tools and ops that set has of a toolset
// as a page of Markdown.
func Toolset(ts registry.Toolset, set *registry.Set) string {
	var b strings.Builder
	served := fmt.Sprintf("It is served where `CONDUIT_TOOLSETS` names it (`CONDUIT_TOOLSETS=%s`).", ts.Name)
	if ts.Default {
		served = "It is served by default."
	}
	fmt.Fprintf(&b, "# Toolset `%s`\n\n%s %s\n\nWritten by `make docs` from the code.\n", ts.Name, ts.Summary, served)
	for _, t := range set.Tools() {
		if t.Toolset != ts.Name {
			continue
		}
		fmt.Fprintf(&b, "\n## Tool `%s`\n\n%s\n", t.Name, t.Summary)
		ops := set.Ops(t.Name)
		if t.Discriminator != "" {
			fmt.Fprintf(&b, "\n| `%s` | What it does | Effect |\n| --- | --- | --- |\n", t.Discriminator)
			for _, op := range ops {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", op.Name, cell(op.Summary), op.Effect)
			}
		}
		for _, op := range ops {
			writeOp(&b, t, op)
		}
	}
	return b.String()
}

func writeOp(b *strings.Builder, t registry.Tool, op *registry.Op) {
	if op.Name != "" {
		fmt.Fprintf(b, "\n### `%s`\n", op.ID())
	}
	b.WriteString("\n")
	if op.Summary != t.Summary {
		b.WriteString(op.Summary + " ")
	}
	traits := []string{"Effect: " + op.Effect.String()}
	if op.Idempotent {
		traits = append(traits, "idempotent")
	}
	if op.OpenWorld {
		traits = append(traits, "reaches other hosts")
	}
	fmt.Fprintf(b, "%s.\n", strings.Join(traits, ", "))

	b.WriteString("\n| Parameter | Type | Required | Description |\n| --- | --- | --- | --- |\n")
	if t.Discriminator != "" {
		fmt.Fprintf(b, "| `%s` | string | yes | `%s` |\n", t.Discriminator, op.Name)
	}
	writeParameters(b, "", op.Published())

	r := fields{schema: op.Result()}
	object, list := r.root()
	if r.walk("", object, nil); len(r.rows) > 0 {
		what := "an object"
		if list {
			what = "an array of objects"
		}
		fmt.Fprintf(b, "\nReturns %s; which fields it has depends on what was asked for and found:\n\n| Field | Type |\n| --- | --- |\n%s",
			what, strings.Join(r.rows, ""))
	}
	if len(op.Errors) > 0 {
		var codes []string
		for _, c := range op.Errors {
			codes = append(codes, "`"+string(c)+"`")
		}
		fmt.Fprintf(b, "\nErrors: %s.\n", strings.Join(codes, ", "))
	}
	for _, e := range op.Examples {
		fmt.Fprintf(b, "\n%s:\n\n```json\n%s\n```\n", e.Title, arguments(t, op, e))
	}
}

// arguments returns an example as a client sends it, the discriminator first.
func arguments(t registry.Tool, op *registry.Op, e registry.Example) string {
	args := strings.TrimSpace(e.Args)
	if t.Discriminator == "" {
		return args
	}
	rest := strings.TrimSpace(strings.TrimPrefix(args, "{"))
	if rest != "}" {
		rest = ", " + rest
	}
	return fmt.Sprintf("{%q: %q%s", t.Discriminator, op.Name, rest)
}

func writeParameters(b *strings.Builder, prefix string, object *jsonschema.Schema) {
	for p := object.Properties.Oldest(); p != nil; p = p.Next() {
		name, s := prefix+p.Key, p.Value
		needed := "no"
		if slices.Contains(object.Required, p.Key) {
			needed = "yes"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, typeName(s), needed, cell(description(s)))
		if s.Items != nil {
			name, s = name+"[]", s.Items
		}
		if s.Properties != nil {
			writeParameters(b, name+".", s)
		}
	}
}

// description is what a schema says beyond name and type.
func description(s *jsonschema.Schema) string {
	parts := []string{s.Description}
	enum := s.Enum
	if s.Items != nil && len(enum) == 0 {
		enum = s.Items.Enum
	}
	if len(enum) > 0 {
		var values []string
		for _, v := range enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		parts = append(parts, "One of "+strings.Join(values, ", ")+".")
	}
	if s.Minimum != "" {
		parts = append(parts, fmt.Sprintf("At least %s.", s.Minimum))
	}
	if s.Maximum != "" {
		parts = append(parts, fmt.Sprintf("At most %s.", s.Maximum))
	}
	if s.MinItems != nil {
		parts = append(parts, fmt.Sprintf("At least %d.", *s.MinItems))
	}
	return strings.Join(parts, " ")
}

func typeName(s *jsonschema.Schema) string {
	switch {
	case s.Type == "array" && s.Items != nil:
		return "array of " + typeName(s.Items)
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// fields lists the fields of a result schema, whose objects are references.
type fields struct {
	schema *jsonschema.Schema
	rows   []string
}

// root returns the schema of the result's object, or of the items where it is
// a list of objects.
func (f *fields) root() (object *jsonschema.Schema, list bool) {
	s := f.follow(f.schema)
	if s.Type == "array" && s.Items != nil {
		return f.follow(s.Items), true
	}
	return s, false
}

func (f *fields) follow(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != "" {
		target, ok := f.schema.Definitions[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if !ok {
			return &jsonschema.Schema{}
		}
		s = target
	}
	return s
}

// walk adds a row for each property of object, with prefix before the names;
// above are the objects that hold it.
func (f *fields) walk(prefix string, object *jsonschema.Schema, above []*jsonschema.Schema) {
	if object.Properties == nil {
		return
	}
	above = append(slices.Clip(above), object)
	for p := object.Properties.Oldest(); p != nil; p = p.Next() {
		name, s, shape := prefix+p.Key, f.follow(p.Value), "%s"
		if s.Type == "array" && s.Items != nil {
			name, s, shape = name+"[]", f.follow(s.Items), "array of %s"
		}
		kind := typeName(s)
		again := slices.ContainsFunc(above, func(o *jsonschema.Schema) bool { return covers(o, s) })
		if again {
			kind = "object of the same fields"
		}
		f.rows = append(f.rows, fmt.Sprintf("| `%s` | %s |\n", prefix+p.Key, fmt.Sprintf(shape, kind)))
		if !again {
			f.walk(name+".", s, above)
		}
	}
}

// covers reports whether o has every field of the object s.
func covers(o, s *jsonschema.Schema) bool {
	if s.Properties == nil || s.Properties.Len() == 0 {
		return false
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if _, ok := o.Properties.Get(p.Key); !ok {
			return false
		}
	}
	return true
}
