package agentcli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
)

// TestNoPartOfASecretShows: not where a text is cut, folded, escaped or joined.
func TestNoPartOfASecretShows(t *testing.T) {
	const secret = "s3cret-0123456789-abcdefghijklmnopqrstuvwxyz-THE-END"
	const folded = "open sesame\n  and close\tagain"
	text, _ := json.Marshal(strings.Repeat("x", 180) + " " + secret + " " + folded)
	failure, _ := json.Marshal(strings.Repeat("y", 185) + secret)
	b := newBench(t, both(plays("fake", "claude-stream", "stdin",
		`out {"type":"assistant","session_id":"c","message":{"content":[{"type":"text","text":`+string(text)+`},{"type":"tool_use","name":"Write","input":{"path":`+string(text)+`}}]}}`,
		"outpad 524270 "+secret, // the kept beginning ends within it
		"err "+strings.Repeat("z", 190)+secret, "outpad 600000 "+secret, "write leak.txt "+secret,
		`out {"type":"result","is_error":true,"session_id":"c","result":`+string(failure)+`}`, "exit 1"),
		func(c *config.Config) { c.Runner.EnvAllow = []string{"ALLOWED_KEY"} }))
	b.env["ALLOWED_KEY"] = secret
	b.repository(t)
	test := "echo " + strings.Repeat("t", 185) + secret + " && false"
	r := b.request()
	r.TestCommand, r.Env = &test, map[string]string{"DOOR_PASSWORD": folded}
	var events strings.Builder
	res, err := b.Run(t.Context(), r, func(ev task.Event) { events.WriteString(ev.Text + "\n") })
	if err != nil {
		t.Fatal(err)
	}
	// And once more where the test runs.
	p := b.conf.Providers["fake"]
	p.Args, p.OutputFormat = []string{"stdin"}, "auto"
	b.conf.Providers["fake"] = p
	r.TaskID = "tested"
	tested, err := b.Run(t.Context(), r, func(ev task.Event) { events.WriteString(ev.Text + "\n") })
	if err != nil || tested.Test.Skipped {
		t.Fatal(err, pretty(tested))
	}
	all := b.records(t)
	all["result"], all["tested"], all["events"] = pretty(res), pretty(tested), events.String()
	for name, text := range all {
		for _, part := range []string{secret[:8], "THE-END", "open sesame", "and close"} {
			if strings.Contains(text, part) {
				t.Errorf("%s shows %q", name, part)
			}
		}
	}
	if !strings.Contains(events.String(), "[hidden]") || res.Failure == nil {
		t.Errorf("failure %+v, events\n%s", res.Failure, events.String())
	}
}

// TestWhatIsNoSecretShows: an ordinary long value is told as it is.
func TestWhatIsNoSecretShows(t *testing.T) {
	const id, base, path = "task-2026-11-21T07-08-09-123Z-abc123", "https://api.example.org/v1/models", "/srv/lib/python3/site-packages"
	b := newBench(t, plays("fake", "auto", "stdin", "out "+id+" "+base+" "+path))
	r := b.do(t, func(r *agentcli.Request) {
		r.TaskID, r.Env = id, map[string]string{"TASK_ID": id, "API_BASE_URL": base, "PYTHONPATH": path}
	})
	if want := id + " " + base + " " + path + "\n"; r.Result.Raw != want || r.TaskID != id {
		t.Errorf("got %s", pretty(r.Result))
	}
}
