package stdio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
)

// callServer is a server whose tools are all run by call.
func callServer(call stdio.Caller, tools ...string) *mcp.Server {
	server := newServer(nil)
	for _, name := range tools {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var progress func(done, total int64, message string)
				if token := req.Params.GetProgressToken(); token != nil {
					progress = func(done, total int64, message string) {
						req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
							ProgressToken: token, Progress: float64(done), Total: float64(total), Message: message})
					}
				}
				return call(ctx, req.Params.Name, req.Params.Arguments, progress)
			})
	}
	return server
}

func texts(texts ...string) *mcp.CallToolResult {
	res := &mcp.CallToolResult{}
	for _, t := range texts {
		res.Content = append(res.Content, &mcp.TextContent{Text: t})
	}
	return res
}

const (
	modern   = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	discover = `{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{` + modern + `}}}`
)

func opening(version string) string {
	return `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
}

// TestDirectCallsEqualTheSDKs plays sessions to a transport that leaves all
// calls to the SDK and to one that answers them: every byte must be the same.
func TestDirectCallsEqualTheSDKs(t *testing.T) {
	call := func(store *body.Store, count *atomic.Int64) stdio.Caller {
		return func(ctx context.Context, tool string, args json.RawMessage, progress func(done, total int64, message string)) (*mcp.CallToolResult, error) {
			count.Add(1)
			switch tool {
			case "echo":
				if progress != nil {
					progress(1, 3, "one <of> three")
					progress(2, 0, "")
				}
				return texts(string(args)), nil
			case "none":
				return &mcp.CallToolResult{}, nil
			case "odd":
				return texts("<a href=\"&\">\u2028\u2029\x00\x1f\\ é😀\xff", ""), nil
			case "all":
				res := texts("text")
				res.Content = append(res.Content, &mcp.ImageContent{MIMEType: "image/png", Data: []byte{1, 2, 255}},
					&mcp.AudioContent{MIMEType: "audio/<x>", Data: nil}, &mcp.TextContent{Text: "t", Meta: mcp.Meta{"a": 1}})
				res.StructuredContent, res.IsError = json.RawMessage(`{ "a": "<b>", "c": [1] }`), true
				return res, nil
			case "meta":
				return &mcp.CallToolResult{Meta: mcp.Meta{"z": "<&>", "a": 1}, Content: texts("t").Content}, nil
			case "named":
				return &mcp.CallToolResult{Meta: mcp.Meta{mcp.MetaKeyServerInfo: "another"}}, nil
			case "map":
				return &mcp.CallToolResult{StructuredContent: map[string]any{"z": "&", "a": 1.5}}, nil
			case "body":
				return texts("[" + store.Put(&text{s: "a \"large\" text\n<"}).Plain() + "]"), nil
			case "long":
				return texts(strings.Repeat("x", 5000)), nil
			}
			return nil, errors.New("no such tool")
		}
	}
	tools := []string{"echo", "none", "odd", "all", "map", "meta", "named", "body", "long"}
	sessions := func(direct bool) (s *session, count *atomic.Int64) {
		count = &atomic.Int64{}
		o := stdio.Options{Bodies: body.NewStore(), MaxResponse: 4000}
		c := call(o.Bodies, count)
		var unseen atomic.Int64
		server := callServer(call(o.Bodies, &unseen), tools...)
		if direct {
			o.Call = c
			o.Has = func(tool string) bool { return slices.Contains(tools, tool) }
		}
		return startOn(t, o, server), count
	}
	// In all of these %d is the id.
	params := []string{
		`{"name":"echo"}`, `{"name":"echo","arguments":{}}`, ` { "arguments" : { "a" : "}\\\"{" , "b":[1,{"c":"]"}]} , "name" : "echo" } `,
		`{"name":"echo","arguments":null}`, `{"name":"echo","arguments":[1]}`, `{"name":"echo","arguments":"x"}`,
		`{"name":"none"}`, `{"name":"odd"}`, `{"name":"all"}`, `{"name":"map"}`, `{"name":"meta"}`, `{"name":"named"}`, `{"name":"body"}`, `{"name":"long"}`,
		`{"name":"nope"}`, `{"name":""}`, `{"name":null}`, `{"name":5}`, `{}`, `[]`, `null`, `{"name":"ec\u0068o"}`, `{"n\u0061me":"echo"}`,
		`{"name":"echo","name":"none"}`, `{"Name":"echo"}`, `{"name":"echo","extra":1}`, `{"name":"echo","requestState":5}`, `{"name":"echo","inputResponses":{}}`,
		`{"name":"echo","_meta":{}}`, `{"name":"echo","_meta":null}`, `{"name":"echo","_meta":5}`, `{"name":"echo","_meta":{"a":"b","c":1,"d":null,"e":true}}`,
		`{"name":"echo","_meta":{"progressToken":"t<"}}`, `{"name":"echo","_meta":{"progressToken":7}}`, `{"name":"echo","_meta":{"progressToken":1.50,"x":1}}`,
		`{"name":"echo","_meta":{"progressToken":null}}`, `{"name":"echo","_meta":{"progressToken":{"a":1}}}`, `{"name":"echo","_meta":{"progress\u0054oken":1}}`,
		`{"name":"echo","_meta":{"a":1e400}}`, `{"name":"echo","_meta":{"a":{"b":[1e400]}}}`, `{"name":"echo","_meta":{"progressToken":1e2}}`,
		`{"name":"echo","_meta":{"progressToken":9007199254740993}}`,
		`{"name":"echo","_meta":{` + modern + `}}`, `{"name":"all","_meta":{` + modern + `,"progressToken":1}}`, `{"name":"none","_meta":{"io.modelcontextprotocol/protocolVersion":"2999-01-01","io.modelcontextprotocol/clientCapabilities":{}}}`,
		`{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, `{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"}}`,
		`{"name":"echo","_meta":{` + modern + `,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}`, `{"name":"echo","_meta":{` + modern + `,"io.modelcontextprotocol/clientInfo":5}}`,
		`{"name":"echo","_meta":{` + modern + `,"io.modelcontextprotocol/clientInfo":null}}`, `{"name":"echo","_meta":{` + modern + `,"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}`,
		`{"name":"echo","_meta":{` + modern + `,"a":1e400}}`, `{"name":"echo","_meta":{` + modern + `,"a":{"b":[1e400]}}}`, `{"name":"meta","_meta":{` + modern + `}}`, `{"name":"named","_meta":{` + modern + `}}`,
		`{"name":"nope","_meta":{` + modern + `}}`, `{"name":"long","_meta":{` + modern + `}}`, `{"name":"body","_meta":{` + modern + `,"io.modelcontextprotocol/logLevel":5}}`,
	}
	for _, caps := range []string{`null`, `5`, `[]`, `{"roots":{"listChanged":true}}`, `{"roots":5}`, `{"Roots":5}`, `{"roots":null,"sampling":{},"elicitation":{"form":{}}}`, `{"sampling":[]}`,
		`{"extensions":{"a":{}},"experimental":{"b":1}}`, `{"extensions":[]}`, `{"x":1e400}`} {
		params = append(params, `{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+caps+`}}`)
	}
	openings := map[string][]string{
		"not initialized": nil, "future": {opening("2999-01-01")}, "nonsense": {opening("")}, "discovered": {discover}, "both": {opening("2025-11-25"), discover},
		"twice": {opening("2025-11-25"), opening("2026-07-28")}, "new, then old": {discover, opening("2025-06-18")},
	}
	for _, v := range mcp.SupportedProtocolVersions() {
		openings[v] = []string{opening(v)}
		params = append(params, `{"name":"all","_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":"`+v+`"}}`)
	}
	for name, open := range openings {
		t.Run(name, func(t *testing.T) {
			theirs, _ := sessions(false)
			ours, count := sessions(true)
			compare := func(line string) {
				t.Helper()
				theirs.send("%s", line)
				ours.send("%s", line)
				for {
					want, got := theirs.receive(), ours.receive()
					if got != want {
						t.Fatalf("%s\ngot  %s\nwant %s", line, got, want)
					}
					if !strings.Contains(want, `"method":"notifications/progress"`) {
						return
					}
				}
			}
			ids := []string{`0`, `-7`, `9007199254740991`, `"<&>\u2028\""`, `""`, `"x"`}
			play := func() {
				for i, p := range params {
					compare(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}`, ids[i%len(ids)], p))
				}
			}
			for _, line := range open {
				compare(line)
				play()
			}
			if open == nil {
				play()
			}
			if n := count.Load(); n < 15 || len(open) > 0 && n < 40 {
				t.Errorf("only %d calls were answered without the SDK", n)
			}
		})
	}
}

// A direct session is one that is open, so that calls need no SDK.
func direct(t *testing.T, o stdio.Options, run func(ctx context.Context, id string) (string, error)) *session {
	o.Has = func(tool string) bool { return tool == "t" }
	o.Call = func(ctx context.Context, _ string, args json.RawMessage, _ func(done, total int64, message string)) (*mcp.CallToolResult, error) {
		var a struct{ ID string }
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, err
		}
		s, err := run(ctx, a.ID)
		return texts(s), err
	}
	s := startOn(t, o, callServer(func(context.Context, string, json.RawMessage, func(done, total int64, message string)) (*mcp.CallToolResult, error) {
		t.Error("a call went to the SDK")
		return texts("the SDK's"), nil
	}, "t"))
	s.initialize()
	return s
}

func (s *session) run(id int, arg string) {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"ID":%q}}}`, id, arg)
}

// While calls are at work, the input is read: each is begun, a ping is answered
// and a cancellation stops its call, in whatever order calls end.
func TestCallsAtWorkHoldUpNothing(t *testing.T) {
	for try := range 50 {
		synctest.Test(t, func(t *testing.T) {
			const calls = 5
			var begun, open, stopped [calls]chan struct{}
			for i := range calls {
				begun[i], open[i], stopped[i] = make(chan struct{}), make(chan struct{}), make(chan struct{})
			}
			s := direct(t, stdio.Options{}, func(ctx context.Context, id string) (string, error) {
				i := int(id[0] - '0')
				close(begun[i])
				if i > 0 && i%2 == 1 { // the call before ends as soon as this one has begun
					close(open[i-1])
				}
				select {
				case <-open[i]:
				case <-ctx.Done():
					close(stopped[i])
				}
				return id, ctx.Err()
			})
			for i := range calls {
				s.run(i, fmt.Sprint(i))
				<-begun[i]
				if i%2 == 1 {
					s.expect(answer(i-1, fmt.Sprint(i-1)))
				}
				if (try>>(i%3))&1 == 1 {
					s.ping(100 + i)
				}
				s.run(i, "9")
				s.expect(refusal("a request with this id is in flight; give each request an id of its own"))
			}
			for _, i := range []int{1, 3, 4} {
				s.cancel(i)
				<-stopped[i]
				s.cancel(i) // nothing has it
				s.ping(200 + i)
			}
		})
	}
}

func TestCallsAtWorkAreStoppedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		s := direct(t, stdio.Options{}, func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return "", ctx.Err()
		})
		s.run(1, "x")
		s.run(2, "x")
		s.feed.Close()
		s.expect("")
		for range 2 {
			if err := <-ended; err != context.Canceled {
				t.Errorf("err = %v", err)
			}
		}
	})
}

func TestDirectCallsAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		call    time.Duration
		end     func(*session)
		replies int
		took    time.Duration
	}{
		"short, EOF":    {4 * time.Second, func(s *session) { s.feed.Close() }, 1, 4 * time.Second},
		"long, EOF":     {time.Minute, func(s *session) { s.feed.Close() }, 0, 5 * time.Second},
		"short, signal": {900 * time.Millisecond, func(s *session) { s.transport.Shutdown() }, 1, 900 * time.Millisecond},
		"long, signal":  {4 * time.Second, func(s *session) { s.transport.Shutdown() }, 0, time.Second},
		"cancelled":     {time.Minute, func(s *session) { s.cancel(1); s.feed.Close() }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := direct(t, stdio.Options{}, func(ctx context.Context, _ string) (string, error) {
					select {
					case <-time.After(c.call):
					case <-ctx.Done():
					}
					return "done", nil
				})
				s.run(1, "x")
				synctest.Wait()
				begun := time.Now()
				c.end(s)
				for range c.replies {
					s.expect(answer(1, "done"))
				}
				s.expect("")
				if took := time.Since(begun); took < c.took || took > c.took+5*time.Millisecond {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

func TestAPanicInADirectCall(t *testing.T) {
	s := direct(t, stdio.Options{}, func(_ context.Context, id string) (string, error) {
		if id == "bad" {
			panic("boom")
		}
		return "good", nil
	})
	for id := 1; id <= 2; id++ {
		s.run(id, "bad")
		if got := s.receive(); !strings.HasPrefix(got, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,`, id)) {
			t.Errorf("got %s", got)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "boom") {
		t.Errorf("log: %s", log)
	}
	s.run(3, "good")
	s.expect(answer(3, "good"))
}

func TestPipelinedCallsRunTogether(t *testing.T) {
	var all sync.WaitGroup
	all.Add(20)
	s := direct(t, stdio.Options{}, func(_ context.Context, id string) (string, error) {
		all.Done()
		all.Wait()
		return id, nil
	})
	var lines strings.Builder
	for id := range 20 {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"ID":"x"}}}`+"\n", id)
	}
	io.WriteString(s.feed, lines.String())
	got := map[string]bool{}
	for range 20 {
		got[s.receive()] = true
	}
	for id := range 20 {
		if !got[answer(id, "x")] {
			t.Errorf("call %d has no answer", id)
		}
	}
}

// Requests wait outside where many, or large ones, are in flight; notifications
// before them do not.
func TestRequestsInFlightAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		size, fit int
	}{"many": {1, 1000}, "large": {9 << 20, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open := make(chan struct{})
				var running, cancelled atomic.Int64
				s := direct(t, stdio.Options{MaxRequest: 10 << 20}, func(ctx context.Context, _ string) (string, error) {
					running.Add(1)
					select {
					case <-open:
					case <-ctx.Done():
						cancelled.Add(1)
					}
					return "x", nil
				})
				ask := func(id int) {
					s.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"pad":"%s"},"name":"t","arguments":{}}}`, id, strings.Repeat("x", c.size))
				}
				go func() {
					for id := range c.fit {
						ask(id)
					}
					s.cancel(0)
				}()
				time.Sleep(time.Minute)
				if running.Load() != int64(c.fit) || cancelled.Load() != 1 {
					t.Fatalf("%d run, %d cancelled", running.Load(), cancelled.Load())
				}
				go func() {
					for id := range 5 {
						ask(2000 + id)
					}
				}()
				time.Sleep(time.Minute)
				if n := running.Load(); n != int64(c.fit)+1 { // in the place of the cancelled one
					t.Errorf("%d run", n)
				}
				close(open)
				for range c.fit - 1 + 5 {
					if got := s.receive(); !strings.Contains(got, `"text":"x"`) {
						t.Fatalf("got %s", got)
					}
				}
				if n := running.Load(); n != int64(c.fit)+5 {
					t.Errorf("%d ran", n)
				}
			})
		})
	}
}

func TestDirectRepliesToAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := body.NewStore()
		taken := []*text{{s: "a"}, {s: "b"}, {s: "c"}}
		i := 0
		s := direct(t, stdio.Options{Bodies: store}, func(context.Context, string) (string, error) {
			i++
			return store.Put(taken[i-1]).Plain(), nil
		})
		begun := time.Now()
		for id := range taken {
			s.run(id, "x")
			synctest.Wait()
		}
		err := <-s.ended
		if took := time.Since(begun); err != nil || took < 5*time.Minute || took > 5*time.Minute+time.Second {
			t.Errorf("took %v; err = %v", took, err)
		}
		s.out.Close()
		for _, x := range taken {
			<-x.closed()
		}
		s.ended <- nil // for the cleanup
	})
}
