package registry

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Redact returns what an error of c says, for the log: of the arguments that
// [Call.Outline] does not show it tells lengths, and where there are such the
// first line stands for all, since what follows quotes the file.
func (c *Call) Redact(text string) string {
	if c.Input == nil || !c.Op.decode.hides {
		return text
	}
	text, _, cut := strings.Cut(text, "\n")
	c.Op.decode.hidden(reflect.ValueOf(c.Input).Elem(), func(value string) {
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			quoted := strconv.Quote(line)
			for _, form := range []string{line, quoted[1 : len(quoted)-1]} {
				text = without(text, form)
			}
		}
	})
	if cut {
		text += " …"
	}
	return text
}

const (
	redactShortest = 4  // bytes that tell something
	redactHead     = 24 // bytes by which a longer text is known where it was cut
)

// without returns text with the length of s in its place.
func without(text, s string) string {
	if len(s) < redactShortest {
		return text
	}
	head := s[:min(len(s), redactHead)]
	for from := 0; ; {
		i := strings.Index(text[from:], head)
		if i < 0 {
			return text
		}
		at, n := from+i, len(head)
		for n < len(s) && at+n < len(text) && text[at+n] == s[n] {
			n++
		}
		told := fmt.Sprintf("(%d bytes)", n)
		text = text[:at] + told + text[at+n:]
		from = at + len(told)
	}
}

// hidden calls f with every text in v, a struct decoded by p, that may not be
// logged.
func (p *objectPlan) hidden(v reflect.Value, f func(string)) {
	for _, name := range p.names {
		field := p.fields[name]
		value := v.FieldByIndex(field.index)
		switch {
		case field.hidden():
			texts(value, f)
		case field.object == nil || !field.object.hides:
		case field.value == planArray:
			for i := range value.Len() {
				field.object.hidden(reflect.Indirect(value.Index(i)), f)
			}
		default:
			if value = reflect.Indirect(value); value.IsValid() {
				field.object.hidden(value, f)
			}
		}
	}
}

// texts calls f with every string in v, member names included.
func texts(v reflect.Value, f func(string)) {
	switch v.Kind() {
	case reflect.String:
		f(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			texts(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), f)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			texts(key, f)
			texts(v.MapIndex(key), f)
		}
	}
}
