package mux_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// maxList is what tools/list of the core set may take, in bytes.
const maxList = 11 << 10

// catalogue is every standard tool as tools/list tells it.
func catalogue(t *testing.T) (all []*mcp.Tool, set *registry.Set) {
	t.Helper()
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{Set: set, Environ: map[string]string{"CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_JOURNAL_DIR": "NONE", "CONDUIT_ZIP_DATA_DIR": "NONE"}})
	t.Cleanup(a.Close)
	if err != nil {
		t.Fatal(err)
	}
	return a.Mux.Tools(), set
}

func TestCatalogueFitsAndIsStable(t *testing.T) {
	all, set := catalogue(t)
	var core []*mcp.Tool
	for _, tool := range all {
		if declared, _ := set.Tool(tool.Name); declared.Toolset == "core" {
			core = append(core, tool)
		}
	}
	first, err := json.Marshal(mcp.ListToolsResult{Tools: core})
	if err != nil {
		t.Fatal(err)
	}
	if len(first) > maxList {
		t.Errorf("tools/list of the core set takes %d bytes, at most %d are allowed", len(first), maxList)
	}
	for range 5 {
		again, _ := catalogue(t)
		for i := range all {
			a, _ := json.Marshal(all[i])
			b, _ := json.Marshal(again[i])
			if !bytes.Equal(a, b) {
				t.Fatalf("%s changes from one time to the next:\n%s\n%s", all[i].Name, a, b)
			}
		}
	}
}

// keywords are all that model APIs take without complaint.
var keywords = []string{"type", "description", "properties", "required", "additionalProperties", "items", "enum", "minimum", "maximum", "minItems", "maxItems", "minLength"}

func TestCatalogueIsPlain(t *testing.T) {
	all, _ := catalogue(t)
	if len(all) == 0 {
		t.Fatal("no tools")
	}
	for _, tool := range all {
		b, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		var published struct {
			Name, Description string
			InputSchema       map[string]any
			OutputSchema      any
		}
		if err := json.Unmarshal(b, &published); err != nil {
			t.Fatal(err)
		}
		if published.Description == "" || published.OutputSchema != nil {
			t.Errorf("%s: description %q, output schema %v", tool.Name, published.Description, published.OutputSchema)
		}
		if published.InputSchema["type"] != "object" {
			t.Errorf("%s: the schema's root is no object", tool.Name)
		}
		plain(t, tool.Name, published.Description)
		lint(t, tool.Name, published.InputSchema, true)
	}
}

// camelCase are the names that the document of the agent tools has.
var camelCase = []string{"taskId", "dryRun", "auditEnabled", "logsEnabled", "testCommand"}

// lint checks schema s, called at in messages.
func lint(t *testing.T, at string, s map[string]any, root bool) {
	for key := range s {
		if !slices.Contains(keywords, key) {
			t.Errorf("%s: keyword %q", at, key)
		}
	}
	kind, ok := s["type"].(string)
	if !ok && at != "find.match_criteria[].value" {
		t.Errorf("%s: type is %v, one string is wanted", at, s["type"])
	}
	if enum, ok := s["enum"].([]any); ok {
		for _, e := range enum {
			if v, ok := e.(string); !ok || v == "" {
				t.Errorf("%s: enum has %v", at, e)
			}
			if v, _ := e.(string); v != "" {
				plain(t, at, v)
			}
		}
	}
	switch kind {
	case "object":
		if at == "run_task.env" { // any names, as the tool's document has it
			return
		}
		if s["additionalProperties"] != false {
			t.Errorf("%s: additionalProperties is %v", at, s["additionalProperties"])
		}
		properties, ok := s["properties"].(map[string]any)
		if !ok {
			t.Errorf("%s: no properties", at)
		}
		if required, ok := s["required"]; ok {
			list, _ := required.([]any)
			if len(list) == 0 {
				t.Errorf("%s: required is %v", at, required)
			}
			for _, name := range list {
				if properties[name.(string)] == nil {
					t.Errorf("%s: %s is required but not there", at, name)
				}
			}
		}
		for name, p := range properties {
			where := at + "." + name
			property, ok := p.(map[string]any)
			if !ok {
				t.Errorf("%s: %v is no schema object", where, p)
				continue
			}
			snake := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
			if !snake && !slices.Contains(camelCase, name) || len(name) > 64 {
				t.Errorf("%s: the name is not snake case", where)
			}
			text, _ := property["description"].(string)
			if text == "" {
				t.Errorf("%s: no description", where)
			}
			plain(t, where, text)
			lint(t, where, property, false)
		}
	case "array":
		items, ok := s["items"].(map[string]any)
		if !ok {
			t.Errorf("%s: items are %v", at, s["items"])
			return
		}
		lint(t, at+"[]", items, false)
	}
	if root && s["enum"] != nil {
		t.Errorf("%s: an enum at the root", at)
	}
}

func plain(t *testing.T, at, text string) {
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }); i >= 0 {
		t.Errorf("%s: a control character in %q", at, text)
	}
}
