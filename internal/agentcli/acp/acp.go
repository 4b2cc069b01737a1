// Package acp speaks the Agent Client Protocol (agentclientprotocol.com): the
// client's side of one prompt, JSON-RPC messages line by line on the standard
// streams of the agent.
package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
)

// A Session gives an agent one prompt. Talk and Line are what package process
// and the reader of the agent's output call.
type Session struct {
	Cwd         string
	Prompt      string
	Permissions string // edits, all or none: what is granted where the agent asks

	once  sync.Once
	queue chan any // messages to write; closed at the end
	mu    sync.Mutex
	ended bool
	text  strings.Builder
	out   output.Outcome
}

// Ids of our requests.
const (
	idInitialize = iota + 1
	idNew
	idPrompt
)

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// authRequired is the code with which agents ask to be logged in.
const authRequired = -32000

func (s *Session) start() {
	s.once.Do(func() {
		s.queue = make(chan any, 64)
		s.queue <- request(idInitialize, "initialize", map[string]any{
			"protocolVersion":    1,
			"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		})
	})
}

func request(id int, method string, params any) any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}
}

// Talk writes what the session has to say until it has ended, or ctx has.
func (s *Session) Talk(ctx context.Context, stdin io.WriteCloser) {
	s.start()
	defer stdin.Close()
	enc := json.NewEncoder(stdin)
	enc.SetEscapeHTML(false)
	for {
		select {
		case m, more := <-s.queue:
			if !more || enc.Encode(m) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// Line takes a message of the agent.
func (s *Session) Line(line []byte) []output.Event {
	s.start()
	var m message
	if json.Unmarshal(line, &m) != nil || m.JSONRPC != "2.0" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	switch {
	case m.Method == "session/update":
		return s.update(m.Params)
	case m.Method == "session/request_permission":
		return s.permission(m)
	case m.Method != "" && len(m.ID) > 0:
		s.say(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": rpcError{-32601, "not offered: " + m.Method}})
	case m.Method == "":
		return s.reply(m)
	}
	return nil
}

// say queues a message. An agent that asks and does not read loses the rest.
func (s *Session) say(m any) {
	select {
	case s.queue <- m:
	default:
		s.end()
	}
}

// end ends the session: the agent's input is closed, at which agents exit.
func (s *Session) end() {
	if !s.ended {
		s.ended = true
		close(s.queue)
	}
}

func (s *Session) fail(reason string) []output.Event {
	s.out.Failed = true
	s.out.Errors = append(s.out.Errors, reason)
	s.end()
	return []output.Event{{Kind: "error", Text: reason}}
}

// reply goes on where the answer to a request leads.
func (s *Session) reply(m message) []output.Event {
	if m.Error != nil {
		reason := fmt.Sprintf("%s (code %d)", m.Error.Message, m.Error.Code)
		if m.Error.Code == authRequired {
			reason = "auth_required: " + reason
		}
		return s.fail(reason)
	}
	switch string(m.ID) {
	case fmt.Sprint(idInitialize):
		var r struct {
			ProtocolVersion int `json:"protocolVersion"`
		}
		if json.Unmarshal(m.Result, &r) != nil || r.ProtocolVersion != 1 {
			return s.fail(fmt.Sprintf("the agent speaks version %d of the Agent Client Protocol, not 1", r.ProtocolVersion))
		}
		s.say(request(idNew, "session/new", map[string]any{"cwd": s.Cwd, "mcpServers": []any{}}))
	case fmt.Sprint(idNew):
		var r struct {
			SessionID string `json:"sessionId"`
		}
		if json.Unmarshal(m.Result, &r) != nil || r.SessionID == "" {
			return s.fail("the agent opened no session")
		}
		s.out.SessionID = r.SessionID
		s.say(request(idPrompt, "session/prompt", map[string]any{
			"sessionId": r.SessionID, "prompt": []any{map[string]any{"type": "text", "text": s.Prompt}}}))
		return []output.Event{{Kind: "session", Text: r.SessionID}}
	case fmt.Sprint(idPrompt):
		var r struct {
			StopReason string          `json:"stopReason"`
			Usage      json.RawMessage `json:"usage"`
		}
		if json.Unmarshal(m.Result, &r) != nil || r.StopReason != "end_turn" {
			return s.fail("the agent stopped: " + r.StopReason)
		}
		if len(r.Usage) > 0 && r.Usage[0] == '{' {
			s.out.Usage = r.Usage
		}
		s.end()
	}
	return nil
}

func (s *Session) update(params json.RawMessage) []output.Event {
	var p struct {
		Update struct {
			Kind    string          `json:"sessionUpdate"`
			Title   string          `json:"title"`
			Content json.RawMessage `json:"content"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	switch u := p.Update; u.Kind {
	case "agent_message_chunk":
		var c struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(u.Content, &c) == nil && c.Text != "" {
			if s.text.Len() < maxText {
				s.text.WriteString(c.Text)
			}
			return []output.Event{{Kind: "text", Text: output.OneLine(c.Text)}}
		}
	case "tool_call":
		s.text.Reset() // what follows the last tool is the answer
		return []output.Event{{Kind: "tool", Text: output.OneLine(u.Title)}}
	}
	return nil
}

// maxText bounds the answer, in bytes.
const maxText = 1 << 20

// permission answers an agent that asks whether it may use a tool.
func (s *Session) permission(m message) []output.Event {
	var p struct {
		ToolCall struct {
			Kind  string `json:"kind"`
			Title string `json:"title"`
		} `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	_ = json.Unmarshal(m.Params, &p)
	granted := s.Permissions == "all" || s.Permissions == "edits" && isEdit[p.ToolCall.Kind]
	want, verb := "reject_once", "refused: "
	if granted {
		want, verb = "allow_once", "allowed: "
	}
	outcome := map[string]any{"outcome": "cancelled"}
	for _, o := range p.Options {
		if o.Kind == want {
			outcome = map[string]any{"outcome": "selected", "optionId": o.ID}
			break
		}
	}
	s.say(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{"outcome": outcome}})
	return []output.Event{{Kind: "tool", Text: output.OneLine(verb + p.ToolCall.Title)}}
}

// isEdit are the kinds of tools that read and change files and no more.
var isEdit = map[string]bool{"read": true, "edit": true, "search": true, "move": true, "delete": true, "think": true}

// Outcome is what the agent has said. One that exited before it answered the
// prompt has failed.
func (s *Session) Outcome(string, bool) output.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.fail("the agent exited before it had answered the prompt")
	}
	o := s.out
	o.Summary = strings.TrimSpace(s.text.String())
	o.Raw = o.Summary
	return o
}
