package registry

import (
	"bytes"
	"io"
	"reflect"

	"github.com/invopop/jsonschema"
)

// A Text is a string result that may be too large to hold in memory. Its size
// and validity are settled before it is handed out; the bytes are produced
// when the transport writes them. Use it as *Text.
type Text struct {
	inline string
	body   Body
	token  string // stands for the body while a response is encoded
}

// A Body is where a large text comes from.
type Body interface {
	// Size is the length of the text in bytes.
	Size() int64
	// EscapedSize is the length of the text inside a JSON string (layers 1) or
	// inside a JSON string of a JSON string (2), without quotes.
	EscapedSize(layers int) int64
	// WriteTo writes the text, valid UTF-8. It is called at most twice.
	WriteTo(w io.Writer) (int64, error)
	// Close releases what the body holds. It is called once.
	Close() error
}

// TextOf returns a Text held in memory.
func TextOf(s string) *Text { return &Text{inline: s} }

// TextFrom returns a Text that body writes late.
func TextFrom(body Body) *Text { return &Text{body: body} }

// Size is the length of the text in bytes.
func (t *Text) Size() int64 {
	if t.body != nil {
		return t.body.Size()
	}
	return int64(len(t.inline))
}

// Body returns where the text comes from, nil for one held in memory.
func (t *Text) Body() Body { return t.body }

// SetToken has token encoded in place of the text; the transport puts the body in
// its place. Only the multiplexer calls it.
func (t *Text) SetToken(token string) { t.token = token }

// HasToken reports whether a token stands for the text.
func (t *Text) HasToken() bool { return t.token != "" }

// WriteTo writes the text, or the token that stands for it. Lean views use it.
func (t *Text) WriteTo(w io.Writer) (int64, error) {
	if t.body != nil && t.token == "" {
		return t.body.WriteTo(w)
	}
	n, err := io.WriteString(w, t.inline+t.token)
	return int64(n), err
}

// MarshalText returns the text, or the token that stands for it.
func (t *Text) MarshalText() ([]byte, error) {
	var b bytes.Buffer
	_, err := t.WriteTo(&b)
	return b.Bytes(), err
}

// String returns the text, for messages and tests; "" where its source fails.
func (t *Text) String() string {
	b, err := t.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}

// JSONSchema makes Text a plain string in schemas.
func (Text) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

var textType = reflect.TypeFor[Text]()

// Texts calls f for every Text with a body in v, an op's result.
func Texts(v any, f func(*Text)) {
	if v == nil || !holds(reflect.TypeOf(v), textType, nil) {
		return
	}
	walkTexts(reflect.ValueOf(v), f)
}

func walkTexts(v reflect.Value, f func(*Text)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if t, ok := v.Interface().(*Text); ok {
			if t.body != nil {
				f(t)
			}
			return
		}
		walkTexts(v.Elem(), f)
	case reflect.Interface:
		if !v.IsNil() {
			walkTexts(v.Elem(), f)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			walkTexts(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walkTexts(v.Field(i), f)
			}
		}
	}
}
