package docs_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/docs"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

type settings struct {
	Depth int    `env:"SHELF_DEPTH" default:"3" min:"1" max:"9" doc:"Levels of a shelf."`
	Name  string `env:"SHELF_NAME" default:"" doc:"Name of the shelf, a|b."`
}

type params struct {
	Books []book `json:"books" jsonschema:"minItems=1" jsonschema_description:"Books to put."`
	Mode  string `json:"mode,omitempty" jsonschema:"enum=front,enum=back,default=back"`
	Max   int    `json:"max,omitempty" jsonschema:"minimum=0,maximum=9" jsonschema_description:"Most books."`
}

type book struct {
	Title string   `json:"title" jsonschema_description:"One | or two."`
	Tags  []string `json:"tags,omitempty"`
}

type shelf struct {
	registry.Outcome
	Books  []place `json:"books"`
	Shelf  *shelf  `json:"shelf,omitempty"`
	Remark any     `json:"remark,omitempty"`
}

type place struct {
	At int `json:"at"`
}

func op[Out any](d registry.Desc) *registry.Op {
	return registry.New(d, func(settings, *registry.Env) (registry.Func[params, Out], error) {
		return func(context.Context, params) (out Out, err error) { return }, nil
	})
}

func TestToolset(t *testing.T) {
	set, err := registry.NewSet([]registry.Tool{{Name: "other", Toolset: "none", Summary: "Not of the toolset."}, {Name: "seat", Toolset: "shelves", Summary: "Take a seat."}, {Name: "library", Toolset: "shelves", Discriminator: "action", Summary: "A library."}}, []*registry.Op{
		op[[]shelf](registry.Desc{Tool: "library", Name: "put", Summary: "Put books.", Effect: registry.Additive, Idempotent: true, OpenWorld: true,
			Errors:   []fault.Code{fault.InvalidParameter, fault.LimitExceeded},
			Examples: []registry.Example{{Title: "One", Args: `{"books": [{"title": "Emma"}]}`}, {Title: "None", Args: `{}`}}}),
		op[place](registry.Desc{Tool: "seat", Summary: "Take a seat.", Effect: registry.Destructive,
			Examples: []registry.Example{{Title: "One", Args: `{"max": 1}`}}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	if got := docs.Toolset(registry.Toolset{Name: "shelves", Summary: "Shelves and seats."}, set); got != string(want) {
		t.Errorf("got:\n%s", got)
	}
}

func TestSettings(t *testing.T) {
	list := registry.SettingsOf[settings]()
	want := "| Variable | Default | Meaning |\n| --- | --- | --- |\n" +
		"| `SHELF_DEPTH` | `3` | Levels of a shelf. An integer from 1 to 9. |\n" +
		"| `SHELF_NAME` |  | Name of the shelf, a\\|b. |\n"
	if got := docs.Settings(list); got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
	want = "# The settings of conduit-mcp with their defaults. A variable that is set but\n# empty counts as unset. conduit-mcp --env-file FILE reads such a file; what the\n# environment has comes before it. Written by make docs.\n" +
		"\n# Levels of a shelf. An integer from 1 to 9.\n# SHELF_DEPTH=3\n\n# Name of the shelf, a|b.\n# SHELF_NAME=\n"
	if got := docs.Environment(list); got != want {
		t.Errorf("environment:\n%s\nwant:\n%s", got, want)
	}
}

func TestCodes(t *testing.T) {
	const head = "package p\n\ntype Code string\n\nconst other = 1\n\n"
	for _, c := range []struct{ name, source, want string }{
		{"comment behind", head + "const A Code = \"ERR_A\" // no | such file\n", "| `ERR_A` | No \\| such file. |\n"},
		{"comment above", head + "const (\n// A is the one code\n// for it. Unused.\nA Code = \"ERR_A\"\n)\n", "| `ERR_A` | The one code for it. Unused. |\n"},
		{"no comment", head + "const A Code = \"ERR_A\"\n", ""},
		{"no Go", "nonsense", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "codes.go")
			if err := os.WriteFile(file, []byte(c.source), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := docs.Codes(file)
			if (err != nil) != (c.want == "") {
				t.Fatalf("error %v", err)
			}
			if want := "| Code | Meaning |\n| --- | --- |\n" + c.want; err == nil && got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
