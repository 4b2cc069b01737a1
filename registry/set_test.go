package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

type allSettings struct {
	Text   string        `env:"T_TEXT" default:"d" doc:"Text."`
	On     bool          `env:"T_ON" default:"false" doc:"On."`
	Count  int           `env:"T_COUNT" default:"5" min:"1" max:"9" doc:"Count."`
	Least  int64         `env:"T_LEAST" default:"0" min:"0" doc:"Least."`
	Any    int64         `env:"T_ANY" default:"0" doc:"Any."`
	Choice string        `env:"T_CHOICE" default:"One" oneof:"One TWO" doc:"Choice."`
	Wait   time.Duration `env:"T_WAIT" default:"1500" min:"1" doc:"Wait."`
	Other  string
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(key string) (string, bool) { v, ok := env[key]; return v, ok }
}

func TestSettings(t *testing.T) {
	fallback := allSettings{Text: "d", Count: 5, Choice: "One", Wait: 1500 * time.Millisecond}
	with := func(change func(*allSettings)) allSettings { s := fallback; change(&s); return s }
	for _, c := range []struct {
		env  map[string]string
		want allSettings
	}{
		{nil, fallback},
		{map[string]string{"T_TEXT": "", "T_ON": " ", "T_COUNT": "\t", "T_CHOICE": ""}, fallback},
		{map[string]string{"T_TEXT": "  a b \n"}, with(func(s *allSettings) { s.Text = "a b" })},
		{map[string]string{"T_ON": "TRUE"}, with(func(s *allSettings) { s.On = true })},
		{map[string]string{"T_ON": "1"}, with(func(s *allSettings) { s.On = true })},
		{map[string]string{"T_ON": "yes"}, with(func(s *allSettings) { s.On = true })},
		{map[string]string{"T_ON": "On"}, with(func(s *allSettings) { s.On = true })},
		{map[string]string{"T_ON": "off"}, fallback},
		{map[string]string{"T_ON": "No"}, fallback},
		{map[string]string{"T_COUNT": "9", "T_LEAST": "0", "T_ANY": "-3"}, with(func(s *allSettings) { s.Count, s.Any = 9, -3 })},
		{map[string]string{"T_CHOICE": "two"}, with(func(s *allSettings) { s.Choice = "TWO" })},
		{map[string]string{"T_WAIT": "20"}, with(func(s *allSettings) { s.Wait = 20 * time.Millisecond })},
	} {
		got, err := registry.LoadSettings[allSettings](lookup(c.env))
		if err != nil || got != c.want {
			t.Errorf("%v: %+v, %v", c.env, got, err)
		}
	}
	for _, c := range []struct{ key, value, want string }{
		{"T_ON", "maybe", `T_ON is "maybe"; it must be true or false`},
		{"T_COUNT", "0", "it must be an integer from 1 to 9"},
		{"T_COUNT", "10", "it must be an integer from 1 to 9"},
		{"T_COUNT", "1e1", "it must be an integer from 1 to 9"},
		{"T_COUNT", "5.0", "it must be an integer from 1 to 9"},
		{"T_LEAST", "-1", "it must be an integer of at least 0"},
		{"T_ANY", "x", "it must be an integer"},
		{"T_ANY", "9223372036854775808", "it must be an integer"},
		{"T_CHOICE", "three", "it must be one of One, TWO"},
		{"T_WAIT", "5s", "it must be an integer of at least 1"},
	} {
		_, err := registry.LoadSettings[allSettings](lookup(map[string]string{c.key: c.value}))
		if code, message := fault.Of(err); code != fault.ConfigInvalid || !strings.Contains(message, c.want) || !strings.Contains(message, c.key) {
			t.Errorf("%s=%s: %v", c.key, c.value, err)
		}
	}
	if n := len(registry.SettingsOf[allSettings]()); n != 7 {
		t.Errorf("%d settings", n)
	}
}

type limitA struct {
	Max int64 `env:"T_MAX" default:"5" doc:"Most."`
}

type limitB struct {
	Max int64 `env:"T_MAX" default:"6" doc:"Most."`
}

type counted struct {
	Count int `json:"count"`
}

type worded struct {
	Count string `json:"count"`
}

func configured[Cfg, In any](tool, name string) *registry.Op {
	return registry.New(registry.Desc{Tool: tool, Name: name, Summary: "S.", Effect: registry.ReadOnly},
		func(Cfg, *registry.Env) (registry.Func[In, string], error) {
			return func(context.Context, In) (string, error) { return "", nil }, nil
		})
}

func described(d registry.Desc) *registry.Op {
	return registry.New(d, func(none, *registry.Env) (registry.Func[none, string], error) {
		return func(context.Context, none) (string, error) { return "", nil }, nil
	})
}

func TestNewSetRefuses(t *testing.T) {
	two := registry.Tool{Name: "t", Discriminator: "operation"}
	for _, c := range []struct {
		name  string
		tools []registry.Tool
		ops   []*registry.Op
		want  string
	}{
		{"tool twice", []registry.Tool{two, two}, nil, "tool t registered twice"},
		{"op twice", []registry.Tool{two}, []*registry.Op{op[none]("t", "a"), op[none]("t", "a")}, "op t.a registered twice"},
		{"unknown tool", nil, []*registry.Op{op[none]("t", "a")}, `op t.a: no tool "t"`},
		{"no discriminator", []registry.Tool{{Name: "t"}}, []*registry.Op{op[none]("t", "a")}, "op t.a: does not fit"},
		{"no name", []registry.Tool{two}, []*registry.Op{op[none]("t", "")}, "op t: does not fit"},
		{"no effect", []registry.Tool{two}, []*registry.Op{described(registry.Desc{Tool: "t", Name: "a", Summary: "S."})}, "Effect and Summary"},
		{"no summary", []registry.Tool{two}, []*registry.Op{described(registry.Desc{Tool: "t", Name: "a", Effect: registry.ReadOnly})}, "Effect and Summary"},
		{"types", []registry.Tool{two}, []*registry.Op{op[counted]("t", "a"), op[worded]("t", "b")}, `parameter "count" is string here and integer elsewhere`},
		{"settings", []registry.Tool{two}, []*registry.Op{configured[limitA, none]("t", "a"), configured[limitB, none]("t", "b")}, "T_MAX is declared differently"},
		{"name with a dot", []registry.Tool{{Name: "a.b", Discriminator: "operation"}}, []*registry.Op{op[none]("a.b", "c")}, "a name has at most 64 letters"},
		{"long name", nil, []*registry.Op{op[none](strings.Repeat("a", 65), "")}, "a name has at most 64 letters"},
	} {
		for range 2 { // whatever the order
			if _, err := registry.NewSet(c.tools, c.ops); err == nil || (!strings.Contains(err.Error(), c.want) && c.name != "types") {
				t.Errorf("%s: %v", c.name, err)
			}
			slices.Reverse(c.ops)
		}
	}
}

func TestSet(t *testing.T) {
	writing := described(registry.Desc{Tool: "b", Name: "z", Summary: "S.", Effect: registry.Destructive})
	set, err := registry.NewSet([]registry.Tool{{Name: "b", Discriminator: "action", Toolset: "more"}, {Name: "empty", Discriminator: "action"}},
		[]*registry.Op{writing, configured[limitA, none]("b", "a"), op[none]("single", ""), configured[limitA, none]("b", "k")})
	if err != nil {
		t.Fatal(err)
	}
	names := func(s *registry.Set) string {
		var list []string
		for _, tool := range s.Tools() {
			list = append(list, tool.Name+"("+tool.Toolset+")")
		}
		for _, o := range s.AllOps() {
			list = append(list, o.ID())
		}
		return strings.Join(list, " ")
	}
	if got, want := names(set), "b(more) single() b.a b.k b.z single"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, ok := set.Tool("empty"); ok {
		t.Error("a tool without ops stayed")
	}
	if list := set.Settings(registry.SettingsOf[allSettings]()...); len(list) != 8 || list[0].Env != "T_ANY" || list[4].Env != "T_MAX" {
		t.Errorf("Settings = %v", list)
	}
}

type putItem struct {
	Path  registry.Path `json:"path" jsonschema_description:"File."`
	Mode  string        `json:"mode,omitempty" jsonschema:"enum=over,enum=add,default=over" jsonschema_description:"How."`
	Plain bool          `json:"plain,omitempty"`
}

type put struct {
	Entries []putItem `json:"entries" jsonschema:"minItems=1" jsonschema_description:"Work."`
	Only    int       `json:"only" jsonschema_description:"Only put."`
	View    none      `json:"nothing,omitempty" jsonschema_description:"Empty."`
}

type makeItem struct {
	Path registry.Path `json:"path" jsonschema_description:"Directory."`
	Mode string        `json:"mode,omitempty" jsonschema:"enum=new" jsonschema_description:"How."`
	All  bool          `json:"all,omitempty" jsonschema_description:"Parents too."`
}

type mkdir struct {
	Entries []makeItem `json:"entries" jsonschema:"minItems=1" jsonschema_description:"Work."`
}

func TestInputSchema(t *testing.T) {
	schema := func() string {
		t.Helper()
		set, err := registry.NewSet([]registry.Tool{{Name: "w", Discriminator: "action"}}, []*registry.Op{op[put]("w", "put"), op[mkdir]("w", "mkdir")})
		if err != nil {
			t.Fatal(err)
		}
		return string(set.InputSchema("w"))
	}
	got := schema()
	want := `{"properties":{` +
		`"action":{"type":"string","enum":["mkdir","put"],"description":"mkdir: Do mkdir.\nput: Do put."},` +
		`"entries":{"items":{"properties":{` +
		`"path":{"type":"string","description":"(mkdir) Directory. (put) File."},` +
		`"mode":{"type":"string","enum":["new","over","add"],"description":"(mkdir) How. (put) How. Default over."},` +
		`"all":{"type":"boolean","description":"(mkdir) Parents too."},` +
		`"plain":{"type":"boolean","description":"(put)"}},` +
		`"additionalProperties":false,"type":"object","required":["path"]},"type":"array","description":"Work."},` +
		`"only":{"type":"integer","description":"(put) Only put."},` +
		`"nothing":{"properties":{},"additionalProperties":false,"type":"object","description":"(put) Empty."}},` +
		`"additionalProperties":false,"type":"object","required":["action","entries"]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for range 20 {
		if again := schema(); again != got {
			t.Fatalf("other bytes: %s", again)
		}
	}
}

type strict struct {
	N    int      `json:"n,omitempty" jsonschema:"minimum=1,maximum=9"`
	Kind string   `json:"kind,omitempty" jsonschema:"enum=a"`
	List []string `json:"list,omitempty" jsonschema:"minItems=1,maxItems=2"`
}

type loose struct {
	N    int      `json:"n,omitempty" jsonschema:"maximum=9"`
	Kind string   `json:"kind,omitempty"`
	List []string `json:"list,omitempty" jsonschema:"maxItems=3"`
}

// What one operation takes must not be refused by a bound of another.
func TestInputSchemaLoosens(t *testing.T) {
	for _, ops := range [][]*registry.Op{{op[strict]("t", "a"), op[loose]("t", "b")}, {op[strict]("t", "b"), op[loose]("t", "a")}} {
		set, err := registry.NewSet([]registry.Tool{{Name: "t", Discriminator: "operation"}}, ops)
		if err != nil {
			t.Fatal(err)
		}
		got := set.InputSchema("t")
		want := `"n":{"type":"integer"},"kind":{"type":"string"},"list":{"items":{"type":"string"},"type":"array"}}`
		if !strings.Contains(string(got), want) {
			t.Errorf("%s", got)
		}
		if first := ops[0].Params.Properties.Oldest().Value; first.Maximum != "9" {
			t.Error("the op's own schema was changed")
		}
	}
}

type endless struct {
	Next []endless `json:"next"`
}

func TestNewPanics(t *testing.T) {
	for name, make := range map[string]func(){
		"recursion": func() { op[endless]("t", "a") },
		"unsupported": func() {
			op[struct {
				M map[string]int `json:"m"`
			}]("t", "a")
		},
		"no json name": func() { op[struct{ M string }]("t", "a") },
		"settings": func() {
			configured[struct {
				F float64 `env:"T_F"`
			}, none]("t", "a")
		},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil {
					t.Errorf("%s: no panic", name)
				} else if s, ok := r.(string); !ok || !strings.HasPrefix(s, "registry: ") {
					t.Errorf("%s: %v", name, r)
				}
			}()
			make()
		}()
	}
}

func TestSharedAndClose(t *testing.T) {
	var a, b registry.Env
	made := 0
	var order []string
	make := func(env *registry.Env) (*int, error) {
		made++
		env.OnClose(func() error { order = append(order, "first"); return errors.New("first") })
		env.OnClose(func() error { order = append(order, "second"); return errors.New("second") })
		return &made, nil
	}
	for range 3 {
		if _, err := registry.Shared(&a, make); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times for one server", made)
	}
	if _, err := registry.Shared(&b, make); err != nil || made != 2 {
		t.Errorf("another server shares the first one's: %d, %v", made, err)
	}
	fail := errors.New("no")
	if _, err := registry.Shared(&a, func(*registry.Env) (string, error) { return "", fail }); err != fail {
		t.Error(err)
	}
	if v, err := registry.Shared(&a, func(*registry.Env) (string, error) { return "later", nil }); err != nil || v != "later" {
		t.Errorf("after a failure: %q, %v", v, err)
	}
	if err := a.Close(); err == nil || err.Error() != "second" || strings.Join(order, " ") != "second first" {
		t.Errorf("%v, %v", err, order)
	}
	if err := a.Close(); err != nil || len(order) != 2 {
		t.Errorf("closed twice: %v, %v", err, order)
	}
}

func TestSource(t *testing.T) {
	for raw, want := range map[string]struct {
		kind string
		code fault.Code
	}{
		"/a/b": {"file", ""}, "a b": {"file", ""}, "": {"file", ""}, "~/x": {"file", ""}, "://x": {"file", ""}, "1a://x": {"file", ""},
		"a/b://c": {"file", ""}, "C:/x": {"file", ""}, "mailto:x": {"file", ""}, "http:/x": {"file", ""},
		"http://h": {"url", ""}, "HTTPS://h/p?q#f": {"url", ""}, "http://[::1]:80/": {"url", ""},
		"file:///etc/passwd": {"url", fault.HTTPInvalidURL}, "FILE://x": {"url", fault.HTTPInvalidURL}, "a://b": {"url", fault.HTTPInvalidURL},
		"git+ssh://h": {"url", fault.HTTPInvalidURL}, "http://": {"url", fault.HTTPInvalidURL}, "http:///p": {"url", fault.HTTPInvalidURL},
		"http://h:port/": {"url", fault.HTTPInvalidURL}, "http://[": {"url", fault.HTTPInvalidURL},
	} {
		var s registry.Source
		if err := s.UnmarshalText([]byte(raw)); err != nil {
			t.Fatal(err)
		}
		u, err := s.URL()
		code := fault.Code("")
		if err != nil {
			code, _ = fault.Of(err)
		}
		if s.Type() != want.kind || code != want.code || (u != nil) != (want.kind == "url" && want.code == "") {
			t.Errorf("%q: %s, %v, %v", raw, s.Type(), u, err)
		}
		if s.String() != raw {
			t.Errorf("String = %q, want %q", s, raw)
		}
		if s.Type() == "url" {
			registry.Paths(&s, func(*registry.Path) { t.Errorf("%q goes to the path guard", raw) })
		}
	}
}

func TestUncheckedPathOpensNothing(t *testing.T) {
	var p registry.Path
	_ = p.UnmarshalText([]byte("/etc/passwd"))
	if _, err := p.Place(); code(err) != fault.FSAccessDenied {
		t.Error(err)
	}
	if _, err := p.Entry(); code(err) != fault.FSAccessDenied {
		t.Error(err)
	}
	if _, err := p.ReadFile(1 << 20); code(err) != fault.FSAccessDenied {
		t.Error(err)
	}
	if b, err := json.Marshal(p); err != nil || string(b) != `"/etc/passwd"` {
		t.Errorf("%s, %v", b, err)
	}
}

func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	c, _ := fault.Of(err)
	return c
}

func TestProgressNeverGoesBack(t *testing.T) {
	var got []int64
	ctx := registry.WithProgress(t.Context(), func(done, _ int64, _ string) { got = append(got, done) })
	for _, n := range []int64{1, 2, 3, 2, 10, 10, 9} {
		registry.Progress(ctx, n, 10, "")
	}
	if !slices.Equal(got, []int64{1, 2, 3, 10}) {
		t.Errorf("%v", got)
	}
	registry.Progress(context.Background(), 1, 2, "") // nobody asked
}

func TestText(t *testing.T) {
	text := registry.TextOf("a\"é")
	if b, err := json.Marshal(struct{ T *registry.Text }{text}); err != nil || string(b) != `{"T":"a\"é"}` || text.Size() != 4 {
		t.Errorf("%s, %v, %d", b, err, text.Size())
	}
	calls := 0
	registry.Texts([]struct{ T *registry.Text }{{text}, {nil}}, func(*registry.Text) { calls++ })
	if calls != 0 {
		t.Error("a text in memory has no body")
	}
}
