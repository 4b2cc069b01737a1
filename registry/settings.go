package registry

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/userdir"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Setting is one environment variable that an op or the server reads. It is
// declared by the tags of a struct field:
//
//	env      the variable, then further ones, separated by commas, which count
//	         in their order where those before are not set
//	default  its value otherwise; of state and data directories the path below
//	         the user's own directory of that kind
//	doc      what it means, in whole sentences
//	oneof    values, separated by spaces and compared without case
//	min, max bounds of an integer
//	kind     of a string: path, state or data. The field then holds an absolute
//	         path; "~" is expanded, and a relative one starts from the working
//	         directory. A state or data directory whose place is not known, or
//	         that is given as NONE, is "".
//	secret   true for what no log, document or answer shows
//
// Fields are strings, bools, ints or time.Durations (given in milliseconds).
type Setting struct {
	Env, Default, Doc string
	Aliases           []string
	Kind              string // "string", "boolean", "integer", "path", "state" or "data"
	Secret            bool

	oneof    []string
	min, max string
	field    reflect.Type
	index    []int
}

// Off is the value that switches a state or data directory off, in any case.
const Off = "NONE"

// SettingsOf lists the settings declared by the tags of struct type T.
func SettingsOf[T any]() []Setting {
	var list []Setting
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("registry: settings type %s is no struct", t))
	}
	for _, f := range reflect.VisibleFields(t) {
		env := f.Tag.Get("env")
		if env == "" {
			continue
		}
		names := strings.Split(env, ",")
		s := Setting{Env: names[0], Aliases: names[1:], Default: f.Tag.Get("default"), Doc: f.Tag.Get("doc"), Secret: f.Tag.Get("secret") == "true",
			oneof: strings.Fields(f.Tag.Get("oneof")), min: f.Tag.Get("min"), max: f.Tag.Get("max"), field: f.Type, index: f.Index}
		switch kind := f.Tag.Get("kind"); {
		case f.Type.Kind() == reflect.String && (kind == "path" || kind == "state" || kind == "data"):
			s.Kind = kind
		case kind != "":
			panic(fmt.Sprintf("registry: setting %s has unknown kind %q", env, kind))
		case f.Type.Kind() == reflect.String:
			s.Kind = "string"
		case f.Type.Kind() == reflect.Bool:
			s.Kind = "boolean"
		case f.Type.Kind() == reflect.Int, f.Type.Kind() == reflect.Int64:
			s.Kind = "integer"
		default:
			panic(fmt.Sprintf("registry: setting %s has unsupported type %s", env, f.Type))
		}
		list = append(list, s)
	}
	return list
}

// Accepts words the values that s takes, or returns "".
func (s Setting) Accepts() string {
	switch {
	case len(s.oneof) > 0:
		return "one of " + strings.Join(s.oneof, ", ")
	case s.Kind == "boolean":
		return "true or false"
	case s.min != "" && s.max != "":
		return fmt.Sprintf("an integer from %s to %s", s.min, s.max)
	case s.min != "":
		return fmt.Sprintf("an integer of at least %s", s.min)
	case s.Kind == "integer":
		return "an integer"
	}
	return ""
}

// Given returns the variable that gives s its value and the text it has; both
// are "" where the default counts. A variable that is set but empty counts as
// unset.
func (s Setting) Given(lookup func(string) (string, bool)) (variable, text string) {
	for i := range len(s.Aliases) + 1 {
		name := s.Env
		if i > 0 {
			name = s.Aliases[i-1]
		}
		if text, ok := lookup(name); ok && strings.TrimSpace(text) != "" {
			return name, strings.TrimSpace(text)
		}
	}
	return "", ""
}

// Value returns the active value of s: a string, bool or int64. The error is
// ERR_CONFIG_INVALID and names the variable.
func (s Setting) Value(lookup func(string) (string, bool)) (any, error) {
	variable, text := s.Given(lookup)
	if variable == "" {
		variable, text = s.Env, s.Default
	}
	bad := func() error {
		return fault.New(fault.ConfigInvalid, "%s is %q; it must be %s", variable, fault.Clip(text), s.Accepts())
	}
	switch s.Kind {
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
		return nil, bad()
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || !within(n, s.min, s.max) {
			return nil, bad()
		}
		return n, nil
	case "path", "state", "data":
		return s.path(lookup)
	}
	if len(s.oneof) > 0 {
		i := slices.IndexFunc(s.oneof, func(o string) bool { return strings.EqualFold(o, text) })
		if i < 0 {
			return nil, bad()
		}
		return s.oneof[i], nil
	}
	return text, nil
}

// path is Value for a setting that is a path.
func (s Setting) path(lookup func(string) (string, bool)) (any, error) {
	variable, text := s.Given(lookup)
	switch {
	case variable != "" && (s.Kind == "path" || !strings.EqualFold(text, Off)):
		full, ok := userdir.Expand(text, lookup)
		if !ok {
			return nil, fault.New(fault.ConfigInvalid, "%s is %q, and the home directory is not known; write the path out", variable, fault.Clip(text))
		}
		abs, err := filepath.Abs(full)
		if err != nil {
			return nil, fault.New(fault.ConfigInvalid, "%s is %q, and the working directory is not known; write the path out", variable, fault.Clip(text))
		}
		return abs, nil
	case variable != "":
		return "", nil
	case s.Kind == "path":
		return s.Default, nil
	}
	return s.usual(lookup), nil
}

// usual is the state or data directory that s has by default, "" where the
// user's is not known.
func (s Setting) usual(lookup func(string) (string, bool)) string {
	base := userdir.State(lookup)
	if s.Kind == "data" {
		base = userdir.Data(lookup)
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, filepath.FromSlash(s.Default))
}

// Shown is the active value of s as logs and answers show it: the value itself,
// of a secret only whether it is set, and NONE for a directory that is off.
func (s Setting) Shown(lookup func(string) (string, bool)) (any, error) {
	v, err := s.Value(lookup)
	switch {
	case s.Secret && v != "":
		v = "(set)"
	case (s.Kind == "state" || s.Kind == "data") && v == "":
		v = Off
	}
	return v, err
}

func within(n int64, low, high string) bool {
	if v, err := strconv.ParseInt(low, 10, 64); err == nil && n < v {
		return false
	}
	v, err := strconv.ParseInt(high, 10, 64)
	return err != nil || n <= v
}

// LoadSettings fills a T from lookup, falling back to the tagged defaults. The
// error is ERR_CONFIG_INVALID and names the variable.
func LoadSettings[T any](lookup func(string) (string, bool)) (T, error) {
	var t T
	v := reflect.ValueOf(&t).Elem()
	for _, s := range SettingsOf[T]() {
		val, err := s.Value(lookup)
		if err != nil {
			return t, err
		}
		f := v.FieldByIndex(s.index)
		switch val := val.(type) {
		case string:
			f.SetString(val)
		case bool:
			f.SetBool(val)
		case int64:
			if f.Type() == reflect.TypeFor[time.Duration]() {
				val *= int64(time.Millisecond)
			}
			f.SetInt(val)
		}
	}
	return t, nil
}

// agrees reports whether two declarations of one variable say the same.
func (s Setting) agrees(o Setting) bool {
	return slices.Equal(s.Aliases, o.Aliases) && s.Kind == o.Kind && s.Secret == o.Secret && s.Default == o.Default && s.Doc == o.Doc && s.field == o.field && slices.Equal(s.oneof, o.oneof) && s.min == o.min && s.max == o.max
}
