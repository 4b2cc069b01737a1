package output

import (
	"encoding/json"
	"strings"
)

// claude reads Claude Code's --output-format stream-json; its json format is
// the result event alone.
func claude(s *state, line []byte) []Event {
	var e struct {
		Type      string          `json:"type"`
		Subtype   string          `json:"subtype"`
		SessionID string          `json:"session_id"`
		IsError   bool            `json:"is_error"`
		Result    string          `json:"result"`
		Errors    []string        `json:"errors"`
		Cost      *float64        `json:"total_cost_usd"`
		Usage     json.RawMessage `json:"usage"`
		Message   struct {
			Content []struct {
				Type  string          `json:"type"`
				Text  string          `json:"text"`
				Name  string          `json:"name"`
				Input json.RawMessage `json:"input"`
			} `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &e) != nil && e.Type == "" {
		return nil
	}
	var events []Event
	switch e.Type {
	case "system", "assistant", "result":
		events = s.session(e.SessionID)
	}
	switch e.Type {
	case "assistant":
		for _, c := range e.Message.Content {
			switch c.Type {
			case "text":
				s.text = []string{c.Text} // the last message is the answer where no result comes
				events = append(events, textEvent(c.Text)...)
			case "tool_use":
				events = append(events, toolEvent(c.Name, string(c.Input))...)
			}
		}
	case "result":
		s.Summary, s.Usage, s.CostUSD = e.Result, e.Usage, e.Cost
		if e.IsError || strings.HasPrefix(e.Subtype, "error") {
			message := e.Result
			if message == "" {
				message = strings.Join(append(e.Errors, e.Subtype), "; ")
			}
			events = append(events, s.failure(message)...)
		}
	}
	return events
}

// codex reads the events of codex exec --json.
func codex(s *state, line []byte) []Event {
	var e struct {
		Type     string          `json:"type"`
		ThreadID string          `json:"thread_id"`
		Usage    json.RawMessage `json:"usage"`
		Message  string          `json:"message"`
		Error    struct {
			Message string `json:"message"`
		} `json:"error"`
		Item struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Message string `json:"message"`
			Command string `json:"command"`
			Tool    string `json:"tool"`
			Query   string `json:"query"`
			Changes []struct {
				Path string `json:"path"`
				Kind string `json:"kind"`
			} `json:"changes"`
		} `json:"item"`
	}
	if json.Unmarshal(line, &e) != nil && e.Type == "" {
		return nil
	}
	switch e.Type {
	case "thread.started":
		return s.session(e.ThreadID)
	case "turn.started":
		s.known = true
	case "turn.completed":
		s.known, s.Usage, s.Failed = true, e.Usage, false
	case "turn.failed":
		return s.failure(e.Error.Message)
	case "error":
		return s.mention(e.Message)
	case "item.started", "item.completed":
		s.known = true
		done := e.Type == "item.completed"
		switch it := e.Item; it.Type {
		case "agent_message":
			if done {
				s.text = []string{it.Text}
				return textEvent(it.Text)
			}
		case "command_execution":
			if !done {
				return toolEvent("command", it.Command)
			}
		case "file_change":
			if done {
				var paths []string
				for _, c := range it.Changes {
					paths = append(paths, c.Kind+" "+c.Path)
				}
				return toolEvent("edit", strings.Join(paths, ", "))
			}
		case "mcp_tool_call":
			if !done {
				return toolEvent(it.Tool, "")
			}
		case "web_search":
			if done {
				return toolEvent("search", it.Query)
			}
		case "error":
			return s.mention(it.Message)
		}
	}
	return nil
}

// gemini reads Gemini CLI's --output-format stream-json.
func gemini(s *state, line []byte) []Event {
	var e struct {
		Type       string          `json:"type"`
		SessionID  string          `json:"session_id"`
		Role       string          `json:"role"`
		Content    string          `json:"content"`
		Delta      bool            `json:"delta"`
		ToolName   string          `json:"tool_name"`
		Parameters json.RawMessage `json:"parameters"`
		Severity   string          `json:"severity"`
		Message    string          `json:"message"`
		Status     string          `json:"status"`
		Stats      json.RawMessage `json:"stats"`
		Error      struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(line, &e) != nil && e.Type == "" {
		return nil
	}
	switch e.Type {
	case "init":
		return s.session(e.SessionID)
	case "message":
		if e.Role != "assistant" {
			return nil
		}
		if !e.Delta {
			s.text = nil
		}
		s.text = append(s.text, e.Content)
		return textEvent(e.Content)
	case "tool_use":
		s.text = nil // what follows the last tool is the answer
		return toolEvent(e.ToolName, string(e.Parameters))
	case "error":
		if e.Severity == "warning" {
			return []Event{{"error", OneLine(e.Message)}}
		}
		return s.mention(e.Message)
	case "result":
		s.Usage = e.Stats
		if e.Status == "error" {
			return s.failure(strings.TrimPrefix(e.Error.Type+": "+e.Error.Message, ": "))
		}
	}
	return nil
}

// opencode reads the events of opencode run --format json.
func opencode(s *state, line []byte) []Event {
	var e struct {
		Type      string `json:"type"`
		SessionID string `json:"sessionID"`
		Part      struct {
			Text   string  `json:"text"`
			Tool   string  `json:"tool"`
			Reason string  `json:"reason"`
			Cost   float64 `json:"cost"`
			Tokens struct {
				Input  int64 `json:"input"`
				Output int64 `json:"output"`
				Cache  struct {
					Read int64 `json:"read"`
				} `json:"cache"`
			} `json:"tokens"`
			State struct {
				Title string `json:"title"`
			} `json:"state"`
		} `json:"part"`
		Error struct {
			Name string `json:"name"`
			Data struct {
				Message string `json:"message"`
			} `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(line, &e) != nil && e.Type == "" {
		return nil
	}
	var events []Event
	if e.SessionID != "" {
		events = s.session(e.SessionID)
	}
	switch e.Type {
	case "step_start":
		s.text = nil // the text of the last step is the answer
	case "text":
		s.text = append(s.text, e.Part.Text)
		events = append(events, textEvent(e.Part.Text)...)
	case "tool_use":
		events = append(events, toolEvent(e.Part.Tool, e.Part.State.Title)...)
	case "step_finish":
		t := e.Part.Tokens
		s.input, s.output, s.cached, s.cost = s.input+t.Input, s.output+t.Output, s.cached+t.Cache.Read, s.cost+e.Part.Cost
		s.Usage = numbers(map[string]any{"input_tokens": s.input, "output_tokens": s.output, "cached_input_tokens": s.cached})
		cost := s.cost
		s.CostUSD = &cost
	case "error":
		events = append(events, s.failure(strings.Trim(e.Error.Name+": "+e.Error.Data.Message, ": "))...)
	}
	return events
}
