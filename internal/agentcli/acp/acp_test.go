package acp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/acp"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
)

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m)) }

// TestSession runs an agent that speaks the protocol, as a process.
func TestSession(t *testing.T) {
	for _, c := range []struct {
		name, how, permissions string
		end                    process.End
		outcome                output.Outcome
		events                 []string
		note                   bool // the agent wrote its file
	}{
		{"an edit is granted", "usage", "edits", process.Exited, output.Outcome{Summary: "answer: yes", SessionID: "acp-1", Usage: json.RawMessage(`{"tokens":3}`)},
			[]string{"session acp-1", "text Let me see.", "tool Write note.txt", "tool allowed: Write note.txt", "text answer: yes"}, true},
		{"a command is not an edit", "execute", "edits", process.Exited, output.Outcome{Summary: "answer: no", SessionID: "acp-1"},
			[]string{"session acp-1", "text Let me see.", "tool Write note.txt", "tool refused: Write note.txt", "text answer: no"}, false},
		{"all is granted", "execute", "all", process.Exited, output.Outcome{Summary: "answer: yes", SessionID: "acp-1"},
			[]string{"session acp-1", "text Let me see.", "tool Write note.txt", "tool allowed: Write note.txt", "text answer: yes"}, true},
		{"none is granted", "", "none", process.Exited, output.Outcome{Summary: "answer: no", SessionID: "acp-1"},
			[]string{"session acp-1", "text Let me see.", "tool Write note.txt", "tool refused: Write note.txt", "text answer: no"}, false},
		{"one that stays is ended", "stay", "edits", process.Told, output.Outcome{Summary: "answer: yes", SessionID: "acp-1"},
			[]string{"session acp-1", "text Let me see.", "tool Write note.txt", "tool allowed: Write note.txt", "text answer: yes"}, true},
		{"what the client does not offer", "wants", "edits", process.Exited, output.Outcome{Summary: "answer: yes refused with -32601", SessionID: "acp-1"},
			[]string{"session acp-1", "text Let me see.", "tool Write note.txt", "tool allowed: Write note.txt", "text answer: yes", "text refused with -32601"}, true},
		{"a login", "login", "edits", process.Exited, output.Outcome{Failed: true, Errors: []string{"auth_required: Sign in first (code -32000)"}},
			[]string{"error auth_required: Sign in first (code -32000)"}, false},
		{"another version", "version", "edits", process.Exited, output.Outcome{Failed: true, Errors: []string{"the agent speaks version 2 of the Agent Client Protocol, not 1"}},
			[]string{"error the agent speaks version 2 of the Agent Client Protocol, not 1"}, false},
		{"no session", "nosession", "edits", process.Exited, output.Outcome{Failed: true, Errors: []string{"the agent opened no session"}},
			[]string{"error the agent opened no session"}, false},
		{"a refusal", "refuse", "edits", process.Exited, output.Outcome{Failed: true, Summary: "answer: yes", SessionID: "acp-1", Errors: []string{"the agent stopped: refusal"}},
			[]string{"session acp-1", "text Let me see.", "tool Write note.txt", "tool allowed: Write note.txt", "text answer: yes", "error the agent stopped: refusal"}, true},
		{"a death", "die", "edits", process.Exited, output.Outcome{Failed: true, SessionID: "acp-1", Errors: []string{"the agent exited before it had answered the prompt"}},
			[]string{"session acp-1"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := &acp.Session{Cwd: dir, Prompt: "Write a note.", Permissions: c.permissions}
			var events []string
			lines := &process.Lines{Max: 1 << 20, F: func(line []byte) {
				for _, ev := range s.Line(line) {
					events = append(events, ev.Kind+" "+ev.Text)
				}
			}}
			run, err := process.Run(t.Context(), process.Spec{Path: agenttest.Fake, Args: []string{"acp " + c.how}, Dir: dir, Env: os.Environ(), Talk: s.Talk, Out: lines})
			if err != nil || run.End != c.end {
				t.Errorf("ended as %+v, %v", run, err)
			}
			c.outcome.Raw = c.outcome.Summary
			if got := s.Outcome("", true); dump(got) != dump(c.outcome) {
				t.Errorf("outcome %s\nwant    %s", dump(got), dump(c.outcome))
			}
			if !slices.Equal(events, c.events) {
				t.Errorf("events %q\nwant   %q", events, c.events)
			}
			if _, err := os.Stat(filepath.Join(dir, "note.txt")); (err == nil) != c.note {
				t.Errorf("the note: %v", err)
			}
		})
	}
}

func dump(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// A pipe is the agent's standard input.
type pipe struct {
	bytes.Buffer
	closed bool
}

func (p *pipe) Close() error { p.closed = true; return nil }

// TestMessages feeds a session without an agent.
func TestMessages(t *testing.T) {
	const session = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}
{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}
`
	ask := func(kind, options string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"toolCall":{"kind":"` + kind + `","title":"x"},"options":[` + options + `]}}`
	}
	for _, c := range []struct{ name, in, permissions, last string }{
		{"it begins", ``, "", `{"id":1,"jsonrpc":"2.0","method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},"protocolVersion":1}}`},
		{"a session in the directory", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`, "", `{"id":2,"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`},
		{"the prompt", session, "", `{"id":3,"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[{"text":"a <b>","type":"text"}],"sessionId":"s"}}`},
		{"what is not JSON-RPC", session + "{\n{\"id\":3}\n", "", `{"id":3,"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[{"text":"a <b>","type":"text"}],"sessionId":"s"}}`},
		{"no option that fits", session + ask("edit", `{"optionId":"a","kind":"allow_always"}`), "edits", `{"id":7,"jsonrpc":"2.0","result":{"outcome":{"outcome":"cancelled"}}}`},
		{"never for always", session + ask("edit", `{"optionId":"a","kind":"allow_always"},{"optionId":"o","kind":"allow_once"}`), "all", `{"id":7,"jsonrpc":"2.0","result":{"outcome":{"optionId":"o","outcome":"selected"}}}`},
		{"a kind that is not known", session + ask("fly", `{"optionId":"y","kind":"allow_once"},{"optionId":"n","kind":"reject_once"}`), "edits", `{"id":7,"jsonrpc":"2.0","result":{"outcome":{"optionId":"n","outcome":"selected"}}}`},
	} {
		s := &acp.Session{Cwd: "/w", Prompt: "a <b>", Permissions: c.permissions}
		for line := range strings.Lines(c.in) {
			s.Line([]byte(line))
		}
		s.Line(nil)
		s.Outcome("", true) // ends what is to be said
		var in pipe
		s.Talk(t.Context(), &in)
		said := strings.Split(strings.TrimSpace(in.String()), "\n")
		if last := said[len(said)-1]; last != c.last || !in.closed {
			t.Errorf("%s: said\n%s\nwant\n%s", c.name, last, c.last)
		}
	}
}

// TestFloods: an agent that asks and does not read its answers is given up,
// and a long answer is kept in part.
func TestFloods(t *testing.T) {
	s := &acp.Session{Permissions: "none"}
	for i := range 1000 {
		s.Line([]byte(`{"jsonrpc":"2.0","id":"x","method":"no/such"}`))
		if i > 100 && len(s.Line([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","title":"x"}}}`))) > 0 {
			t.Fatal("it goes on")
		}
	}
	s.Talk(t.Context(), discard{io.Discard})
	s = &acp.Session{}
	chunk := `{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + strings.Repeat("x", 1<<16) + `"}}}}`
	for range 100 {
		s.Line([]byte(chunk))
	}
	if n := len(s.Outcome("", true).Summary); n < 1<<20 || n > 1<<20+1<<16 {
		t.Errorf("%d bytes are kept", n)
	}
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }
