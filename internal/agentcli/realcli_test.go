//go:build realcli && linux

package agentcli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
)

// The packages of the npm registry, and the script that each wants run.
var packages = []struct{ name, script string }{
	{"@openai/codex", ""},
	{"opencode-ai", "postinstall.mjs"},
	{"@anthropic-ai/claude-code", "install.cjs"},
	{"@google/gemini-cli", ""},
}

// TestRealAgents installs real agents from the npm registry and has each edit a
// file, its model played by a loopback server, where possible in a network
// namespace that has nothing else. REALCLI_DIR names an installation to use in
// place of a new one.
func TestRealAgents(t *testing.T) {
	dir := os.Getenv("REALCLI_DIR")
	if dir == "" {
		dir = t.TempDir()
		for _, p := range packages {
			install(t, dir, p.name, p.script)
		}
	}
	if os.Getenv("REALCLI_ISOLATED") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRealAgents$", "-test.v")
		cmd.Env = append(os.Environ(), "REALCLI_ISOLATED=1", "REALCLI_DIR="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err == nil {
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Log("no network namespace can be made here")
	} else if err := loopbackUp(); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, id := range []string{"codex", "opencode", "claude", "gemini"} {
		binary := filepath.Join(dir, "node_modules", ".bin", id)
		if err := exec.Command(binary, "--version").Run(); err != nil {
			t.Logf("%s does not run here: %v", id, err)
			continue
		}
		ran++
		t.Run(id, func(t *testing.T) { realAgent(t, id, binary) })
	}
	if ran < 2 {
		t.Errorf("%d agents ran; at least 2 are needed", ran)
	}
}

func install(t *testing.T, dir, name, script string) {
	cmd := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("%s cannot be installed: %v\n%s", name, err, out)
		return
	}
	if script == "" {
		return
	}
	cmd = exec.Command("node", script)
	cmd.Dir = filepath.Join(dir, "node_modules", filepath.FromSlash(name))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("%s of %s: %v\n%s", script, name, err, out)
	}
}

// loopbackUp brings up the loopback device of a new network namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: unix.IFF_UP | unix.IFF_RUNNING}
	copy(req.name[:], "lo")
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}

func realAgent(t *testing.T, id, binary string) {
	m := &model{t: t}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: m}
	go server.Serve(l)
	defer server.Close()
	base := "http://" + l.Addr().String()

	home := t.TempDir()
	b := newBench(t, func(c *config.Config) {
		p := c.Providers[id]
		p.Binary = binary
		switch id {
		case "opencode":
			p.Model = "mock/mock-model"
		case "gemini": // without one it asks a model which to take
			p.Model = "gemini-2.5-flash"
		}
		c.Providers[id] = p
		c.Runner.Retry.MaxAttempts = 1
		c.Runner.TimeoutSeconds = 60
	})
	b.repository(t)
	m.dir = b.dir
	write := func(name, content string) {
		full := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.env = map[string]string{"PATH": os.Getenv("PATH"), "HOME": home, "TMPDIR": os.TempDir(), "LANG": "C.UTF-8"}
	const key = "sk-mock-0123456789"
	switch id {
	case "codex":
		write(".codex/config.toml", "model = \"mock-model\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = \""+base+"/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n")
		b.env["OPENAI_API_KEY"] = key
	case "opencode":
		write(".config/opencode/opencode.json", `{"autoupdate": false, "share": "disabled", "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock",
			"options": {"baseURL": "`+base+`/v1", "apiKey": "`+key+`"}, "models": {"mock-model": {"name": "mock", "tool_call": true, "limit": {"context": 100000, "output": 4000}}}}}}`)
	case "claude":
		b.env["ANTHROPIC_BASE_URL"], b.env["ANTHROPIC_API_KEY"] = base, key
		b.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"], b.env["DISABLE_AUTOUPDATER"] = "1", "1"
	case "gemini":
		b.env["GOOGLE_GEMINI_BASE_URL"], b.env["GEMINI_API_KEY"], b.env["GEMINI_CLI_TRUST_WORKSPACE"] = base, key, "true"
		write(".gemini/settings.json", `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false}, "general": {"disableAutoUpdate": true}}`)
	}
	health := b.Check(t.Context(), []string{id})
	t.Logf("health: %+v", health[0])
	res, err := b.Run(t.Context(), agentcli.Request{Provider: id, Instructions: "Write note.txt with the word hello.", TaskID: "real-" + id, Cwd: b.cwd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var cost any
	if res.Result.CostUSD != nil {
		cost = *res.Result.CostUSD
	}
	t.Logf("ok %t in %d ms; summary %q; session %q; usage %.200s; cost %v; changed %v; failure %+v", res.OK, res.Runner.DurationMs,
		res.Result.Summary, res.Result.SessionID, res.Result.Usage, cost, res.Result.Paths, res.Failure)
	if !res.OK || res.Result.Summary != answer || res.Result.SessionID == "" || len(res.Result.Usage) == 0 || !slices.Equal(res.Result.Paths, []string{"note.txt"}) {
		t.Errorf("stdout:\n%.3000s\nstderr:\n%.1500s\nthe model was asked %d times", res.Runner.Stdout, res.Runner.Stderr, m.asked)
	}
	for name, text := range b.records(t) {
		if strings.Contains(text, key) {
			t.Errorf("%s shows the key", name)
		}
	}
}

// answer is what the model says in the end.
const answer = "Wrote the note."

// A model plays the services of the agents: asked first, it calls a tool that
// writes note.txt; told what that gave, it answers.
type model struct {
	t     *testing.T
	dir   string
	asked int
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	text := string(body)
	note := filepath.Join(m.dir, "note.txt")
	_, err := os.Stat(note)
	done := err == nil
	send := func(event string, v any) {
		b, _ := json.Marshal(v)
		if event != "" {
			fmt.Fprintf(w, "event: %s\n", event)
		}
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
	type o = map[string]any
	stream := func() { w.Header().Set("Content-Type", "text/event-stream") }
	m.asked++
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/responses"):
		stream()
		send("response.created", o{"type": "response.created", "response": o{"id": "r1"}})
		item := o{"type": "message", "id": "m1", "role": "assistant", "content": []o{{"type": "output_text", "text": answer}}}
		if !done {
			args := `{"cmd":"echo hello > note.txt"}`
			name := "exec_command"
			switch {
			case strings.Contains(text, `"name":"exec_command"`):
			case strings.Contains(text, `"name":"shell_command"`):
				name, args = "shell_command", `{"command":"echo hello > note.txt"}`
			default:
				name, args = "shell", `{"command":["bash","-lc","echo hello > note.txt"]}`
			}
			item = o{"type": "function_call", "id": "f1", "call_id": "call1", "name": name, "arguments": args}
		}
		send("response.output_item.done", o{"type": "response.output_item.done", "item": item})
		send("response.completed", o{"type": "response.completed", "response": o{"id": "r1", "usage": o{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
			"input_tokens_details": o{"cached_tokens": 0}, "output_tokens_details": o{"reasoning_tokens": 0}}}})
	case strings.HasSuffix(path, "/chat/completions"):
		stream()
		chunk := func(delta o, finish any) {
			send("", o{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "mock-model", "choices": []o{{"index": 0, "delta": delta, "finish_reason": finish}}})
		}
		if done || !strings.Contains(text, `"tools"`) {
			chunk(o{"role": "assistant", "content": answer}, nil)
			chunk(o{}, "stop")
		} else {
			args, _ := json.Marshal(o{"filePath": note, "content": "hello\n"})
			chunk(o{"role": "assistant", "tool_calls": []o{{"index": 0, "id": "call1", "type": "function", "function": o{"name": "write", "arguments": string(args)}}}}, nil)
			chunk(o{}, "tool_calls")
		}
		send("", o{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "mock-model", "choices": []o{}, "usage": o{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
		fmt.Fprint(w, "data: [DONE]\n\n")
	case strings.HasSuffix(path, "/messages"):
		stream()
		send("message_start", o{"type": "message_start", "message": o{"id": "m1", "type": "message", "role": "assistant", "model": "mock", "content": []o{}, "usage": o{"input_tokens": 10, "output_tokens": 1}}})
		reason := "end_turn"
		if done || !strings.Contains(text, `"Write"`) {
			send("content_block_start", o{"type": "content_block_start", "index": 0, "content_block": o{"type": "text", "text": ""}})
			send("content_block_delta", o{"type": "content_block_delta", "index": 0, "delta": o{"type": "text_delta", "text": answer}})
		} else {
			reason = "tool_use"
			args, _ := json.Marshal(o{"file_path": note, "content": "hello\n"})
			send("content_block_start", o{"type": "content_block_start", "index": 0, "content_block": o{"type": "tool_use", "id": "tu1", "name": "Write", "input": o{}}})
			send("content_block_delta", o{"type": "content_block_delta", "index": 0, "delta": o{"type": "input_json_delta", "partial_json": string(args)}})
		}
		send("content_block_stop", o{"type": "content_block_stop", "index": 0})
		send("message_delta", o{"type": "message_delta", "delta": o{"stop_reason": reason}, "usage": o{"output_tokens": 5}})
		send("message_stop", o{"type": "message_stop"})
	case strings.Contains(path, "enerateContent"):
		part := o{"text": answer}
		if !done && strings.Contains(text, `"write_file"`) {
			part = o{"functionCall": o{"name": "write_file", "args": o{"file_path": note, "content": "hello\n"}}}
		}
		reply := o{"candidates": []o{{"index": 0, "content": o{"role": "model", "parts": []o{part}}, "finishReason": "STOP"}},
			"usageMetadata": o{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}}
		if strings.Contains(path, "stream") {
			stream()
			send("", reply)
			return
		}
		_ = json.NewEncoder(w).Encode(reply)
	case strings.Contains(path, "countTokens") || strings.Contains(path, "count_tokens"):
		_ = json.NewEncoder(w).Encode(o{"totalTokens": 10, "input_tokens": 10})
	default:
		m.t.Logf("the model was asked for %s %s", r.Method, path)
		_ = json.NewEncoder(w).Encode(o{"data": []o{}})
	}
}
