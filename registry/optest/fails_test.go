package optest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A recorder is a test whose failures are wanted.
type recorder struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Error(args ...any)                 { r.Errorf("%s", fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }

// failures returns what check says, each failure a line at least.
func failures(t *testing.T, check func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		check(r)
	}()
	<-ended
	return strings.Join(r.said, "\n")
}

// want fails t unless said has text, or is empty where text is.
func want(t *testing.T, said, text string) {
	t.Helper()
	if said != text && (text == "" || !strings.Contains(said, text)) {
		t.Errorf("it said %q, want %q", said, text)
	}
}

type none struct{}

type params struct {
	Path   registry.Path `json:"path" jsonschema_description:"A file."`
	Choice *choice       `json:"choice,omitempty" jsonschema_description:"A choice."`
}

// A choice takes less than what is published of it.
type choice string

func (c *choice) UnmarshalText(b []byte) error {
	if *c = choice(b); *c != "left" {
		return fault.New(fault.InvalidParameter, "no such choice")
	}
	return nil
}

type result struct {
	registry.Outcome
	Text string `json:"text,omitempty"`
}

// example makes an op of its own, with one example.
func example(change func(*registry.Desc), f func(context.Context, params, *result) error) *registry.Op {
	d := registry.Desc{Tool: "try", Summary: "Try.", Effect: registry.ReadOnly, Errors: []fault.Code{fault.FSAccessDenied, fault.FSNotFound},
		Examples: []registry.Example{{Title: "One", Args: `{"path": "a.txt"}`}}}
	if change != nil {
		change(&d)
	}
	return registry.New(d, func(none, *registry.Env) (registry.Func[params, []result], error) {
		return func(ctx context.Context, in params) ([]result, error) {
			return registry.Each(ctx, []registry.Path{in.Path}, func(ctx context.Context, p registry.Path) (r result, err error) {
				return r, f(ctx, in, &r)
			})
		}, nil
	})
}

// read answers with the content of the file, as it should.
func read(_ context.Context, in params, r *result) error {
	b, err := in.Path.ReadFile(100)
	r.Text = string(b)
	return err
}

func TestConformFailsWhereAnOpBreaksAPromise(t *testing.T) {
	beside := func(in params) string { return filepath.Join(filepath.Dir(in.Path.String()), "beside") }
	for name, c := range map[string]struct {
		change func(*registry.Desc)
		run    func(context.Context, params, *result) error
		said   string
	}{
		"good": {nil, read, ""},
		"an example that does not decode": {func(d *registry.Desc) { d.Examples[0].Args = `{"path": 3}` }, read,
			"the example does not decode: "},
		"a code that is not declared": {func(d *registry.Desc) { d.Errors = d.Errors[:1] }, func(_ context.Context, in params, _ *result) error {
			if _, err := in.Path.Place(); err != nil {
				return err
			}
			return fault.New(fault.FSNotFound, "no file")
		}, "ERR_FS_NOT_FOUND is not in Desc.Errors: "},
		"a read-only op that writes": {nil, func(ctx context.Context, in params, r *result) error {
			if p, err := in.Path.Place(); err == nil {
				return os.WriteFile(p.Abs, []byte("other"), 0o600)
			}
			return read(ctx, in, r)
		}, "a read-only op changed the tree"},
		"success outside": {nil, func(context.Context, params, *result) error { return nil },
			"outside the allowed directories it answers "},
		"what lies outside": {nil, func(_ context.Context, in params, r *result) error {
			if _, err := in.Path.Place(); err != nil {
				b, _ := os.ReadFile(in.Path.String())
				return fault.New(fault.FSAccessDenied, "no: %s", b)
			}
			return nil
		}, "outside the allowed directories it answers "},
		"a change outside": {nil, func(_ context.Context, in params, r *result) error {
			_, err := in.Path.Place()
			if err != nil {
				_ = os.WriteFile(beside(in), nil, 0o600)
			}
			return err
		}, "it changed something outside the allowed directories"},
	} {
		t.Run(name, func(t *testing.T) {
			op := example(c.change, c.run)
			set, err := registry.NewSet([]registry.Tool{{Name: "try"}}, []*registry.Op{op})
			if err != nil {
				t.Fatal(err)
			}
			want(t, failures(t, func(t testing.TB) { conformExample(t, set, op, op.Examples[0]) }), c.said)
		})
	}
}

func TestConformFailsForACallThatIsNotStopped(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = time.Second
	ended := make(chan struct{})
	d := registry.Desc{Tool: "try", Summary: "Try.", Effect: registry.ReadOnly, Examples: []registry.Example{{Title: "One", Args: `{}`}}}
	op := registry.New(d, func(none, *registry.Env) (registry.Func[none, string], error) {
		return func(ctx context.Context, _ none) (string, error) {
			if ctx.Err() != nil {
				<-ended
			}
			return "good", nil
		}, nil
	})
	set, err := registry.NewSet([]registry.Tool{{Name: "try"}}, []*registry.Op{op})
	if err != nil {
		t.Fatal(err)
	}
	want(t, failures(t, func(t testing.TB) {
		conformExample(t, set, op, op.Examples[0])
		close(ended)
	}), "a cancelled call does not return")
}

func TestConformFailsWhereTheSchemaPromisesMore(t *testing.T) {
	op := example(nil, read)
	set, err := registry.NewSet([]registry.Tool{{Name: "try"}}, []*registry.Op{op})
	if err != nil {
		t.Fatal(err)
	}
	want(t, failures(t, func(t testing.TB) { conformSchema(t, set, op) }), "a call made from the published schema is refused: ")
}

func TestGoldenFailsWhereACaseDiffers(t *testing.T) {
	const good = `
-- setup --
mkdir d
-- in/a.txt --
text
-- call --
{"path": "a.txt"}
-- want --
[
  {
    "status": "success",
    "text": "text\n"
  }
]
-- after/a.txt --
text
-- gone --
b.txt
`
	for name, c := range map[string]struct{ old, new, said string }{
		"good":                    {"", "", ""},
		"another answer":          {`"text\n"`, `"other\n"`, "case.txtar: want is\n"},
		"another file":            {"-- after/a.txt --\ntext", "-- after/a.txt --\nother", "case.txtar: after/a.txt is\n"},
		"a file that is missing":  {"after/a.txt", "after/c.txt", "after the call: "},
		"a file that is not gone": {"b.txt", "a.txt", "a.txt exists after the call"},
		"a remark that is absent": {"-- gone --", "-- remarks --\nNote.\n-- gone --", "case.txtar: remarks is\n"},
		"no answer":               {"-- want --", "-- wanted --", "has no want; "},
		"no call":                 {"-- call --", "-- called --", "has no call"},
		"a bad setup":             {"mkdir d", "make d", `setup "make d": `},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "case.txtar")
			text := good
			if c.old != "" {
				text = strings.ReplaceAll(good, c.old, c.new)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			want(t, failures(t, func(t testing.TB) { golden(t, example(nil, read), path) }), c.said)
		})
	}
}

// With -update a case comes to want what the op answers.
func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "case.txtar")
	before := "A comment.\n-- in/a.txt --\ntext\n-- call --\n{\"path\": \"a.txt\"}\n-- after/a.txt --\nother\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func(was bool) { *update = was }(*update)
	*update = true
	golden(t, example(nil, read), path)
	*update = false
	golden(t, example(nil, read), path)
	a, err := txtar.ParseFile(path)
	if err != nil || string(a.Comment) != "A comment.\n" || len(a.Files) != 4 || string(a.Files[2].Data) != "text\n" {
		t.Errorf("%+v, %v", a, err)
	}
}
