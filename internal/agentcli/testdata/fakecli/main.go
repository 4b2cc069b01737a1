// Fakecli plays agents. Its last arguments but the prompt are steps: each one
// argument, a verb and what it takes.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	for _, step := range os.Args[1:] {
		verb, rest, _ := strings.Cut(step, " ")
		do(verb, rest)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakecli:", err)
		os.Exit(70)
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	must(err)
	return n
}

func do(verb, rest string) {
	first, second, _ := strings.Cut(rest, " ")
	switch verb {
	case "--version":
		fmt.Println("fakecli 1.2.3")
	case "stdin": // reads it to its end
		_, err := io.Copy(io.Discard, os.Stdin)
		must(err)
	case "echo": // what came on stdin
		_, err := io.Copy(os.Stdout, os.Stdin)
		must(err)
	case "out":
		fmt.Println(rest)
	case "outpad": // SECOND behind so many bytes that have been printed then
		fmt.Println(strings.Repeat(".", number(first)) + second)
	case "err":
		fmt.Fprintln(os.Stderr, rest)
	case "chunks": // N pieces of the transcript SECOND, 20 ms apart
		text := transcripts[second]
		n := number(first)
		for i := range n {
			os.Stdout.WriteString(text[len(text)*i/n : len(text)*(i+1)/n])
			time.Sleep(20 * time.Millisecond)
		}
	case "say":
		text, ok := transcripts[rest]
		if !ok {
			must(fmt.Errorf("no transcript %q", rest))
		}
		fmt.Print(text)
	case "sleep":
		time.Sleep(time.Duration(number(rest)) * time.Millisecond)
	case "tick": // a line every 50 ms, N times
		for i := range number(rest) {
			fmt.Println("tick", i)
			time.Sleep(50 * time.Millisecond)
		}
	case "hang":
		time.Sleep(time.Hour)
	case "once": // goes on with the step SECOND where file FIRST is not there yet
		if _, err := os.Stat(first); err != nil {
			must(os.WriteFile(first, nil, 0o600))
			v, r, _ := strings.Cut(second, " ")
			do(v, r)
		}
	case "huge":
		line := append(bytes.Repeat([]byte("0123456789abcdef"), 512), '\n')
		w := bufio.NewWriterSize(os.Stdout, 1<<20)
		for n := number(rest); n > 0; n -= len(line) {
			_, err := w.Write(line)
			must(err)
		}
		must(w.Flush())
	case "write":
		must(os.MkdirAll(filepath.Dir(first), 0o755))
		must(os.WriteFile(first, []byte(second+"\n"), 0o644))
	case "binary":
		must(os.WriteFile(rest, []byte{0, 1, 2, 3, 0, 255}, 0o644))
	case "remove":
		must(os.Remove(rest))
	case "waitfor": // a file
		for {
			if _, err := os.Stat(rest); err == nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	case "env":
		fmt.Println(rest + "=" + os.Getenv(rest))
	case "environ":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "exit":
		os.Exit(number(rest))
	case "lastwords": // N bytes, when it is asked to end, and then the file SECOND
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		<-asked
		fmt.Println(strings.Repeat("x", number(first)) + "farewell")
		must(os.WriteFile(second, nil, 0o600))
		os.Exit(0)
	case "ignoreterm":
		signal.Ignore(syscall.SIGTERM)
	case "suicide":
		p, err := os.FindProcess(os.Getpid())
		must(err)
		must(p.Kill())
		time.Sleep(time.Hour)
	case "child": // FIRST is group or session; the steps in SECOND are parted by commas
		cmd := exec.Command(os.Args[0], strings.Split(second, ",")...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if first == "session" {
			leaveSession(cmd)
		}
		must(cmd.Start())
		fmt.Println("child", cmd.Process.Pid)
	case "daemon": // that leaves session and environment, and writes its pid to FIRST
		cmd := exec.Command(os.Args[0], "orphan "+first)
		cmd.Env = []string{}
		leaveSession(cmd)
		must(cmd.Run())
	case "orphan": // starts what stays when it has gone
		cmd := exec.Command(os.Args[0], "pid "+first, "hang")
		cmd.Env = []string{}
		must(cmd.Start())
	case "pid":
		must(os.WriteFile(first+".new", []byte(strconv.Itoa(os.Getpid())), 0o600))
		must(os.Rename(first+".new", first))
	case "acp":
		acp(rest)
	default:
		if !strings.HasPrefix(verb, "#") { // the prompt
			must(fmt.Errorf("no step %q", verb))
		}
	}
}

// acp plays an agent of the Agent Client Protocol.
func acp(how string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	enc := json.NewEncoder(os.Stdout)
	reply := func(id, result any) { must(enc.Encode(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})) }
	update := func(u map[string]any) {
		must(enc.Encode(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": "acp-1", "update": u}}))
	}
	var prompt any
	for in.Scan() {
		var m struct {
			ID     any
			Method string
			Params map[string]any
			Result struct {
				Outcome struct{ Outcome, OptionID string }
			}
			Error struct{ Code int }
		}
		must(json.Unmarshal(in.Bytes(), &m))
		switch m.Method {
		case "initialize":
			if how == "version" {
				reply(m.ID, map[string]any{"protocolVersion": 2})
				continue
			}
			if how == "usage" {
				fmt.Println("a banner, which is no message")
			}
			reply(m.ID, map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{}})
		case "session/new":
			if how == "login" {
				must(enc.Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32000, "message": "Sign in first"}}))
				continue
			}
			if how == "nosession" {
				reply(m.ID, map[string]any{})
				continue
			}
			reply(m.ID, map[string]any{"sessionId": "acp-1"})
		case "session/prompt":
			prompt = m.ID
			if how == "die" {
				os.Exit(3)
			}
			update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "Let me see."}})
			update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Write note.txt", "kind": "edit"})
			kind := "edit"
			if how == "execute" {
				kind = "execute"
			}
			must(enc.Encode(map[string]any{"jsonrpc": "2.0", "id": "ask", "method": "session/request_permission", "params": map[string]any{
				"sessionId": "acp-1", "toolCall": map[string]any{"kind": kind, "title": "Write note.txt"},
				"options": []any{map[string]any{"optionId": "yes", "kind": "allow_once"}, map[string]any{"optionId": "no", "kind": "reject_once"}}}}))
		case "":
			if m.ID == "file" {
				update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": fmt.Sprint(" refused with ", m.Error.Code)}})
				reply(prompt, map[string]any{"stopReason": "end_turn"})
			}
			if m.ID == "ask" {
				if m.Result.Outcome.OptionID == "yes" {
					must(os.WriteFile("note.txt", []byte("by acp\n"), 0o644))
				}
				update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "answer: " + m.Result.Outcome.OptionID}})
				switch how {
				case "refuse":
					reply(prompt, map[string]any{"stopReason": "refusal"})
				case "wants": // something of the client that it does not offer
					must(enc.Encode(map[string]any{"jsonrpc": "2.0", "id": "file", "method": "fs/read_text_file", "params": map[string]any{"path": "/etc/passwd"}}))
					continue
				case "usage":
					reply(prompt, map[string]any{"stopReason": "end_turn", "usage": map[string]any{"tokens": 3}})
				default:
					reply(prompt, map[string]any{"stopReason": "end_turn"})
				}
				if how == "stay" {
					time.Sleep(time.Hour)
				}
			}
		}
	}
}

var transcripts = map[string]string{
	"claude": `{"type":"system","subtype":"init","session_id":"c-1","tools":["Bash"]}
{"type":"assistant","message":{"content":[{"type":"text","text":"Working on it."},{"type":"tool_use","name":"Write","input":{"file_path":"note.txt"}}]},"session_id":"c-1"}
{"type":"user","message":{"content":[{"type":"tool_result","content":"ok"}]},"session_id":"c-1"}
{"type":"assistant","message":{"content":[{"type":"text","text":"Wrote the note."}]},"session_id":"c-1"}
{"type":"result","subtype":"success","is_error":false,"result":"Wrote the note.","session_id":"c-1","total_cost_usd":0.0123,"usage":{"input_tokens":10,"output_tokens":5}}
`,
	"claude-json": `{"type":"result","subtype":"success","is_error":false,"result":"Wrote the note.","session_id":"c-1","total_cost_usd":0.0123,"usage":{"input_tokens":10,"output_tokens":5}}
`,
	"claude-login": `{"type":"system","subtype":"init","session_id":"c-1"}
{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key · Please run /login","session_id":"c-1"}
`,
	"codex": `{"type":"thread.started","thread_id":"x-1"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"0","type":"command_execution","command":"bash -lc 'echo hi > note.txt'","status":"in_progress"}}
{"type":"item.completed","item":{"id":"0","type":"command_execution","command":"bash -lc 'echo hi > note.txt'","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"1","type":"file_change","changes":[{"path":"note.txt","kind":"add"}]}}
{"type":"item.completed","item":{"id":"2","type":"agent_message","text":"Wrote the note."}}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}
`,
	"codex-limit": `{"type":"thread.started","thread_id":"x-1"}
{"type":"turn.started"}
{"type":"error","message":"exceeded retry limit, last status: 429 Too Many Requests"}
{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}
`,
	"gemini": `{"type":"init","timestamp":"2026-11-21T07:00:00Z","session_id":"g-1","model":"m"}
{"type":"message","role":"user","content":"do it"}
{"type":"message","role":"assistant","content":"I will write it.","delta":true}
{"type":"tool_use","tool_name":"write_file","tool_id":"1","parameters":{"file_path":"note.txt"}}
{"type":"tool_result","tool_id":"1","status":"success","output":"ok"}
{"type":"message","role":"assistant","content":"Wrote ","delta":true}
{"type":"message","role":"assistant","content":"the note.","delta":true}
{"type":"result","status":"success","stats":{"total_tokens":15,"input_tokens":10,"output_tokens":5}}
`,
	"gemini-json": "some banner\n{\n  \"session_id\": \"g-1\",\n  \"response\": \"Wrote the note.\",\n  \"stats\": {\"models\": {}}\n}\n",
	"opencode": `{"type":"step_start","timestamp":1,"sessionID":"o-1","part":{"type":"step-start"}}
{"type":"tool_use","timestamp":2,"sessionID":"o-1","part":{"type":"tool","tool":"write","state":{"status":"completed","title":"note.txt"}}}
{"type":"step_finish","timestamp":3,"sessionID":"o-1","part":{"type":"step-finish","reason":"tool-calls","tokens":{"input":6,"output":2,"cache":{"read":1,"write":0}},"cost":0.001}}
{"type":"step_start","timestamp":4,"sessionID":"o-1","part":{"type":"step-start"}}
{"type":"text","timestamp":5,"sessionID":"o-1","part":{"type":"text","text":"Wrote the note."}}
{"type":"step_finish","timestamp":6,"sessionID":"o-1","part":{"type":"step-finish","reason":"stop","tokens":{"input":4,"output":3,"cache":{"read":0,"write":0}},"cost":0.002}}
`,
	"opencode-error": `{"type":"error","timestamp":1,"sessionID":"o-1","error":{"name":"ProviderAuthError","data":{"message":"no credentials for openai"}}}
`,
	"jsonl": `{"event":"start"}
{"event":"end","answer":{"text":"Wrote the note."},"meta":{"id":"j-1","used":{"n":3}}}
`,
	"original": "Thinking.\n{\"raw\":\"Wrote the note.\",\"logs\":\"line\",\"tests\":[{\"name\":\"unit\",\"ok\":true}]}\n",
	"secret":   "token AKIAABCDEFGHIJKLMNOP\n",
}
