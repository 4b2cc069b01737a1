package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
)

// FuzzCalls sends tools/call requests with arbitrary params: a transport that
// answers calls itself and one that leaves them to the SDK say the same.
func FuzzCalls(f *testing.F) {
	for _, seed := range []string{
		`{"name":"echo","arguments":{"a":[1,{"b":"]}"}]}}`, `{"name":"echo"}`, `{"name":"nope"}`, `[]`, `null`, `{"name":"echo","arguments":5}`,
		`{"name":"echo","_meta":{"progressToken":5,"x":"y"}}`, `{"name":"echo","_meta":{` + modern + `}}`, `{"name":"echo","_meta":{"x":1e400}}`,
		`{"name":"echo","name":"echo"}`, `{"name":"echo\\","arguments":{"\\\"":"\\\\"}}`, "{\"name\":\"echo\xff\"}", ` { "name" : "echo" , "_meta" : { } } `,
	} {
		f.Add([]byte(seed))
	}
	echo := func(_ context.Context, _ string, args json.RawMessage, _ func(done, total int64, message string)) (*mcp.CallToolResult, error) {
		return texts(string(args)), nil
	}
	server := callServer(echo, "echo")
	f.Fuzz(func(t *testing.T, params []byte) {
		if !json.Valid(params) || len(params) > 10000 {
			return
		}
		params = bytes.ReplaceAll(params, []byte("\n"), []byte(" "))
		var replies [2]string
		for i, o := range []stdio.Options{{}, {Call: echo, Has: func(tool string) bool { return tool == "echo" }}} {
			s := startOn(t, o, server)
			s.initialize()
			s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":%s}`, params)
			replies[i] = s.receive()
		}
		if replies[1] != replies[0] {
			t.Errorf("%s\ngot  %s\nwant %s", params, replies[1], replies[0])
		}
	})
}

// FuzzResults sends arbitrary results in sessions of every revision: they arrive
// as the SDK sends them.
func FuzzResults(f *testing.F) {
	for _, seed := range []string{
		`{"content":[]}`, `{"content":null,"isError":true}`, `{"content":[{"type":"text","text":"<&>\u2028\u0000 é😀\ud800"}],"structuredContent":{"b":1e5,"a":["<"]}}`,
		`{"content":[{"type":"image","data":"AAH/","mimeType":"image/png"},{"type":"audio","data":"","mimeType":"a"}],"_meta":{"a":{"b":[null]}}}`,
		`{"content":[{"type":"resource_link","uri":"file:///a","name":"a","size":5,"annotations":{"priority":0.5}}],"structuredContent":[1]}`,
		`{"content":[{"type":"resource","resource":{"uri":"x:y","text":"t","_meta":{"c":"<"}}}],"structuredContent":"s"}`,
		`{"content":[{"type":"text","text":"","annotations":{"audience":["user"]},"_meta":{"x":1}}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n"}}}`,
		`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":null},"structuredContent":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var members map[string]any
		if json.Unmarshal(b, &members) != nil || json.Unmarshal(b, new(mcp.CallToolResult)) != nil || members["inputRequests"] != nil || members["requestState"] != nil || members["resultType"] != nil {
			return
		}
		run := func(context.Context, string, json.RawMessage, func(done, total int64, message string)) (*mcp.CallToolResult, error) {
			res := new(mcp.CallToolResult)
			err := json.Unmarshal(b, res)
			return res, err
		}
		server := callServer(run, "t")
		known := func(tool string) bool { return tool == "t" }
		for _, v := range mcp.SupportedProtocolVersions() {
			for _, request := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{` + modern + `}}}`,
			} {
				var replies [2]string
				for i, o := range []stdio.Options{{}, {Call: run, Has: known}} {
					s := startOn(t, o, server)
					s.send("%s", opening(v))
					s.receive()
					s.send("%s", request)
					replies[i] = s.receive()
				}
				if replies[1] != replies[0] {
					t.Errorf("%s, %s\ngot  %s\nwant %s", v, request, replies[1], replies[0])
				}
			}
		}
	})
}

// FuzzLines sends arbitrary bytes: whatever they are, each line that comes back
// is a JSON-RPC message, and a ping is answered.
func FuzzLines(f *testing.F) {
	const hello = `{"jsonrpc":"2.0","id":"hello","method":"ping"}`
	for _, seed := range []string{
		"", "{bad", "\uFEFF" + hello, hello, hello + hello, "[" + hello + "]", "Content-Length: 3\r\n\r\n{}\n", strings.Repeat("[", 3000),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,{}]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 3000) + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"\r\n \t\n", "\x00\n\xff", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":1e400,"method":5,"params":null}`,
	} {
		f.Add([]byte(seed))
	}
	server := newServer(map[string]tool{"echo": func(_ context.Context, req *mcp.CallToolRequest) (string, error) {
		return string(req.Params.Arguments), nil
	}})
	f.Fuzz(func(t *testing.T, data []byte) {
		in, feed := io.Pipe()
		out, sink := io.Pipe()
		go func() {
			defer sink.Close()
			if err := server.Run(context.Background(), stdio.New(in, sink, stdio.Options{MaxRequest: 2000, MaxResponse: 4000, Log: slog.New(slog.DiscardHandler)})); err != nil {
				t.Errorf("the session ended with %v", err)
			}
		}()
		const id = "a ping that the data does not hold"
		go func() {
			defer feed.Close()
			fmt.Fprintf(feed, "%s\n%s\n", hello, data)
			fmt.Fprintf(feed, `{"jsonrpc":"2.0","id":%q,"method":"ping"}`+"\n", id)
		}()
		answered := 0
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m struct {
				JSONRPC string
				ID      json.RawMessage
				Method  string
				Result  json.RawMessage
				Error   *struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatalf("%v: %q", err, lines.Text())
			}
			request, result, failure := m.Method != "", m.Result != nil, m.Error != nil
			switch {
			case m.JSONRPC != "2.0", string(m.ID) == "null", request == (result || failure), result && failure, result && m.ID == nil, failure && m.Error.Code == 0:
				t.Errorf("no JSON-RPC message: %q", lines.Text())
			case string(m.ID) == fmt.Sprintf("%q", id):
				answered++
			}
		}
		if answered != 1 {
			t.Errorf("%q: the ping after it got %d answers", data, answered)
		}
	})
}
