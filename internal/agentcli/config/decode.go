package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A decoder fills structs from a parsed file and keeps the first error.
type decoder struct {
	file string
	err  error
}

// An object is a JSON object and where it stands.
type object struct {
	members map[string]any
	at      string // JSON pointer
}

func (d *decoder) fail(at, format string, args ...any) {
	if d.err == nil {
		d.err = fault.New(fault.ConfigInvalid, "%s: %s: %s", d.file, pointer(at), fmt.Sprintf(format, args...))
	}
}

func pointer(at string) string {
	if at == "" {
		return "the whole file"
	}
	return at
}

// escape writes a name as a token of a JSON pointer (RFC 6901).
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

func (d *decoder) object(v any, at string) object {
	members, ok := v.(map[string]any)
	if !ok {
		d.fail(at, "must be an object, not %s", kind(v))
	}
	return object{members, at}
}

// fill sets the fields of the struct that target points to; members that it has
// no field for are refused by name.
func (d *decoder) fill(target any, o object) {
	d.fields(reflect.ValueOf(target).Elem(), o)
}

func (d *decoder) fields(v reflect.Value, o object) {
	byName := map[string]int{}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("json"); name != "-" {
			byName[name] = i
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		at := o.at + "/" + escape(name)
		i, known := byName[name]
		if !known {
			d.fail(at, "unknown key; valid here: %s", strings.Join(slices.Sorted(maps.Keys(byName)), ", "))
			return
		}
		d.value(v.Field(i), o.members[name], at)
	}
}

func (d *decoder) value(v reflect.Value, x any, at string) {
	wrong := func(want string) { d.fail(at, "must be %s, not %s", want, kind(x)) }
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		d.value(fresh.Elem(), x, at)
		v.Set(fresh)
	case reflect.Struct:
		d.fields(v, d.object(x, at))
	case reflect.String:
		s, ok := x.(string)
		if !ok {
			wrong("a string")
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := x.(bool)
		if !ok {
			wrong("true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, ok := x.(json.Number)
		i, err := n.Int64()
		if !ok || err != nil {
			wrong("a whole number")
		} else if i < 0 {
			d.fail(at, "must not be negative")
		}
		v.SetInt(i)
	case reflect.Float64:
		n, ok := x.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil {
			wrong("a number")
		} else if f < 0 {
			d.fail(at, "must not be negative")
		}
		v.SetFloat(f)
	case reflect.Slice:
		list, ok := x.([]any)
		if !ok {
			wrong("an array")
		}
		items := reflect.MakeSlice(v.Type(), len(list), len(list))
		for i, item := range list {
			d.value(items.Index(i), item, fmt.Sprintf("%s/%d", at, i))
		}
		v.Set(items)
	case reflect.Map:
		o := d.object(x, at)
		m := reflect.MakeMap(v.Type())
		for _, name := range slices.Sorted(maps.Keys(o.members)) {
			item := reflect.New(v.Type().Elem()).Elem()
			d.value(item, o.members[name], at+"/"+escape(name))
			m.SetMapIndex(reflect.ValueOf(name), item)
		}
		v.Set(m)
	}
}

func kind(x any) string {
	switch x := x.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "the number " + x.String()
	case []any:
		return "an array"
	}
	return "an object"
}

// provider decodes the entry of provider id. One without args adjusts what
// stands there already; one with args stands alone.
func (d *decoder) provider(id string, v any, at string, before Provider) Provider {
	o := d.object(v, at)
	if d.err != nil {
		return before
	}
	p := before
	if _, whole := o.members["args"]; whole || before.Binary == "" {
		p = Provider{}
	}
	d.fill(&p, o)
	if d.err != nil {
		return p
	}
	if p.Binary == "" {
		d.fail(at+"/binary", "required: the command of provider %s", id)
	}
	if p.Type == "" {
		p.Type = JSONCLI
	}
	if p.Type == JSONCLI {
		if p.InputMode == "" {
			d.fail(at+"/inputMode", "required: %q or %q", Stdin, Arg)
		}
		if p.Args == nil {
			d.fail(at+"/args", "required: the arguments before the prompt, [] for none")
		}
	}
	p = p.complete()
	d.oneOf(at+"/type", p.Type, JSONCLI, ACP)
	if p.Type == JSONCLI {
		d.oneOf(at+"/inputMode", p.InputMode, Stdin, Arg)
	}
	d.oneOf(at+"/outputFormat", p.OutputFormat, OutputFormats...)
	d.oneOf(at+"/permissions", p.Permissions, "edits", "all", "none")
	d.oneOf(at+"/healthCheck/authOutputMode", p.HealthCheck.AuthOutputMode, AuthText, AuthJSON, AuthJSONL)
	for _, path := range []struct{ name, value string }{{"resultPath", p.ResultPath}, {"sessionPath", p.SessionPath}, {"usagePath", p.UsagePath}} {
		if path.value != "" && path.value[0] != '/' {
			d.fail(at+"/"+path.name, "must be a JSON pointer, such as %q", "/result/text")
		}
	}
	return p
}

func (d *decoder) oneOf(at, value string, valid ...string) {
	if !slices.Contains(valid, value) {
		d.fail(at, "is %q; it must be one of %s", value, strings.Join(valid, ", "))
	}
}

func (d *decoder) checkRunner(c *Config) {
	for _, f := range []struct {
		at string
		ok bool
	}{
		{"/runner/timeoutSeconds", c.Runner.TimeoutSeconds > 0},
		{"/runner/maxSeconds", c.Runner.MaxSeconds > 0},
		{"/runner/retry/maxAttempts", c.Runner.Retry.MaxAttempts > 0},
		{"/runner/maxDepth", c.Runner.MaxDepth > 0},
	} {
		if !f.ok {
			d.fail(f.at, "must be more than 0")
		}
	}
	for _, f := range []struct{ at, dir string }{{"/audit/dir", c.Audit.Dir}, {"/logs/dir", c.Logs.Dir}} {
		if f.dir == "" {
			d.fail(f.at, "must not be empty; use enabled: false for none")
		}
	}
}

// complete fills in the defaults of absent fields.
func (p Provider) complete() Provider {
	set := func(s **string, value string) {
		if *s == nil {
			*s = &value
		}
	}
	set(&p.InputFlag, "--prompt")
	set(&p.ModelFlag, "--model")
	if p.OutputFormat == "" {
		p.OutputFormat = "auto"
	}
	if p.Permissions == "" {
		p.Permissions = "edits"
	}
	h := &p.HealthCheck
	if h.VersionArgs == nil {
		h.VersionArgs = []string{"--version"}
	}
	if h.AuthOutputMode == "" {
		h.AuthOutputMode = AuthText
	}
	if h.TimeoutMs == 0 {
		h.TimeoutMs = 15000
	}
	if h.SuccessExitCodes == nil {
		h.SuccessExitCodes = []int{0}
	}
	return p
}
