package agentcli_test

import (
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name, format string
		steps        []string
		summary      string
		session      string
		usage        string
		cost         float64
	}{
		{"claude", "claude-stream", []string{"stdin", "say claude"}, "Wrote the note.", "c-1", `{"input_tokens":10,"output_tokens":5}`, 0.0123},
		{"claude in pieces", "claude-stream", []string{"stdin", "chunks 7 claude"}, "Wrote the note.", "c-1", `{"input_tokens":10,"output_tokens":5}`, 0.0123},
		{"claude found out", "auto", []string{"stdin", "say claude"}, "Wrote the note.", "c-1", `{"input_tokens":10,"output_tokens":5}`, 0.0123},
		{"claude json", "json", []string{"stdin", "say claude-json"}, "Wrote the note.", "c-1", `{"input_tokens":10,"output_tokens":5}`, 0.0123},
		{"codex", "codex-jsonl", []string{"stdin", "say codex"}, "Wrote the note.", "x-1", `{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}`, 0},
		{"codex found out", "auto", []string{"stdin", "out a banner", "say codex"}, "Wrote the note.", "x-1", `{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}`, 0},
		{"gemini", "gemini-stream", []string{"stdin", "say gemini"}, "Wrote the note.", "g-1", `{"total_tokens":15,"input_tokens":10,"output_tokens":5}`, 0},
		{"gemini found out", "auto", []string{"stdin", "say gemini"}, "Wrote the note.", "g-1", `{"total_tokens":15,"input_tokens":10,"output_tokens":5}`, 0},
		{"gemini json", "auto", []string{"stdin", "say gemini-json"}, "Wrote the note.", "g-1", `{"models":{}}`, 0},
		{"opencode", "opencode-jsonl", []string{"stdin", "say opencode"}, "Wrote the note.", "o-1", `{"cached_input_tokens":1,"input_tokens":10,"output_tokens":5}`, 0.003},
		{"opencode found out", "auto", []string{"stdin", "say opencode"}, "Wrote the note.", "o-1", `{"cached_input_tokens":1,"input_tokens":10,"output_tokens":5}`, 0.003},
		{"the original's", "auto", []string{"stdin", "say original"}, "Wrote the note.", "", "", 0},
		{"text", "auto", []string{"stdin", "out plain words"}, "", "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, plays("fake", c.format, append(c.steps, "write note.txt hi")...))
			b.repository(t)
			r := b.do(t, nil)
			var cost float64
			if r.Result.CostUSD != nil {
				cost = *r.Result.CostUSD
			}
			if !r.OK || r.Result.Summary != c.summary || r.Result.SessionID != c.session || string(r.Result.Usage) != c.usage || cost != c.cost {
				t.Errorf("got %s", pretty(r))
			}
			if c.summary == "" && r.Result.Raw != "plain words\n" {
				t.Errorf("raw is %q", r.Result.Raw)
			}
			if strings.Join(r.Result.Paths, " ") != "note.txt" || !strings.Contains(r.Result.Diff, "+hi\n") {
				t.Errorf("changed %v:\n%s", r.Result.Paths, r.Result.Diff)
			}
		})
	}
}

func TestPointersIntoUnknownOutput(t *testing.T) {
	b := newBench(t, both(plays("fake", "jsonl", "stdin", "say jsonl"), func(c *config.Config) {
		p := c.Providers["fake"]
		p.ResultPath, p.SessionPath, p.UsagePath = "/answer/text", "/meta/id", "/meta/used"
		c.Providers["fake"] = p
	}))
	r := b.do(t, nil)
	if !r.OK || r.Result.Summary != "Wrote the note." || r.Result.SessionID != "j-1" || string(r.Result.Usage) != `{"n":3}` {
		t.Errorf("got %s", pretty(r))
	}
}

func TestFailuresByKind(t *testing.T) {
	for _, c := range []struct {
		name, format string
		steps        []string
		class, text  string
	}{
		{"exit code", "auto", []string{"stdin", "err it broke", "exit 3"}, "exit_code", "exit code 3: it broke"},
		{"words of the answer are not errors", "auto", []string{"stdin", "out 429 rate limit, not logged in", "exit 3"}, "exit_code", "exit code 3: nothing on stderr"},
		{"login on stderr", "auto", []string{"stdin", "err Error: Not logged in. Please run login", "exit 1"}, "auth", "exit code 1: Error: Not logged in. Please run login"},
		{"login in an event, exit code 0", "claude-stream", []string{"stdin", "say claude-login"}, "auth", "Invalid API key · Please run /login"},
		{"login in an event", "opencode-jsonl", []string{"stdin", "say opencode-error", "exit 1"}, "auth", "ProviderAuthError: no credentials for openai"},
		{"login by exit code", "gemini-stream", []string{"stdin", "exit 41"}, "auth", "exit code 41: nothing on stderr"},
		{"rate limit in an event", "codex-jsonl", []string{"stdin", "say codex-limit", "exit 1"}, "rate_limited", "exceeded retry limit, last status: 429 Too Many Requests"},
		{"signal", "auto", []string{"stdin", "suicide"}, "signal", "ended by SIGKILL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, plays("fake", c.format, c.steps...))
			r := b.do(t, nil)
			if r.OK || r.Failure == nil || string(r.Failure.Class) != c.class || r.Failure.Message != c.text {
				t.Errorf("got %s", pretty(r))
			}
			again := b.do(t, nil)
			marked := strings.Contains(strings.Join(again.Errors, " "), "marked unavailable")
			if marked != (c.class == "auth" || c.class == "rate_limited") {
				t.Errorf("the next run gave %s", pretty(again.Errors))
			}
			if marked {
				if h := b.Check(t.Context(), []string{"fake"}); !h[0].OK {
					t.Errorf("health is %+v", h)
				}
				if third := b.do(t, nil); strings.Contains(strings.Join(third.Errors, " "), "marked unavailable") {
					t.Error("a health check does not clear the mark")
				}
			}
		})
	}
	b := newBench(t, plays("fake", "auto"))
	p := b.conf.Providers["fake"]
	p.Binary = "no-such-agent"
	b.conf.Providers["fake"] = p
	if r := b.do(t, nil); r.OK || r.Failure == nil || r.Failure.Class != "not_installed" {
		t.Errorf("got %s", pretty(r))
	}
}

func TestPromptAsArgument(t *testing.T) {
	b := newBench(t, both(plays("fake", "auto", "out hello"), func(c *config.Config) {
		p := c.Providers["fake"]
		p.InputMode, p.Model = config.Arg, ""
		c.Providers["fake"] = p
	}))
	r := b.do(t, nil)
	if !r.OK || r.Invocation.Args[len(r.Invocation.Args)-1] != "{prompt}" || !strings.Contains(r.Prompt, "Write a note.") {
		t.Errorf("got %s", pretty(r))
	}
	_, err := b.Run(t.Context(), agentcli.Request{Provider: "fake", Cwd: b.cwd, Instructions: strings.Repeat("x", 1<<17)}, nil)
	if err == nil || !strings.Contains(err.Error(), "inputMode") {
		t.Errorf("a prompt too long for an argument gave %v", err)
	}
}
