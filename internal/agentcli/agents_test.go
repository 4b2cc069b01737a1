package agentcli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/output"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
)

func TestAgentClientProtocol(t *testing.T) {
	for _, c := range []struct {
		name, how, permissions string
		ok                     bool
		class                  output.Class
		summary                string
		paths                  []string
	}{
		{"an edit", "", "edits", true, "", "answer: yes", []string{"note.txt"}},
		{"a command is refused", "execute", "edits", true, "", "answer: no", nil},
		{"a command is allowed", "execute", "all", true, "", "answer: yes", []string{"note.txt"}},
		{"nothing is allowed", "", "none", true, "", "answer: no", nil},
		{"an agent that stays", "stay", "edits", true, "", "answer: yes", []string{"note.txt"}},
		{"one that wants a login", "login", "edits", false, output.Auth, "", nil},
		{"one that dies", "die", "edits", false, output.Reported, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, both(plays("fake", "auto", "acp "+c.how), func(conf *config.Config) {
				p := conf.Providers["fake"]
				p.Type, p.Permissions = config.ACP, c.permissions
				conf.Providers["fake"] = p
			}))
			b.repository(t)
			var events []string
			r, err := b.Run(t.Context(), b.request(), func(ev task.Event) { events = append(events, ev.Kind) })
			if err != nil || r.OK != c.ok || r.Result.Summary != c.summary || !slices.Equal(r.Result.Paths, c.paths) && len(c.paths)+len(r.Result.Paths) > 0 {
				t.Errorf("%v %s", err, pretty(r))
			}
			if !c.ok && (r.Failure == nil || r.Failure.Class != c.class) {
				t.Errorf("failure %+v", r.Failure)
			}
			if c.ok && (r.Result.SessionID != "acp-1" || !slices.Equal(events, []string{"session", "text", "tool", "tool", "text"})) {
				t.Errorf("session %q, events %q", r.Result.SessionID, events)
			}
		})
	}
}

func TestHealthIsKnown(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "out x"))
	if known := b.Known(); len(known) != 0 {
		t.Errorf("before a check: %+v", known)
	}
	b.Warm()
	b.Warm()
	for len(b.Known()) < len(b.conf.Providers) {
		time.Sleep(2 * time.Millisecond)
	}
	i := slices.IndexFunc(b.Known(), func(h agentcli.Health) bool { return h.ID == "fake" })
	if h := b.Known()[i]; !h.OK || h.Version != "fakecli 1.2.3" {
		t.Errorf("%+v", h)
	}
}

func TestResultsFit(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "huge 2000000", "write a/"+strings.Repeat("long", 20)+" "+strings.Repeat("é\"\n", 20000)))
	b.repository(t)
	r := b.do(t, nil)
	raw, err := json.Marshal(r)
	if err != nil || len(raw) > 32<<10 || !r.OK {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	for _, name := range []string{"runner.stdout", "result.diff", "git.post.diff", "result.raw"} {
		if !slices.Contains(r.Truncated, name) {
			t.Errorf("%s is not in %v", name, r.Truncated)
		}
	}
	for name, text := range b.records(t) {
		if strings.HasSuffix(name, ".json") && strings.Contains(name, "audit") && len(text) < 1<<20 {
			t.Errorf("the audit takes %d bytes", len(text))
		}
	}
}

func TestProvidersDirectory(t *testing.T) {
	b := newBench(t, plays("fake", "auto", "stdin", "out x"))
	p := b.conf.Providers["fake"]
	b.write(t, "sub/x", "")
	p.Cwd = "sub"
	b.conf.Providers["fake"] = p
	if r := b.do(t, func(r *agentcli.Request) { r.DefaultCwd = true }); !r.OK || !strings.HasSuffix(r.Invocation.Cwd, "/sub") {
		t.Errorf("got %s", pretty(r))
	}
	p.Cwd = "/"
	b.conf.Providers["fake"] = p
	r := b.request()
	r.DefaultCwd = true
	if _, err := b.Run(t.Context(), r, nil); err == nil {
		t.Error("a provider's directory outside the allowed ones was used")
	}
}
