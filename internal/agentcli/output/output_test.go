package output_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
)

func dump(v any) string {
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

func cost(v float64) *float64 { return &v }

// parse gives text to a parser line by line, as the engine does.
func parse(p config.Provider, text string, whole bool) (events []string, o output.Outcome) {
	parser := output.For(p)
	for line := range strings.Lines(text) {
		for _, ev := range parser.Line([]byte(strings.TrimSuffix(line, "\n"))) {
			events = append(events, ev.Kind+" "+ev.Text)
		}
	}
	return events, parser.Outcome(text, whole)
}

func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name, format, text string
		events             []string
		want               output.Outcome
	}{
		{"claude", "claude-stream", `{"type":"system","session_id":"c"}
{"type":"assistant","session_id":"c","message":{"content":[{"type":"text","text":"first\n words"},{"type":"tool_use","name":"Edit","input":{"path":"a"}}]}}
not JSON
{"type":"result","session_id":"c","result":"Done.","total_cost_usd":0.5,"usage":{"n":1}}
`, []string{"session c", "text first words", `tool Edit {"path":"a"}`}, output.Outcome{Summary: "Done.", SessionID: "c", CostUSD: cost(0.5), Usage: json.RawMessage(`{"n":1}`)}},
		{"claude, cut off", "claude-stream", `{"type":"assistant","session_id":"c","message":{"content":[{"type":"text","text":"a"}]}}
{"type":"assistant","session_id":"c","message":{"content":[{"type":"text","text":"b"}]}}
`, []string{"session c", "text a", "text b"}, output.Outcome{Summary: "b", SessionID: "c"}},
		{"claude fails without a text", "claude-stream", `{"type":"result","subtype":"error_max_turns","errors":["one"]}
`, []string{"error one; error_max_turns"}, output.Outcome{Failed: true, Errors: []string{"one; error_max_turns"}}},
		{"codex", "codex-jsonl", `{"type":"thread.started","thread_id":"x"}
{"type":"item.started","item":{"type":"command_execution","command":"ls"}}
{"type":"item.completed","item":{"type":"command_execution","command":"ls"}}
{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a","kind":"add"},{"path":"b","kind":"update"}]}}
{"type":"item.started","item":{"type":"mcp_tool_call","tool":"read"}}
{"type":"item.completed","item":{"type":"web_search","query":"q"}}
{"type":"item.completed","item":{"type":"error","message":"a hiccup"}}
{"type":"item.completed","item":{"type":"agent_message","text":"draft"}}
{"type":"item.completed","item":{"type":"agent_message","text":"final"}}
{"type":"turn.completed","usage":{"n":2}}
`, []string{"session x", "tool command ls", "tool edit add a, update b", "tool read", "tool search q", "error a hiccup", "text draft", "text final"},
			output.Outcome{Summary: "final", SessionID: "x", Usage: json.RawMessage(`{"n":2}`), Errors: []string{"a hiccup"}}},
		{"codex gets over it", "codex-jsonl", `{"type":"turn.failed","error":{"message":"once"}}
{"type":"turn.completed","usage":{}}
`, []string{"error once"}, output.Outcome{Usage: json.RawMessage(`{}`), Errors: []string{"once"}}},
		{"codex says it twice", "codex-jsonl", `{"type":"error","message":"limit"}
{"type":"turn.failed","error":{"message":"limit"}}
`, []string{"error limit", "error limit"}, output.Outcome{Failed: true, Errors: []string{"limit"}}},
		{"gemini", "gemini-stream", `{"type":"init","session_id":"g"}
{"type":"message","role":"user","content":"do"}
{"type":"message","role":"assistant","content":"before","delta":true}
{"type":"tool_use","tool_name":"write","parameters":{}}
{"type":"message","role":"assistant","content":"one ","delta":true}
{"type":"message","role":"assistant","content":"two","delta":true}
{"type":"error","severity":"warning","message":"slow"}
{"type":"result","status":"success","stats":{"n":3}}
`, []string{"session g", "text before", "tool write {}", "text one", "text two", "error slow"}, output.Outcome{Summary: "one two", SessionID: "g", Usage: json.RawMessage(`{"n":3}`)}},
		{"gemini starts anew", "gemini-stream", `{"type":"message","role":"assistant","content":"old","delta":true}
{"type":"message","role":"assistant","content":"new"}
{"type":"result","status":"error","error":{"type":"Fatal","message":"broke"}}
`, []string{"text old", "text new", "error Fatal: broke"}, output.Outcome{Summary: "new", Failed: true, Errors: []string{"Fatal: broke"}}},
		{"opencode", "opencode-jsonl", `{"type":"step_start","sessionID":"o"}
{"type":"text","sessionID":"o","part":{"text":"thinking"}}
{"type":"tool_use","sessionID":"o","part":{"tool":"write","state":{"title":"a"}}}
{"type":"step_finish","sessionID":"o","part":{"tokens":{"input":1,"output":2,"cache":{"read":3}},"cost":0.25}}
{"type":"step_start","sessionID":"o"}
{"type":"text","sessionID":"o","part":{"text":"answer"}}
{"type":"step_finish","sessionID":"o","part":{"tokens":{"input":1,"output":1},"cost":0.25}}
`, []string{"session o", "text thinking", "tool write a", "text answer"}, output.Outcome{Summary: "answer", SessionID: "o", CostUSD: cost(0.5),
			Usage: json.RawMessage(`{"cached_input_tokens":3,"input_tokens":2,"output_tokens":3}`)}},
		{"opencode fails", "opencode-jsonl", `{"type":"error","sessionID":"o","error":{"name":"E","data":{"message":"m"}}}
`, []string{"session o", "error E: m"}, output.Outcome{SessionID: "o", Failed: true, Errors: []string{"E: m"}}},
	} {
		for _, format := range []string{c.format, "auto"} {
			if format == "auto" && c.want.SessionID == "" {
				continue // nothing tells whose it is
			}
			events, got := parse(config.Provider{OutputFormat: format}, c.text, true)
			c.want.Raw = cmp.Or(c.want.Summary, c.text)
			if dump(got) != dump(c.want) || !slices.Equal(events, c.events) {
				t.Errorf("%s as %s: %q %s\nwant %q %s", c.name, format, events, dump(got), c.events, dump(c.want))
			}
		}
	}
}

func TestUnknownShapes(t *testing.T) {
	pointers := config.Provider{ResultPath: "/a/0/b~1c", SessionPath: "/id", UsagePath: "/used"}
	for _, c := range []struct {
		name, format string
		p            config.Provider
		text         string
		whole        bool
		want         output.Outcome
	}{
		{"one value", "json", config.Provider{}, `{"result":"r","session_id":"s","usage":{"n":1},"total_cost_usd":2}`, true,
			output.Outcome{Summary: "r", SessionID: "s", Usage: json.RawMessage(`{"n":1}`), CostUSD: cost(2)}},
		{"behind a banner", "json", config.Provider{}, "hello\n{\n\"response\": \"r\",\n\"stats\": {}}", true, output.Outcome{Summary: "r", Usage: json.RawMessage(`{}`)}},
		{"not whole", "json", config.Provider{}, `{"result":"r"}`, false, output.Outcome{Raw: `{"result":"r"}`}},
		{"text", "auto", config.Provider{}, "plain\nwords\n", true, output.Outcome{Raw: "plain\nwords\n"}},
		{"the last line counts", "jsonl", config.Provider{}, "{\"raw\":\"one\"}\nnoise\n{\"raw\":\"two\"}\n", false, output.Outcome{Summary: "two"}},
		{"what an agent reports", "auto", config.Provider{}, `{"diff":"d","logs":"l","tests":[{"name":"t","ok":true}],"raw":"r"}`, true,
			output.Outcome{Summary: "r", Diff: "d", Logs: "l", Tests: []output.Test{{Name: "t", OK: true}}}},
		{"pointers", "jsonl", pointers, `{"a":[{"b/c":"r"}],"id":"s","used":{"n":2},"result":"not this"}`, true, output.Outcome{Summary: "r", SessionID: "s", Usage: json.RawMessage(`{"n":2}`)}},
		{"pointers that lead nowhere", "json", pointers, `{"a":[],"id":{},"used":null}`, true, output.Outcome{}},
		{"an error", "json", config.Provider{}, `{"error":{"message":"m"}}`, true, output.Outcome{Failed: true, Errors: []string{"m"}}},
		{"an error in a word", "auto", config.Provider{}, `{"error":"m"}`, true, output.Outcome{Failed: true, Errors: []string{"m"}}},
		{"an error without a word", "jsonl", config.Provider{}, `{"is_error":true}`, true, output.Outcome{Failed: true, Errors: []string{"the agent reports a failure without a reason"}}},
	} {
		c.p.OutputFormat = c.format
		_, got := parse(c.p, c.text, c.whole)
		c.want.Raw = cmp.Or(c.want.Raw, c.want.Summary, c.text)
		if dump(got) != dump(c.want) {
			t.Errorf("%s: %s\nwant %s", c.name, dump(got), dump(c.want))
		}
	}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		format string
		code   int
		errors []string
		stderr string
		want   output.Class
	}{
		{"auto", 1, nil, "", output.ExitCode},
		{"auto", 1, []string{"odd"}, "", output.Reported},
		{"gemini-stream", 41, nil, "", output.Auth},
		{"auto", 41, nil, "", output.ExitCode},
		{"auto", 1, nil, "HTTP 429", output.RateLimited},
		{"auto", 1, nil, "429 files were read", output.ExitCode},
		{"auto", 1, []string{"status 401: unauthorized"}, "", output.Auth},
		{"auto", 1, []string{"ok"}, "Too Many Requests", output.RateLimited},
		{"auto", 0, []string{"RESOURCE_EXHAUSTED"}, "please run x login", output.RateLimited},
		{"auto", 1, nil, "your token has expired", output.Auth},
		{"auto", 1, nil, "the author", output.ExitCode},
	} {
		if got := output.Classify(c.format, c.code, c.errors, c.stderr); got != c.want {
			t.Errorf("%s %d %q %q is %s, not %s", c.format, c.code, c.errors, c.stderr, got, c.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		" a\n\tb  c ": "a b c", "": "", "\xffx": "x", strings.Repeat("é", 200): strings.Repeat("é", 200), strings.Repeat("é", 201): strings.Repeat("é", 199) + "…",
		strings.Repeat("x ", 5000): strings.TrimSpace(strings.Repeat("x ", 100)[:199]) + "…",
	} {
		got := output.OneLine(in)
		if got != want && !strings.HasPrefix(in, "x ") || utf8.RuneCountInString(got) > 200 || strings.ContainsAny(got, "\n\t") {
			t.Errorf("%.40q became %q", in, got)
		}
	}
}
