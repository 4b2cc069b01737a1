package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// eachParam calls f for every parameter of op, by shape.
func eachParam(op *registry.Op, f func(shape string, s *jsonschema.Schema)) {
	var walk func(at string, s *jsonschema.Schema)
	walk = func(at string, s *jsonschema.Schema) {
		if s.Items != nil {
			s = s.Items
		}
		if s.Properties == nil {
			return
		}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			shape := strings.TrimPrefix(at+"."+p.Key, ".")
			f(shape, p.Value)
			walk(shape, p.Value)
		}
	}
	walk("", op.Params)
}

// free reports whether values of schema s may hold any text.
func free(s *jsonschema.Schema) bool {
	if s.Type == "array" && s.Items != nil {
		return free(s.Items)
	}
	return s.Type == "" || s.Type == "string" && len(s.Enum) == 0 || s.Type == "object" && (s.Properties == nil || s.Properties.Len() == 0)
}

// telling are words in the names of parameters that may hold what no log should.
var telling = regexp.MustCompile(`(?i)content|text|patch|search|replace|pattern|regex|instructions|prompt|message|command|script|env|token|secret|password|key|auth|header|cookie|body|data`)

func TestAuthorsDecideWhatIsLogged(t *testing.T) {
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	hidden := 0
	for _, op := range set.AllOps() {
		tags := op.LogTags()
		eachParam(op, func(shape string, s *jsonschema.Schema) {
			name := shape[strings.LastIndexByte(shape, '.')+1:]
			tag, known := tags[shape]
			switch {
			case !known:
				t.Errorf("%s: %s has no plan", op.ID(), shape)
			case tag == "content" || tag == "secret":
				hidden++
			case tag == "" && free(s) && telling.MatchString(name):
				t.Errorf(`%s: say of %s whether it may be logged, with log:"content", log:"secret" or log:"plain"`, op.ID(), shape)
			}
		})
	}
	if hidden < 15 {
		t.Errorf("%d parameters are hidden", hidden)
	}
}

const marker = "Qzxwvy"

// sample is a value of schema s, called shape: marked where it is hidden, and
// otherwise one that lets the op go on where there is one.
func sample(s *jsonschema.Schema, shape string, tags map[string]string, hide func() string, all bool) any {
	name := shape[strings.LastIndexByte(shape, '.')+1:]
	if tag := tags[shape]; (tag == "content" || tag == "secret") && s.Type != "array" {
		if s.Type == "object" {
			return map[string]any{hide(): hide(), "nested": []any{hide()}}
		}
		return hide()
	}
	switch {
	case s.Type == "array":
		return []any{sample(s.Items, shape, tags, hide, all)}
	case shape == "" || s.Properties != nil && s.Properties.Len() > 0:
		object := map[string]any{}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			inner := strings.TrimPrefix(shape+"."+p.Key, ".")
			if all || slices.Contains(s.Required, p.Key) || tags[inner] != "" || p.Value.Items != nil {
				object[p.Key] = sample(p.Value, inner, tags, hide, all)
			}
		}
		return object
	case len(s.Enum) > 0:
		return s.Enum[len(s.Enum)-1]
	case s.Type == "boolean":
		return true
	case s.Type == "integer" || s.Type == "number":
		return 1
	case strings.Contains(name, "path") || strings.Contains(name, "source"):
		return "file.txt"
	}
	return "shown"
}

// Whatever an op that stays on this machine makes of arguments, what is tagged as
// content or secret is in no record of the log.
func TestHiddenArgumentsAreNotLogged(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set, err := registry.Linked(func(_ registry.Tool, op registry.Desc) bool { return !op.OpenWorld })
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	a, err := app.New(app.Options{Set: set, Environ: map[string]string{"HOME": t.TempDir(), "CONDUIT_ALLOWED_PATHS": dir, "CONDUIT_PROJECT_ROOT": dir, "LOG_LEVEL": "DEBUG",
		"CONDUIT_LOG_FILE_PATH": log, "CONDUIT_JOURNAL_DIR": "NONE", "CONDUIT_ZIP_DATA_DIR": t.TempDir()}})
	t.Cleanup(a.Close)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, op := range set.AllOps() {
		tool, _ := set.Tool(op.Tool)
		for _, form := range []string{"%s", "(%s", "[%s", "*** Begin Patch %s", "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-%[1]s\n+%[1]s x\n", "--- a/file.txt\n+++ b/file.txt\n@@ %s", "--- a/file.txt\n+++ b/file.txt\n@@ -1 +1 @@ %[1]s\n-%[1]s\n+%[1]s x\nrest %[1]s\n", "%s\x00\n", "\u20ac%s"} {
			for _, all := range []bool{false, true} {
				if err := os.WriteFile(filepath.Join(dir, "file.txt"), []byte("one line\nand another\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				args := sample(op.Params, "", op.LogTags(), func() string { return fmt.Sprintf(form, marker) }, all).(map[string]any)
				if tool.Discriminator != "" {
					args[tool.Discriminator] = op.Name
				}
				given, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(log, 0); err != nil {
					t.Fatal(err)
				}
				if _, err := a.Call(t.Context(), op.Tool, slices.Clone(given)); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				logged := string(b)
				if strings.Contains(logged, marker) {
					t.Errorf("%s: %s\nthe log has\n%s", op.ID(), given, logged)
				}
				failed += strings.Count(logged, `"level":"ERROR"`)
				if !strings.Contains(logged, `"msg":"request"`) || bytes.Contains(given, []byte(`"shown"`)) && !strings.Contains(logged, `\"shown\"`) {
					t.Errorf("%s: %s\nthe log lacks what it may tell:\n%s", op.ID(), given, logged)
				}
			}
		}
	}
	if failed < 50 {
		t.Errorf("only %d failures were logged", failed)
	}
}

func TestRedact(t *testing.T) {
	type one struct {
		Old string `json:"old" log:"content"`
	}
	o := op[struct {
		Patch string `json:"patch,omitempty" log:"content"`
		Env   any    `json:"env,omitempty" log:"secret"`
		Edits []one  `json:"edits,omitempty"`
		One   *one   `json:"one,omitempty"`
		Path  string `json:"path,omitempty"`
	}]("t", "")
	long := strings.Repeat("0123456789", 10)
	for _, c := range []struct{ args, text, want string }{
		{`{"path":"file"}`, "no file", "no file"},
		{`{"path":"file"}`, "no file\nline 1 is x", "no file …"},
		{`{"patch":"@@ bad\n  one line  \n"}`, `patch line 1: "@@ bad" is no one line`, `patch line 1: "(6 bytes)" is no (8 bytes)`},
		{`{"patch":"tab\there"}`, `"tab\there" and again "tab\there" and tab` + "\there", `"(9 bytes)" and again "(9 bytes)" and (8 bytes)`},
		{`{"patch":"` + long + `"}`, "cut: " + long[:80] + "… and 012345678", "cut: (80 bytes)… and 012345678"},
		{`{"env":{"TOKEN":"hunter2","N":["deep1",5]}}`, "TOKEN is hunter2, deep1", "(5 bytes) is (7 bytes), (5 bytes)"},
		{`{"edits":[{"old":"first"},{"old":"second"}],"one":{"old":"third"}}`, "first second third path", "(5 bytes) (6 bytes) (5 bytes) path"},
		{`{"patch":"a\n\nfile","path":"file"}`, "a file", "a (4 bytes)"},
	} {
		call := &registry.Call{Op: o, Args: json.RawMessage(c.args)}
		if got := call.Redact(c.text); got != c.text {
			t.Errorf("not decoded: %s", got)
		}
		if err := call.Decode(); err != nil {
			t.Fatal(err)
		}
		if got := call.Redact(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}

func TestOutlineOfEveryOp(t *testing.T) {
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range set.AllOps() {
		tool, _ := set.Tool(op.Tool)
		tags := op.LogTags()
		args := sample(op.Params, "", tags, func() string { return marker }, true).(map[string]any)
		args["unknown "+op.Name] = marker
		args["text"] = map[string]any{marker: marker}
		given, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&registry.Call{Tool: tool, Op: op, Args: given}).Outline(); strings.Contains(got, marker) {
			t.Errorf("%s: %s\ntold as %s", op.ID(), given, got)
		}
		for _, shape := range slices.Sorted(maps.Keys(tags)) {
			if tag := tags[shape]; tag != "" && strings.Contains(shape, "env") && tag != "secret" {
				t.Errorf("%s: %s is no secret", op.ID(), shape)
			}
		}
	}
}
