package registry

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Setting is one environment variable that an op or the server reads. It is
// declared by the tags of a struct field: env, default, doc, and where they
// apply oneof (space-separated, compared without case), min and max.
//
// Fields are strings, bools, ints or time.Durations (given in milliseconds).
type Setting struct {
	Env, Default, Doc string
	Kind              string // "string", "boolean" or "integer"

	oneof    []string
	min, max string
	field    reflect.Type
	index    []int
}

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
		s := Setting{Env: env, Default: f.Tag.Get("default"), Doc: f.Tag.Get("doc"), oneof: strings.Fields(f.Tag.Get("oneof")),
			min: f.Tag.Get("min"), max: f.Tag.Get("max"), field: f.Type, index: f.Index}
		switch f.Type.Kind() {
		case reflect.String:
			s.Kind = "string"
		case reflect.Bool:
			s.Kind = "boolean"
		case reflect.Int, reflect.Int64:
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

// Value returns the active value of s: a string, bool or int64. A variable that
// is set but empty counts as unset. The error is ERR_CONFIG_INVALID.
func (s Setting) Value(lookup func(string) (string, bool)) (any, error) {
	text, _ := lookup(s.Env)
	if text = strings.TrimSpace(text); text == "" {
		text = s.Default
	}
	bad := func() error {
		return fault.New(fault.ConfigInvalid, "%s is %q; it must be %s", s.Env, fault.Clip(text), s.Accepts())
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
	return s.Default == o.Default && s.Doc == o.Doc && s.field == o.field && slices.Equal(s.oneof, o.oneof) && s.min == o.min && s.max == o.max
}
