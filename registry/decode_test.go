package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	google "github.com/google/jsonschema-go/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

type none struct{}

type inner struct {
	Path registry.Path `json:"path"`
	Deep bool          `json:"deep,omitempty"`
	Mode string        `json:"mode,omitempty" jsonschema:"enum=a,enum=b,default=b"`
}

type wide struct {
	Names []string          `json:"names" jsonschema:"minItems=1,maxItems=3"`
	Kind  string            `json:"kind,omitempty" jsonschema:"enum=x,enum=y"`
	Count int64             `json:"count,omitempty" jsonschema:"minimum=-1,maximum=10,default=4"`
	Ratio float64           `json:"ratio,omitempty" jsonschema:"minimum=0"`
	Flag  *bool             `json:"flag,omitempty"`
	On    bool              `json:"on,omitempty" jsonschema:"default=true"`
	Where registry.Source   `json:"where,omitempty"`
	Items []inner           `json:"items,omitempty"`
	One   *inner            `json:"one,omitempty"`
	Value any               `json:"value,omitempty"`
	Word  string            `json:"word,omitempty" jsonschema:"minLength=1"`
	Paths []registry.Source `json:"paths,omitempty"`
}

func op[In any](tool, name string) *registry.Op {
	return registry.New(registry.Desc{Tool: tool, Name: name, Summary: "Do " + name + ".", Effect: registry.ReadOnly},
		func(none, *registry.Env) (registry.Func[In, string], error) {
			return func(context.Context, In) (string, error) { return "", nil }, nil
		})
}

type otherItem struct {
	Path  registry.Path `json:"path"`
	Force bool          `json:"force,omitempty"`
	Text  string        `json:"text,omitempty"`
}

type other struct {
	Items []otherItem `json:"items"`
	Depth int         `json:"depth,omitempty" jsonschema:"default=3"`
	Loud  bool        `json:"loud,omitempty" jsonschema:"default=true"`
	Label string      `json:"label,omitempty"`
}

func wideOp(t testing.TB) *registry.Op {
	t.Helper()
	set, err := registry.NewSet([]registry.Tool{{Name: "t", Discriminator: "operation"}},
		[]*registry.Op{op[wide]("t", "wide"), op[other]("t", "other")})
	if err != nil {
		t.Fatal(err)
	}
	return set.Ops("t")[1]
}

func TestDecodeRefuses(t *testing.T) {
	o := wideOp(t)
	const valid = `names, kind, count, ratio, flag, on, where, items, one, value, word, paths`
	for _, c := range []struct{ args, want string }{
		{`{}`, "`names` array is required and cannot be empty for operation 'wide'."},
		{``, "`names` array is required"},
		{`{"names":null}`, "`names` array is required"},
		{`{"names":["a"],"names":null}`, "`names` array is required"},
		{`{"names":[]}`, "`names` array is required and cannot be empty for operation 'wide'."},
		{`{"names":["a","b","c","d"]}`, "t.wide: names has 4 elements; at most 3 are accepted"},
		{`{"names":"a"}`, `t.wide: names must be an array of strings, such as ["…"], not a string`},
		{`{"names":[1]}`, `names[0] must be a string, such as "…", not a number`},
		{`{"names":["a",null]}`, `names[1] is null`},
		{`{"names":["a"],"nmes":1}`, `unknown parameter "nmes"; valid: ` + valid},
		{`{"names":["a"],"NAMES":["b"]}`, `unknown parameter "NAMES"`},
		{`{"names":["a"],"` + strings.Repeat("é", 100) + `":1}`, strings.Repeat("é", 40) + "…"},
		{`{"names":["a"],"kind":"z"}`, `kind is "z"; it must be one of "x", "y"`},
		{`{"names":["a"],"kind":"X"}`, `kind is "X"`},
		{`{"names":["a"],"kind":true}`, `kind must be one of "x", "y", not a boolean`},
		{`{"names":["a"],"count":11}`, `count is 11; it must be an integer from -1 to 10`},
		{`{"names":["a"],"count":-2}`, `count is -2`},
		{`{"names":["a"],"count":1.5}`, `count is 1.5; it must be an integer from -1 to 10`},
		{`{"names":["a"],"count":"4"}`, `count must be an integer from -1 to 10, not a string`},
		{`{"names":["a"],"count":01}`, `count must be`},
		{`{"names":["a"],"count":+1}`, `count must be`},
		{`{"names":["a"],"count":1e400}`, `count must be`},
		{`{"names":["a"],"count":NaN}`, `count must be`},
		{`{"names":["a"],"ratio":-0.5}`, `ratio is -0.5; it must be a number of at least 0`},
		{`{"names":["a"],"on":"true"}`, `on must be true or false, not a string`},
		{`{"names":["a"],"on":1}`, `on must be true or false, not a number`},
		{`{"names":["a"],"where":{}}`, `where must be a string, such as "…", not an object`},
		{`{"names":["a"],"word":""}`, `word must not be empty`},
		{`{"names":["a"],"items":{}}`, `items must be an array of objects, such as [{…}], not an object`},
		{`{"names":["a"],"items":[{"path":"p"},"q"]}`, `items[1] must be an object, such as {…}, not a string`},
		{`{"names":["a"],"items":[{"path":"p"},{}]}`, `items[1].path is required: a string, such as "…"`},
		{`{"names":["a"],"items":[{"path":"p","mode":"c"}]}`, `items[0].mode is "c"; it must be one of "a", "b"`},
		{`{"names":["a"],"items":[{"path":"p","pth":1}]}`, `unknown parameter "pth" in items[0]; valid: path, deep, mode`},
		{`{"names":["a"],"one":{"path":7}}`, `one.path must be a string, such as "…", not a number`},
		{`{"names":["a"],"one":[]}`, `one must be an object, such as {…}, not an array`},
		{`{"names":["a"],"depth":4}`, `depth is a parameter of other, not of wide; leave it out here (valid: ` + valid + `)`},
		{`{"names":["a"],"loud":false}`, `loud is a parameter of other`},
		{`{"names":["a"],"items":[{"path":"p","force":true}]}`, `items[0].force is a parameter of other, not of wide; leave it out here (valid: path, deep, mode)`},
		{`{"names":["a"],"force":false}`, `unknown parameter "force"`},
		{`{"names":["a"],"":1}`, `unknown parameter ""`},
		{`[]`, `the arguments must be a JSON object, not an array`},
		{`"x"`, `the arguments must be a JSON object, not a string`},
		{`null`, `the arguments must be a JSON object, not null`},
		{`{"names":["a"]} {}`, `not one valid JSON object`},
		{`{"names":["a"]`, `not one valid JSON object`},
		{`{"names":["a"],}`, `not one valid JSON object`},
		{`{"names":["a`, `not one valid JSON object`},
		{`{"names":["\x"]}`, `not one valid JSON object`},
		{`{"names":["\u12"]}`, `not one valid JSON object`},
		{`{"names":["a"],"value":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, `not one valid JSON object`},
	} {
		in, err := o.Decode(json.RawMessage(c.args))
		if got, message := fault.Of(err); err == nil || got != fault.InvalidParameter || !strings.Contains(message, c.want) {
			t.Errorf("%.80s\n got %+v, %v\nwant %s", c.args, in, err, c.want)
		}
	}
}

func TestDecodeAccepts(t *testing.T) {
	o := wideOp(t)
	yes := true
	base := func(change func(*wide)) *wide {
		w := &wide{Names: []string{"a"}, Count: 4, On: true}
		change(w)
		return w
	}
	path := func(s string) (p registry.Path) { _ = p.UnmarshalText([]byte(s)); return p }
	source := func(s string) (p registry.Source) { _ = p.UnmarshalText([]byte(s)); return p }
	named := func(s string) *wide { return base(func(w *wide) { w.Names = []string{s} }) }
	for _, c := range []struct {
		args string
		want *wide
	}{
		{`{"names":["a"]}`, base(func(*wide) {})},
		{" {\n\t\"names\" : [ \"a\" ] }\r\n", base(func(*wide) {})},
		{`{"names":["a"],"kind":null,"count":null,"on":null,"items":null,"one":null,"value":null,"flag":null}`, base(func(*wide) {})},
		{`{"names":["a"],"count":0,"on":false,"flag":true}`, base(func(w *wide) { w.Count, w.On, w.Flag = 0, false, &yes })},
		{`{"names":["a"],"count":5.0,"ratio":1e-3}`, base(func(w *wide) { w.Count, w.Ratio = 5, 0.001 })},
		{`{"names":["a"],"count":1e1}`, base(func(w *wide) { w.Count = 10 })},
		{`{"names":["a"],"items":[{"path":"p"},{"path":"q","mode":"a","deep":true}]}`, base(func(w *wide) {
			w.Items = []inner{{Path: path("p"), Mode: "b"}, {Path: path("q"), Mode: "a", Deep: true}}
		})},
		{`{"names":["a"],"one":{"path":"p"}}`, base(func(w *wide) { w.One = &inner{Path: path("p"), Mode: "b"} })},
		{`{"names":["a"],"where":"~/x","paths":["http://h/"]}`, base(func(w *wide) {
			w.Where, w.Paths = source("~/x"), []registry.Source{source("http://h/")}
		})},
		{`{"names":["a"],"value":{"n":[1,null]}}`, base(func(w *wide) { w.Value = map[string]any{"n": []any{1.0, nil}} })},
		{`{"operation":"wide","names":["a"]}`, base(func(*wide) {})},
		{`{"n\u0061mes":["a"]}`, base(func(*wide) {})},
		// of duplicates the last one counts
		{`{"names":["b","c"],"names":["a"],"kind":"x","kind":"y"}`, base(func(w *wide) { w.Kind = "y" })},
		{`{"names":["a"],"kind":"x","count":7,"kind":null,"count":null}`, base(func(*wide) {})},
		{`{"names":["a"],"one":{"path":"q","deep":true},"one":{"path":"p"}}`, base(func(w *wide) { w.One = &inner{Path: path("p"), Mode: "b"} })},
		// other operations' parameters, idle
		{`{"names":["a"],"depth":3,"loud":true,"label":""}`, base(func(*wide) {})},
		{`{"names":["a"],"depth":null,"loud":null,"label":null}`, base(func(*wide) {})},
		{`{"names":["a"],"items":[{"path":"p","force":false,"text":""},{"path":"q","force":null}]}`, base(func(w *wide) {
			w.Items = []inner{{Path: path("p"), Mode: "b"}, {Path: path("q"), Mode: "b"}}
		})},
		// strings
		{`{"names":["\"\\\/\b\f\n\r\t"]}`, named("\"\\/\b\f\n\r\t")},
		{`{"names":["\u00e9\uD83D\uDE00"]}`, named("é😀")},
		{`{"names":["\ud83d"]}`, named("\uFFFD")},
		{`{"names":["\ud83dx\ude00"]}`, named("\uFFFDx\uFFFD")},
		{`{"names":["\ud83d\ud83d\ude00"]}`, named("\uFFFD😀")},
		{`{"names":["\u0000"]}`, named("\x00")},
		{"{\"names\":[\"a\xffb\"]}", named("a\uFFFDb")},
		{"{\"names\":[\"a\xff\\n\"]}", named("a\uFFFD\n")},
		{`{"names":["ends in a backslash\\"]}`, named(`ends in a backslash\`)},
	} {
		got, err := o.Decode(json.RawMessage(c.args))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", c.args, got, err, c.want)
		}
	}
}

type leanOut struct{}

func (leanOut) Lean(io.Writer) error { return nil }

// An op without a lean view stands beside one that has it in a published
// schema, so a caller may fill in the default view there.
func TestForeignView(t *testing.T) {
	lean := registry.New(registry.Desc{Tool: "t", Name: "lean", Summary: "Lean.", Effect: registry.ReadOnly},
		func(none, *registry.Env) (registry.Func[none, leanOut], error) { return nil, nil })
	set, err := registry.NewSet([]registry.Tool{{Name: "t", Discriminator: "operation"}}, []*registry.Op{lean, op[none]("t", "plain")})
	if err != nil {
		t.Fatal(err)
	}
	plain := set.Ops("t")[1]
	for _, args := range []string{`{"view":null}`, `{"view":""}`, `{"view":"full"}`} {
		if _, err := plain.Decode(json.RawMessage(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := plain.Decode(json.RawMessage(`{"view":"lean"}`)); err == nil || !strings.Contains(err.Error(), "view is a parameter of lean") {
		t.Errorf("%v", err)
	}
	if _, err := set.Ops("t")[0].Decode(json.RawMessage(`{"view":"lean"}`)); err != nil {
		t.Error(err)
	}
	if _, err := set.Ops("t")[0].Decode(json.RawMessage(`{"veiw":"lean"}`)); err == nil || !strings.Contains(err.Error(), "valid: view") {
		t.Errorf("%v", err)
	}
}

// FuzzDecode has the published rules judged by an independent validator: both
// accept or both refuse.
// Strings of all lengths, those that take the place of their JSON included, are
// what encoding/json reads.
func TestDecodeLargeStrings(t *testing.T) {
	o := op[struct {
		A string        `json:"a"`
		B registry.Path `json:"b"`
		C []string      `json:"c"`
	}]("t", "")
	for _, unit := range []string{`x`, `line\n`, `\"\\\/\b\f\r\t`, `é\u00e9漢\u6f22`, `\ud83d\ude00😀`, `\ud83d`, "a\xff", "\xc3\\n"} {
		for _, n := range []int{0, 1, 1000, 64 << 10, 300_000} {
			s := strings.Repeat(unit, n/len(unit)+min(n, 1))
			args := []byte(`{"b":"` + s + `","a":"` + s + `","c":["` + s + `","y"]}`)
			var want struct {
				A, B string
				C    []string
			}
			if err := json.Unmarshal(args, &want); err != nil {
				t.Fatal(err)
			}
			in, err := o.Decode(args)
			if err != nil {
				t.Fatal(err)
			}
			v := reflect.ValueOf(in).Elem()
			path := v.Field(1).Interface().(registry.Path)
			if got := v.Field(0).String(); got != want.A || path.String() != want.B || v.Field(2).Index(0).String() != want.C[0] || v.Field(2).Index(1).String() != "y" {
				t.Errorf("%d × %q: got %d bytes, want %d", n, unit, len(got), len(want.A))
			}
		}
	}
}

func TestLargeStringsAreNotCopied(t *testing.T) {
	o := op[struct {
		A string `json:"a"`
	}]("t", "")
	args := []byte(`{"a":"` + strings.Repeat(`line\n`, 1<<20) + `"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := o.Decode(args)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err != nil || n > 100_000 {
		t.Errorf("%d bytes allocated, %v", n, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"names":["a"],"":1}`, `{"names":["a"]}`, `{"names":["a"],"count":10.0}`, `{"names":["a"],"count":10.5}`, `{"names":[]}`, `{"names":["a","b","c","d"]}`,
		`{"names":["a"],"kind":"x","flag":false,"on":null,"ratio":0.25}`, `{"names":["a"],"items":[{"path":"p","mode":"a"},{}]}`,
		`{"names":["a"],"one":{"path":"p","deep":true,"no":1}}`, `{"names":["a"],"value":[{"x":null}],"word":""}`, `{"names":[null]}`,
		`{"names":["a"],"paths":["b","http://c"],"where":"\ud800"}`, `[]`, `{"names":["a"],"count":-1e0,"ratio":-0}`, `{"names":["a"],"items":[null]}`,
	} {
		f.Add([]byte(seed))
	}
	o := op[wide]("t", "wide")
	b, err := json.Marshal(o.Params)
	if err != nil {
		f.Fatal(err)
	}
	var schema google.Schema
	if err := json.Unmarshal(b, &schema); err != nil {
		f.Fatal(err)
	}
	oracle, err := schema.Resolve(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		if bytes.Count(args, []byte("["))+bytes.Count(args, []byte("{")) > 900 {
			return // beyond the accepted depth
		}
		var v any
		if json.Unmarshal(args, &v) != nil || huge(v) {
			return
		}
		v = withoutNulls(v)
		canonical, err := json.Marshal(v) // of duplicate names one is left
		if err != nil {
			t.Fatal(err)
		}
		want := oracle.Validate(v)
		_, got := o.Decode(canonical)
		if (want == nil) != (got == nil) {
			t.Errorf("%s\ndecoder: %v\n oracle: %v", canonical, got, want)
		}
	})
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if x == nil {
				delete(v, k)
			} else {
				v[k] = withoutNulls(x)
			}
		}
	case []any:
		for i, x := range v {
			v[i] = withoutNulls(x)
		}
	}
	return v
}

// huge reports whether v has a number whose digits a float64 does not keep.
func huge(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			if huge(x) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if huge(x) {
				return true
			}
		}
	case float64:
		return math.Abs(v) > 1<<53
	}
	return false
}
