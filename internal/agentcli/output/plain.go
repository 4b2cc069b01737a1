package output

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
)

// paths are JSON pointers into an agent's own objects.
type paths struct{ result, session, usage string }

func pathsOf(p config.Provider) paths { return paths{p.ResultPath, p.SessionPath, p.UsagePath} }

// A plain reads output of which only this is known: it is one JSON value, or
// one a line. The answer is where the paths lead, or under the keys that agents
// usually give it: response, result, raw, diff, logs, tests.
type plain struct {
	paths
	whole bool // one value, perhaps with other text round it
	out   Outcome
}

func (p *plain) Line(line []byte) []Event {
	if p.whole {
		return nil
	}
	p.consider(line)
	return nil
}

// consider takes the object in text where it has something of the answer, and
// reports whether there was an object at all.
func (p *plain) consider(text []byte) bool {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return false
	}
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	if dec.Decode(&m) != nil {
		return false
	}
	o := p.out
	o.SessionID = cmp.Or(text1(m, p.session, "session_id", "sessionID", "sessionId"), o.SessionID)
	if u := at(m, p.usage, "usage", "stats"); u != nil {
		if b, err := json.Marshal(u); err == nil {
			o.Usage = b
		}
	}
	if s := text1(m, p.result, "response", "result", "raw"); s != "" {
		o.Summary = s
	}
	if s, ok := m["diff"].(string); ok {
		o.Diff = s
	}
	if s, ok := m["logs"].(string); ok {
		o.Logs = s
	}
	if list, ok := m["tests"].([]any); ok {
		if b, err := json.Marshal(list); err == nil {
			var tests []Test
			if json.Unmarshal(b, &tests) == nil {
				o.Tests = tests
			}
		}
	}
	if c, ok := m["total_cost_usd"].(float64); ok {
		o.CostUSD = &c
	}
	if failed, _ := m["is_error"].(bool); failed {
		o.Failed = true
		o.Errors = append(o.Errors, cmp.Or(o.Summary, "the agent reports a failure without a reason"))
	}
	switch e := m["error"].(type) {
	case string:
		o.Failed, o.Errors = true, append(o.Errors, e)
	case map[string]any:
		message, _ := e["message"].(string)
		o.Failed, o.Errors = true, append(o.Errors, message)
	}
	p.out = o
	return true
}

func (p *plain) Outcome(all string, whole bool) Outcome {
	if p.whole && whole {
		if !p.consider([]byte(all)) || p.out.Summary == "" && p.out.Diff == "" {
			if i := strings.IndexByte(all, '{'); i > 0 {
				p.consider([]byte(all[i:]))
			}
		}
	}
	o := p.out
	if o.Raw = o.Summary; o.Raw == "" {
		o.Raw = all
	}
	return o
}

// at returns the value that pointer leads to, or without one the value of the
// first of keys that there is.
func at(m map[string]any, pointer string, keys ...string) any {
	if pointer != "" {
		return follow(m, pointer)
	}
	for _, k := range keys {
		if v := m[k]; v != nil {
			return v
		}
	}
	return nil
}

func text1(m map[string]any, pointer string, keys ...string) string {
	s, _ := at(m, pointer, keys...).(string)
	return s
}

// follow resolves a JSON pointer (RFC 6901).
func follow(v any, pointer string) any {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch x := v.(type) {
		case map[string]any:
			v = x[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// An auto finds out for itself: one of the known streams, lines of JSON, one
// JSON value, or text.
type auto struct {
	plain
	lines   plain
	streams []*stream
	known   *stream
}

func (a *auto) Line(line []byte) []Event {
	if a.known != nil {
		return a.known.Line(line)
	}
	if a.streams == nil {
		a.streams = []*stream{{read: claude}, {read: codex}, {read: gemini}, {read: opencode}}
		a.lines.paths = a.paths
	}
	a.lines.Line(line)
	for _, s := range a.streams {
		if events := s.Line(line); s.known {
			a.known = s
			return events
		}
	}
	return nil
}

func (a *auto) Outcome(all string, whole bool) Outcome {
	if a.known != nil {
		return a.known.Outcome(all, whole)
	}
	if o := a.lines.Outcome(all, whole); o.Summary != "" || o.Diff != "" || o.Logs != "" || o.Tests != nil || o.Failed {
		return o
	}
	return a.plain.Outcome(all, whole)
}
