//go:build unix

package cmd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/stdio/transcript"
)

// binary is the real program, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(withBinary(m)) }

func withBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "conduit-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "conduit-mcp")
	if out, err := exec.Command("go", "build", "-o", binary, "./conduit-mcp").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// A process is the program at work in a home directory of its own.
type process struct {
	*testing.T
	cmd    *exec.Cmd
	home   string
	log    string
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

// prepare makes the program's surroundings; nothing of the tester's own
// environment gets in.
func prepare(t *testing.T, env map[string]string, args ...string) *process {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, home: filepath.Join(base, "home"), log: filepath.Join(base, "log")}
	temp := filepath.Join(base, "temp")
	for _, dir := range []string{p.home, temp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]string{"HOME": p.home, "TMPDIR": temp, "CONDUIT_LOG_FILE_PATH": p.log}
	maps.Copy(all, env)
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = p.home
	for k, v := range all {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Stderr = &p.stderr
	return p
}

// start runs the stdio server.
func start(t *testing.T, env map[string]string, args ...string) *process {
	t.Helper()
	p := prepare(t, env, args...)
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// ends waits for the program and checks that it left silently with code.
func (p *process) ends(code int) {
	p.Helper()
	watchdog := time.AfterFunc(5*time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer watchdog.Stop()
	rest, _ := io.ReadAll(p.out)
	err := p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.Errorf("exit code %d (%v), want %d; log:\n%s", got, err, code, p.logged())
	}
	if len(rest) > 0 {
		p.Errorf("unexpected output: %.300s", rest)
	}
	if p.stderr.Len() > 0 {
		p.Errorf("stderr: %.300s", p.stderr.String())
	}
}

func (p *process) logged() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (p *process) send(lines ...string) {
	p.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.Fatal(err)
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func toolCall(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

// A reply is a message of the server.
type reply struct {
	ID     any
	Result struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	Error any
}

func (p *process) reply() reply {
	p.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.Fatalf("no reply: %v; log:\n%s", err, p.logged())
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		p.Fatalf("%v: %.300s", err, line)
	}
	return r
}

func (p *process) handshake() {
	p.Helper()
	p.send(initialize, initialized)
	if r := p.reply(); r.ID != "init" || r.Error != nil {
		p.Fatalf("%+v", r)
	}
}

func (p *process) file(name, content string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.home, name), []byte(content), 0o644); err != nil {
		p.Fatal(err)
	}
}

func TestWire(t *testing.T) {
	transcript.Run(t, "../testdata/wire", func(t *testing.T, env map[string]string) (io.WriteCloser, io.Reader) {
		p := start(t, env)
		t.Cleanup(func() { p.ends(0) })
		return p.in, p.out
	})
}

func TestBadConfiguration(t *testing.T) {
	for _, c := range []struct{ key, value, code string }{
		{"CONDUIT_ALLOWED_PATHS", "/nonexistent/directory", "ERR_FS_BAD_ALLOWED_PATH"},
		{"CONDUIT_ALLOWED_PATHS", ":", "ERR_FS_BAD_ALLOWED_PATH"},
		{"LOG_LEVEL", "LOUD", "ERR_CONFIG_INVALID"},
		{"CONDUIT_MAX_PAYLOAD_SIZE_BYTES", "many", "ERR_CONFIG_INVALID"},
		{"CONDUIT_MAX_PAYLOAD_SIZE_BYTES", "1", "ERR_CONFIG_INVALID"},
		{"CONDUIT_TOOLSETS", "core,none_such", "ERR_CONFIG_INVALID"},
		{"CONDUIT_PROJECT_ROOT", "relative", "ERR_CONFIG_INVALID"},
		{"CONDUIT_DENIED_PATHS", "[", "ERR_CONFIG_INVALID"},
		{"CONDUIT_MAX_FILE_READ_BYTES", "0", "ERR_CONFIG_INVALID"},
		{"CONDUIT_HTTP_TIMEOUT_MS", "5s", "ERR_CONFIG_INVALID"},
		{"CONDUIT_READ_ONLY", "perhaps", "ERR_CONFIG_INVALID"},
	} {
		t.Run(c.key+"="+c.value, func(t *testing.T) {
			p := start(t, map[string]string{c.key: c.value})
			p.send(initialized, initialize)
			line, err := p.out.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":"init","error":{"code":-32603,"message":"`+c.code+`: `) || !strings.Contains(line, c.key) {
				t.Errorf("the client is told %s, %v", line, err)
			}
			p.ends(1)
			if log := p.logged(); !strings.Contains(log, `"error_code":"`+c.code+`"`) || !strings.Contains(log, c.key) || !strings.Contains(log, `"level":"FATAL"`) {
				t.Errorf("the reason is not in the log:\n%s", log)
			}
		})
	}
}

// A client that asks nothing is told nothing.
func TestBadConfigurationWithoutRequest(t *testing.T) {
	p := start(t, map[string]string{"LOG_LEVEL": "LOUD"})
	p.in.Close()
	p.ends(1)
}

func TestUnwritableLogStopsNothing(t *testing.T) {
	for name, path := range map[string]string{"a directory": "/", "missing directory": "/nonexistent/dir/log", "none": "none"} {
		t.Run(name, func(t *testing.T) {
			p := start(t, map[string]string{"CONDUIT_LOG_FILE_PATH": path})
			p.handshake()
			p.in.Close()
			p.ends(0)
		})
	}
}

func TestIdleServerEnds(t *testing.T) {
	t.Run("end of input", func(t *testing.T) {
		p := start(t, nil)
		p.handshake()
		p.in.Close()
		p.ends(0)
	})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			p := start(t, nil)
			p.handshake()
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			p.ends(0)
		})
	}
}

func TestCallsInFlightAtTheEndOfInput(t *testing.T) {
	p := start(t, nil, "./")
	p.file("big", "")
	if err := os.Truncate(filepath.Join(p.home, "big"), 100<<20); err != nil {
		t.Fatal(err)
	}
	lines := []string{initialize, initialized}
	const calls = 10
	for id := range calls {
		lines = append(lines, toolCall(id, "read", `{"operation":"content","sources":["big"],"format":"checksum"}`))
	}
	p.send(lines...)
	p.in.Close()
	seen := map[any]bool{}
	for range calls + 1 {
		r := p.reply()
		seen[r.ID] = true
		if r.ID != "init" && (r.Error != nil || r.Result.IsError || !strings.Contains(r.Result.Content[0].Text, `"checksum":"`)) {
			t.Errorf("%+v", r)
		}
	}
	if len(seen) != calls+1 {
		t.Errorf("replies to %v", seen)
	}
	p.ends(0)
}

// The reply has begun and the client is slow: the rest must still come whole.
func TestSignalWithAReplyInFlight(t *testing.T) {
	p := start(t, nil, "./")
	p.file("text", strings.Repeat("some text\n", 100_000))
	p.handshake()
	p.send(toolCall(1, "read", `{"operation":"content","sources":["text"]}`))
	if _, err := p.out.Peek(1); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r := p.reply()
	if r.ID != 1.0 || r.Result.IsError || len(r.Result.Content) != 1 {
		t.Fatalf("id %v, %v", r.ID, r.Error)
	}
	var items []struct{ Content string }
	if err := json.Unmarshal([]byte(r.Result.Content[0].Text), &items); err != nil || len(items) != 1 || len(items[0].Content) != 1_000_000 {
		t.Errorf("%v, %d items", err, len(items))
	}
	p.ends(0)
}

func TestNoticeGoesOnceWithDefaultPaths(t *testing.T) {
	for _, allowed := range []string{"", " \t"} { // set but empty is unset
		t.Run(fmt.Sprintf("%q", allowed), func(t *testing.T) {
			noticed(t, start(t, map[string]string{"CONDUIT_ALLOWED_PATHS": allowed}))
		})
	}
}

func noticed(t *testing.T, p *process) {
	p.file("f", "hello")
	p.handshake()
	p.send(toolCall(1, "read", `{"operation":"content","sources":["nope"]}`))
	if r := p.reply(); !r.Result.IsError || strings.Contains(r.Result.Content[0].Text, "DEFAULT_PATHS_USED") {
		t.Errorf("a failure carries the notice: %+v", r)
	}
	p.send(toolCall(2, "read", `{"operation":"content","sources":["f"]}`))
	r := p.reply()
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(r.Result.Content[0].Text), &list); err != nil || len(list) != 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	var notice struct {
		Type    string
		Code    string `json:"notice_code"`
		Message string
		Details struct {
			Version string   `json:"server_version"`
			Started string   `json:"server_start_time_iso"`
			Paths   []string `json:"default_paths_used"`
		}
	}
	if err := json.Unmarshal(list[0], &notice); err != nil {
		t.Fatal(err)
	}
	wanted := fmt.Sprintf("INFO [conduit-mcp v%s, Server Started: %s]: CONDUIT_ALLOWED_PATHS was not explicitly set by the user. ", notice.Details.Version, notice.Details.Started)
	if notice.Type != "info_notice" || notice.Code != "DEFAULT_PATHS_USED" || !strings.HasPrefix(notice.Message, wanted) || len(notice.Details.Paths) != 2 || notice.Details.Paths[0] != p.home {
		t.Errorf("%s", list[0])
	}
	p.send(toolCall(3, "read", `{"operation":"content","sources":["f"]}`))
	if r := p.reply(); strings.Contains(r.Result.Content[0].Text, "DEFAULT_PATHS_USED") {
		t.Errorf("the notice came twice: %+v", r)
	}
	p.in.Close()
	p.ends(0)
}

func TestNoNoticeWithGivenPaths(t *testing.T) {
	for name, make := range map[string]func() *process{
		"argument": func() *process { return start(t, nil, "~") },
		"variable": func() *process { return start(t, map[string]string{"CONDUIT_ALLOWED_PATHS": "~"}) },
	} {
		p := make()
		p.file("f", "hello")
		p.handshake()
		p.send(toolCall(1, "read", `{"operation":"content","sources":["f"]}`))
		if r := p.reply(); r.Result.IsError || strings.Contains(r.Result.Content[0].Text, "DEFAULT_PATHS_USED") {
			t.Errorf("%s: %+v", name, r)
		}
		p.in.Close()
		p.ends(0)
	}
}

// The server's own log and the places of credentials stay closed.
func TestDeniedPlaces(t *testing.T) {
	p := start(t, nil)
	if err := os.MkdirAll(filepath.Join(p.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.file(".ssh/id", "SECRET")
	p.handshake()
	p.send(toolCall(1, "read", `{"operation":"content","sources":["~/.ssh/id"]}`))
	if r := p.reply(); !r.Result.IsError || !strings.Contains(r.Result.Content[0].Text, "ERR_FS_ACCESS_DENIED") {
		t.Errorf("%+v", r)
	}
	p.in.Close()
	p.ends(0)

	dir := t.TempDir()
	log := filepath.Join(dir, "server.log")
	p = start(t, map[string]string{"CONDUIT_LOG_FILE_PATH": log, "CONDUIT_ALLOWED_PATHS": dir})
	p.handshake()
	for id, call := range []string{
		toolCall(0, "read", fmt.Sprintf(`{"operation":"content","sources":[%q]}`, log)),
		toolCall(1, "write", fmt.Sprintf(`{"action":"put","entries":[{"path":%q,"content":"x"}]}`, log)),
		toolCall(2, "write", fmt.Sprintf(`{"action":"delete","entries":[{"path":%q}]}`, log+".1")),
	} {
		p.send(call)
		if r := p.reply(); !r.Result.IsError || !strings.Contains(r.Result.Content[0].Text, "ERR_FS_ACCESS_DENIED") {
			t.Errorf("%d: %+v", id, r)
		}
	}
	p.in.Close()
	p.ends(0)
}

func TestFirstRecordOfTheLog(t *testing.T) {
	p := start(t, map[string]string{"CONDUIT_READ_ONLY": "true"}, "~")
	p.handshake()
	p.in.Close()
	p.ends(0)
	first, _, _ := strings.Cut(p.logged(), "\n")
	var record struct {
		Msg, Version string
		Pid          int
		Settings     map[string]any
		Allowed      []string `json:"allowed_paths"`
		File         string   `json:"log_file"`
	}
	if err := json.Unmarshal([]byte(first), &record); err != nil || record.Version == "" || record.Pid != p.cmd.Process.Pid || record.Settings["CONDUIT_READ_ONLY"] != true ||
		len(record.Allowed) != 1 || record.Allowed[0] != p.home || record.File != p.log {
		t.Errorf("%v: %s", err, first)
	}
	if fi, err := os.Stat(p.log); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

// An environment file gives what the environment lacks, to the server as to
// commands; what is wrong with it reaches the client.
func TestEnvironmentFile(t *testing.T) {
	p := prepare(t, nil)
	p.file("env", "CONDUIT_READ_ONLY=true\n")
	for _, c := range []struct {
		args []string
		env  map[string]string
		puts bool
	}{
		{[]string{"--env-file", filepath.Join(p.home, "env"), "./"}, nil, false},
		{[]string{"--env-file", filepath.Join(p.home, "env"), "./"}, map[string]string{"CONDUIT_READ_ONLY": "no"}, true},
		{[]string{"--env-file=" + filepath.Join(p.home, "env")}, nil, false},
	} {
		p := start(t, c.env, c.args...)
		p.handshake()
		p.send(toolCall(1, "write", `{"action":"put","entries":[{"path":"x","content":""}]}`))
		if r := p.reply(); r.Error != nil || r.Result.IsError == c.puts {
			t.Errorf("%q: %+v", c.args, r)
		}
		p.in.Close()
		p.ends(0)
	}
	server := start(t, nil, "--env-file", filepath.Join(p.home, "none"))
	server.send(initialize)
	if r := server.reply(); !strings.Contains(fmt.Sprint(r.Error), "ERR_CONFIG_INVALID: the environment file cannot be read") {
		t.Errorf("%v", r.Error)
	}
	server.ends(1)
	given := map[string]string{"CONDUIT_ALLOWED_PATHS": "~"}
	if stdout, stderr, code := run(t, given, "--env-file", filepath.Join(p.home, "env"), "doctor"); code != 0 || !strings.Contains(stdout, "true (from CONDUIT_READ_ONLY in "+p.home) {
		t.Errorf("doctor: %d, %s%s", code, stdout, stderr)
	}
	if _, stderr, code := run(t, given, "tools", "--env-file", filepath.Join(p.home, "none")); code != 1 || !strings.Contains(stderr, "ERR_CONFIG_INVALID") {
		t.Errorf("tools: %d, %s", code, stderr)
	}
}

// run runs a subcommand to its end.
func run(t *testing.T, env map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := prepare(t, env, args...)
	p.file("f", "hello")
	out, err := p.cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), p.stderr.String(), p.cmd.ProcessState.ExitCode()
}

func TestSubcommands(t *testing.T) {
	given := map[string]string{"CONDUIT_ALLOWED_PATHS": "~"}
	for _, c := range []struct {
		env    map[string]string
		args   []string
		stdout string // contained
		stderr string // contained; empty: nothing at all
		code   int
	}{
		{given, []string{"version"}, "conduit-mcp 1", "", 0},
		{given, []string{"--version"}, "conduit-mcp 1", "", 0},
		{given, []string{"help"}, "doctor", "", 0},
		{given, []string{"zip", "--help"}, "sync", "", 0},
		{given, []string{"zip", "frobnicate"}, "", `unknown command "frobnicate"`, 2},
		{given, []string{"zip", "stat"}, "", "did you mean status", 2},
		{given, []string{"zip", "opne"}, "", "did you mean open", 2},
		{given, []string{"dcotor"}, "", "did you mean doctor", 2},
		{given, []string{"docto"}, "", "did you mean doctor", 2},
		{given, []string{"help", "frobnicate"}, "", "no command", 2},
		{given, []string{"doctor", "--strict"}, "Allowed directories", "", 0},
		{nil, []string{"doctor", "--strict"}, "CONDUIT_ALLOWED_PATHS is not set", "", 1},
		{map[string]string{"CONDUIT_ALLOWED_PATHS": "~", "CONDUIT_READONLY": "1"}, []string{"doctor"}, "CONDUIT_READONLY is set and is no setting; CONDUIT_READ_ONLY is one", "", 0},
		{given, []string{"frobnicate"}, "", `unknown command "frobnicate"`, 2},
		{given, []string{"./", "frobnicate"}, "", "", 2},
		{given, []string{"call", "read.content", "--json", `{"sources":["f"]}`}, `"content":"hello"`, "", 0},
		{given, []string{"call", "read", "--json", `{"operation":"content","sources":["f"]}`}, `"content":"hello"`, "", 0},
		{nil, []string{"call", "read.content", "--json", `{"sources":["f"]}`}, `[{"source":"f"`, "CONDUIT_ALLOWED_PATHS was not explicitly set", 0},
		{given, []string{"call", "read.content", "--json", `{"sources":["nope"]}`}, `ERR_FS_NOT_FOUND`, "", 1},
		{given, []string{"call", "read.nope", "--json", `{}`}, `ERR_UNKNOWN_OPERATION_ACTION`, "", 1},
		{given, []string{"call", "nope", "--json", `{}`}, `ERR_UNKNOWN_TOOL`, "", 1},
		{given, []string{"call", "read.content", `{`}, ``, "ERR_INVALID_PARAMETER", 1},
		{given, []string{"call", "read.content", "--json", `{`}, "ERR_INVALID_PARAMETER", "", 1},
		{given, []string{"call", "read.content"}, ``, "usage:", 2},
		{map[string]string{"LOG_LEVEL": "LOUD"}, []string{"call", "read.content", `{}`}, ``, "ERR_CONFIG_INVALID: LOG_LEVEL", 1},
		{given, []string{"tools"}, "  put            ", "", 0},
		{given, []string{"tools", "--tokens"}, "all", "", 0},
		{given, []string{"tools", "--nope"}, "", "usage:", 2},
		{map[string]string{"CONDUIT_READ_ONLY": "true"}, []string{"tools"}, "content", "", 0},
	} {
		stdout, stderr, code := run(t, c.env, c.args...)
		if !strings.Contains(stdout, c.stdout) || (c.stdout == "") != (stdout == "") || code != c.code {
			t.Errorf("%q: exit code %d, stdout:\n%s", c.args, code, stdout)
		}
		if !strings.Contains(stderr, c.stderr) || (c.stderr == "" && stderr != "" && code != 2) {
			t.Errorf("%q: stderr:\n%s", c.args, stderr)
		}
		if c.env["CONDUIT_READ_ONLY"] == "true" && strings.Contains(stdout, "put") {
			t.Errorf("a read-only server has writing operations:\n%s", stdout)
		}
	}
	stdout, _, _ := run(t, given, "tools", "--json")
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Tools) < 3 {
		t.Errorf("%v: %s", err, stdout)
	}
}

// What cannot be written is not told as done.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"tools"}, {"tools", "--json"}, {"version"}, {"--help"}, {"call", "list.entries", `{"path":"."}`}} {
		p := prepare(t, map[string]string{"CONDUIT_ALLOWED_PATHS": "~"}, args...)
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.cmd.Stdout = full
		_ = p.cmd.Run()
		full.Close()
		if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.stderr.String(), "no space left") {
			t.Errorf("%q: code %d, %s", args, code, p.stderr.String())
		}
	}
}
