package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A server is a process with one session, on the other side of two pipes.
type server struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	last int // id of a request
	name string
}

// A reply is what came back for a request.
type reply struct {
	took   time.Duration // from before the request is written to the last byte of the line
	size   int           // of the line
	result json.RawMessage
}

// start runs cmd and initializes a session with it. Whoever starts a server
// stops it.
func start(cmd *exec.Cmd) (*server, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	r, err := s.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": "bench", "version": "1"}})
	if err != nil {
		s.stop()
		return nil, err
	}
	var hello struct {
		ServerInfo struct{ Name, Version string }
	}
	if err := json.Unmarshal(r.result, &hello); err != nil {
		s.stop()
		return nil, err
	}
	s.name = strings.TrimSpace(hello.ServerInfo.Name + " " + hello.ServerInfo.Version)
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// stop ends the session. A process that does not leave by itself is killed.
func (s *server) stop() {
	s.in.Close()
	late := time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	_, _ = io.Copy(io.Discard, s.out)
	_ = s.cmd.Wait()
}

// request sends one request and waits for its reply; other messages are passed
// over.
func (s *server) request(method string, params any) (reply, error) {
	s.last++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.last, "method": method, "params": params})
	if err != nil {
		return reply{}, err
	}
	begun := time.Now()
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return reply{}, err
	}
	for {
		line, err := s.out.ReadBytes('\n')
		took := time.Since(begun)
		if err != nil {
			return reply{}, fmt.Errorf("no reply to %s: %w", method, err)
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return reply{}, fmt.Errorf("%s: %w", method, err)
		}
		if m.Method != "" || !bytes.Equal(m.ID, fmt.Append(nil, s.last)) {
			continue
		}
		if m.Error != nil {
			return reply{}, fmt.Errorf("%s: %s", method, m.Error)
		}
		return reply{took, len(line), m.Result}, nil
	}
}

// call runs a tool and decodes the response, which is the first text, into to.
func (s *server) call(tool string, args, to any) (reply, error) {
	r, err := s.request("tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return r, err
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(r.result, &result); err != nil {
		return r, err
	}
	if result.IsError || len(result.Content) == 0 {
		return r, fmt.Errorf("%s: %.500s", tool, r.result)
	}
	return r, json.Unmarshal([]byte(result.Content[0].Text), to)
}

// environment is that of this process without settings of servers and of Go's
// runtime, and with those given, NAME=VALUE.
func environment(settings ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "CONDUIT_") && name != "LOG_LEVEL" && name != "GOGC" && name != "GOMEMLIMIT" && name != "GOMAXPROCS" && name != "GODEBUG" {
			env = append(env, v)
		}
	}
	return append(env, settings...)
}
