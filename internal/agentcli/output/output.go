// Package output reads what agents print: their events as they come, and at the
// end the answer, the session, what was used, and why it failed where it did.
package output

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
)

// An Event is one step of an agent, for people who watch.
type Event struct {
	Kind string // "text", "tool", "error" or "session"
	Text string // one line
}

// A Test is a test that an agent says it ran.
type Test struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Output string `json:"output,omitempty"`
}

// An Outcome is what an agent's output says in the end.
type Outcome struct {
	Summary   string          // the final answer
	Raw       string          // the same, or all the output where none was found
	Logs      string          // of an agent that reports its own
	Diff      string          // likewise
	Tests     []Test          // likewise
	SessionID string          // to go on from
	Usage     json.RawMessage // as the agent counts, an object
	CostUSD   *float64
	Errors    []string // what error events say
	Failed    bool     // an event says that the run failed
}

// A Parser reads one run's standard output.
type Parser interface {
	// Line takes one line and returns the events in it.
	Line(line []byte) []Event
	// Outcome is asked for once the output has ended; all is what was kept of
	// it, and whole whether that is everything.
	Outcome(all string, whole bool) Outcome
}

// For returns a parser for the output of p.
func For(p config.Provider) Parser {
	switch p.OutputFormat {
	case "claude-stream":
		return &stream{read: claude}
	case "codex-jsonl":
		return &stream{read: codex}
	case "gemini-stream":
		return &stream{read: gemini}
	case "opencode-jsonl":
		return &stream{read: opencode}
	case "json":
		return &plain{paths: pathsOf(p), whole: true}
	case "jsonl":
		return &plain{paths: pathsOf(p)}
	}
	return &auto{plain: plain{paths: pathsOf(p), whole: true}}
}

// A stream reads lines of JSON whose shape is known.
type stream struct {
	read func(*state, []byte) []Event
	state
}

// A state is what the events so far have told.
type state struct {
	Outcome
	text                  []string // of the answer, piece by piece
	known                 bool     // an event of the format was seen
	input, output, cached int64
	cost                  float64
}

func (s *stream) Line(line []byte) []Event {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return nil
	}
	return s.read(&s.state, line)
}

func (s *stream) Outcome(all string, _ bool) Outcome {
	o := s.state.Outcome
	if o.Summary == "" {
		o.Summary = strings.TrimSpace(strings.Join(s.text, ""))
	}
	if o.Raw = o.Summary; o.Raw == "" {
		o.Raw = all
	}
	return o
}

func (s *state) session(id string) []Event {
	if id == "" || id == s.SessionID {
		return nil
	}
	s.SessionID, s.known = id, true
	return []Event{{"session", id}}
}

func (s *state) failure(message string) []Event {
	s.Failed = true
	if message == "" {
		message = "the agent reports a failure without a reason"
	}
	if !slices.Contains(s.Errors, message) {
		s.Errors = append(s.Errors, message)
	}
	return []Event{{"error", OneLine(message)}}
}

// mention notes an error that the agent may get over.
func (s *state) mention(message string) []Event {
	if message != "" && !slices.Contains(s.Errors, message) {
		s.Errors = append(s.Errors, message)
	}
	return []Event{{"error", OneLine(message)}}
}

const longestLine = 200

// OneLine makes an event's text of anything: one line of at most 200 characters.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 4*longestLine)], "")), " ")
	if r := []rune(s); len(r) > longestLine {
		return string(r[:longestLine-1]) + "…"
	}
	return s
}

func textEvent(s string) []Event {
	if s = OneLine(s); s == "" {
		return nil
	}
	return []Event{{"text", s}}
}

func toolEvent(name, detail string) []Event {
	return []Event{{"tool", OneLine(strings.TrimSpace(name + " " + detail))}}
}

func numbers(m map[string]any) json.RawMessage {
	b, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return b
}
