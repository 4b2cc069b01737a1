package agentcli_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A victim is what a forged record would have the server destroy: a process, a
// working tree of the user's, a branch, and a file outside.
type victim struct {
	*bench
	process  *exec.Cmd
	ended    chan error
	worktree string
	outside  string
	tree     string
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{bench: newBench(t, plays("fake", "auto", "stdin", "write note.txt hi")), ended: make(chan error, 1)}
	v.repository(t)
	v.tree = strings.TrimSpace(v.git(t, "rev-parse", "HEAD^{tree}"))
	v.git(t, "branch", "precious")
	v.worktree = filepath.Join(filepath.Dir(v.dir), "theirs")
	v.git(t, "worktree", "add", "-q", v.worktree, "precious")
	v.outside = filepath.Join(filepath.Dir(v.dir), "outside")
	if err := os.MkdirAll(v.outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.outside, "secret"), []byte("hidden words\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	v.process = exec.Command(agenttest.Fake, "hang")
	v.process.Env = append(os.Environ(), "VICTIM=yes", "CONDUIT_AGENT_TASK=another-task-ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	if err := v.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { v.ended <- v.process.Wait() }()
	t.Cleanup(func() { _ = v.process.Process.Kill() })
	return v
}

// useAll gives every tool the task.
func (v *victim) useAll(t *testing.T, id string) (told string) {
	t.Helper()
	list, _, err := v.List(t.Context(), v.cwd, 100)
	told += pretty(list) + fmt.Sprint(err)
	s, err := v.Read(t.Context(), id, "", 0, v.cwd)
	told += pretty(s) + fmt.Sprint(err)
	s, err = v.Cancel(t.Context(), id, v.cwd)
	told += pretty(s) + fmt.Sprint(err)
	a, err := v.Apply(t.Context(), id, v.cwd)
	told += pretty(a) + fmt.Sprint(err)
	r, err := v.Run(t.Context(), v.request(), nil)
	told += pretty(r) + fmt.Sprint(err)
	s, err = v.Read(t.Context(), id, "", 0, v.cwd)
	return told + pretty(s) + fmt.Sprint(err)
}

func (v *victim) check(t *testing.T, name, told string) {
	t.Helper()
	select {
	case err := <-v.ended:
		t.Errorf("%s: a process that was no agent's was ended: %v", name, err)
	default:
	}
	if strings.Contains(told, "hidden words") {
		t.Errorf("%s: a file outside was told:\n%s", name, told)
	}
	if _, err := os.Stat(filepath.Join(v.worktree, "README.md")); err != nil {
		t.Errorf("%s: the user's working tree is gone: %v", name, err)
	}
	if v.git(t, "for-each-ref", "refs/heads/precious") == "" {
		t.Errorf("%s: the user's branch is gone", name)
	}
}

// forgeries are what a record may say.
func (v *victim) forgeries() map[string]map[string]any {
	worktree := map[string]any{"dir": filepath.Join(v.dir, ".mcp-conduit", "worktrees", "x")}
	return map[string]map[string]any{
		"a mark of somebody":           {"mark": "VICTIM=yes"},
		"the mark of another task":     {"mark": "CONDUIT_AGENT_TASK=another-task-ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
		"no mark but a name":           {"mark": "PATH"},
		"another directory":            {"cwd": v.outside, "hashed": true},
		"a working tree of the user's": {"worktree": map[string]any{"dir": v.worktree}, "before": map[string]any{"tree": v.tree}},
		"a branch": {"status": "succeeded", "worktree": map[string]any{"ref": "refs/heads/precious", "applied": false},
			"before": map[string]any{"tree": v.tree}, "after": map[string]any{"tree": v.tree}},
		"a file outside":        {"worktree": map[string]any{"dir": v.outside}, "hashed": true},
		"options of git":        {"before": map[string]any{"tree": "--output=" + filepath.Join(v.outside, "written")}},
		"options of git, later": {"status": "succeeded", "worktree": worktree, "before": map[string]any{"tree": v.tree}, "after": map[string]any{"tree": "--output=" + filepath.Join(v.outside, "written")}},
		"files of its own":      {"before": map[string]any{"files": map[string]any{}}},
	}
}

func forged(id, cwd string, fields map[string]any) []byte {
	r := map[string]any{"taskId": id, "provider": "fake", "cwd": cwd, "status": "running", "background": true, "startedAt": "2026-11-21T07:08:09.123Z"}
	for k, v := range fields {
		r[k] = v
	}
	b, _ := json.Marshal(r)
	return b
}

// TestRecordsInTheTree: what stands in a working tree as a record is none.
func TestRecordsInTheTree(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nobody is found by a mark
	}
	v := newVictim(t)
	for name, fields := range v.forgeries() {
		for _, file := range []string{"x.json", "x.files"} {
			b := forged("x", v.dir, fields)
			if file == "x.files" {
				b = []byte(`{"files":{}}`)
			}
			v.write(t, filepath.Join(".mcp-conduit", "tasks", file), string(b))
		}
		v.write(t, ".mcp-conduit/tasks/x.lock", "")
		told := v.useAll(t, "x")
		v.check(t, name, told)
		if !strings.Contains(told, "there is no task x here") || strings.Contains(told, "2026-11-21T07:08:09") {
			t.Errorf("%s: it was taken for a record:\n%s", name, told)
		}
		if t.Failed() {
			break
		}
	}
}

// TestRecordsThatDisagree: nor is one in the right place that says what no
// record of this task in this directory can say.
func TestRecordsThatDisagree(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	v := newVictim(t)
	v.do(t, func(r *agentcli.Request) { r.TaskID = "real" })
	dir := filepath.Dir(find(t, v.state(), "real.json"))
	for name, fields := range v.forgeries() {
		if err := os.WriteFile(filepath.Join(dir, "x.json"), forged("x", v.dir, fields), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x.files"), []byte(`{"files":{}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x.lock"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		told := v.useAll(t, "x")
		v.check(t, name, told)
		if !strings.Contains(told, "the record of task x cannot be read") {
			t.Errorf("%s: it was taken for a record:\n%s", name, told)
		}
		if entries, _ := os.ReadDir(v.outside); len(entries) != 1 {
			t.Errorf("%s: something was written outside", name)
		}
		if t.Failed() {
			break
		}
	}
}

func find(t *testing.T, dir, name string) (found string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no %s in %s: %v", name, dir, err)
	}
	return found
}

// listing is every file below dirs with its content.
func listing(t *testing.T, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%s %q\n", path, content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestLookingSettlesNothing: tools that only read tell that a server is gone and
// leave the rest to those that may write.
func TestLookingSettlesNothing(t *testing.T) {
	b := newBench(t, nil)
	b.repository(t)
	id := killedServer(t, b, true)
	before := listing(t, b.dir, b.state())
	s, err := b.Read(t.Context(), id, "", 0, b.cwd)
	if err != nil || s.Status != task.Interrupted || s.Result != nil || len(s.Events) == 0 || !strings.Contains(s.Events[len(s.Events)-1].Text, "task_cancel") {
		t.Errorf("%v %s", err, pretty(s))
	}
	if list, _, err := b.List(t.Context(), b.cwd, 10); err != nil || len(list) != 1 || list[0].Status != task.Interrupted {
		t.Errorf("%v %s", err, pretty(list))
	}
	if after := listing(t, b.dir, b.state()); after != before {
		t.Errorf("looking changed files:\n%s\nbefore:\n%s", after, before)
	}
	if runtime.GOOS == "linux" && len(running(t, "CONDUIT_AGENT_TASK="+id+"-")) == 0 {
		t.Error("looking ended what was left")
	}
	s, err = b.Cancel(t.Context(), id, b.cwd)
	if err != nil || s.Status != task.Interrupted || s.Result == nil || !slices.Equal(s.Result.Result.Paths, []string{"note.txt", "started"}) {
		t.Errorf("%v %s", err, pretty(s))
	}
	if left := running(t, "CONDUIT_AGENT_TASK="+id+"-"); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// TestApplyStaysInside: changes that lead out of the allowed directories, or
// into denied ones, are not applied, and none with them.
func TestApplyStaysInside(t *testing.T) {
	outer := newBench(t, nil)
	outer.write(t, "in/private/kept", "kept\n")
	outer.repository(t)
	for name, steps := range map[string][]string{
		"outside": {"write ../up.txt hi", "write here.txt hi"},
		"denied":  {"write private/kept changed", "write here.txt hi"},
		"deleted": {"remove private/kept", "write here.txt hi"},
	} {
		b := benchIn(t, filepath.Join(outer.dir, "in"), plays("fake", "auto", append([]string{"stdin"}, steps...)...))
		r, _, err := roots.New(roots.Config{Allowed: []string{b.dir}, Home: b.dir, Project: b.dir, Denied: []string{filepath.Join(b.dir, "private")}})
		if err != nil {
			t.Fatal(err)
		}
		if b.cwd, err = r.Resolve(b.dir); err != nil {
			t.Fatal(err)
		}
		if res := b.do(t, func(r *agentcli.Request) { r.TaskID, r.Worktree = name, true }); !res.OK {
			t.Fatal(pretty(res))
		}
		_, err = b.Apply(t.Context(), name, b.cwd)
		if code, _ := fault.Of(err); code != fault.FSAccessDenied && code != fault.FSPathResolution {
			t.Errorf("%s: %v", name, err)
		}
		if status := outer.git(t, "status", "--porcelain", "--", ":!in/.mcp-conduit"); status != "" {
			t.Errorf("%s: changed\n%s", name, status)
		}
	}
}
