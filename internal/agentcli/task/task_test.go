package task_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// holdVar has another process of the tests hold a task of the directory.
const holdVar = "TASK_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdVar); dir != "" {
		hold(dir)
	}
	os.Exit(m.Run())
}

// hold is a server that runs a task until it is killed.
func hold(dir string) {
	s, err := open(dir)
	var release func()
	if err == nil {
		release, err = s.Create(&task.Record{TaskID: "held", Cwd: dir, Status: task.Running})
	}
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("held\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	release()
}

func open(dir string) (*task.Store, error) {
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		return nil, err
	}
	cwd, err := r.Resolve(dir)
	if err != nil {
		return nil, err
	}
	d, err := audit.Open(cwd, ".state/tasks", true)
	return &task.Store{Dir: d}, err
}

func store(t *testing.T) *task.Store {
	t.Helper()
	s, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Dir.Close() })
	return s
}

func code(err error) fault.Code {
	c, _ := fault.Of(err)
	return c
}

func names(t *testing.T, s *task.Store) []string {
	t.Helper()
	entries, err := os.ReadDir(s.Dir.Abs)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestIDs(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "task-2026-11-21T07-08-09-123Z-abc123": true, "A_b.c-d": true, strings.Repeat("x", 100): true,
		"": false, strings.Repeat("x", 101): false, ".a": false, "-a": false, "a..b": false, "a.": false, "a.lock": false, "a/b": false, "a\\b": false, "a b": false, "é": false, "a\n": false,
	} {
		if err := task.CheckID("taskId", id); (err == nil) != ok || !ok && code(err) != fault.InvalidParameter {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestEnded(t *testing.T) {
	for status, ended := range map[string]bool{task.Queued: false, task.Running: false, task.Succeeded: true, task.Failed: true, task.Cancelled: true, task.Interrupted: true} {
		if task.Ended(status) != ended {
			t.Errorf("%s: %t", status, !ended)
		}
	}
}

func TestLifeOfARecord(t *testing.T) {
	s := store(t)
	r := &task.Record{TaskID: "a", Provider: "p", Status: task.Queued, Events: []task.Event{{Seq: 1, Kind: "text", Text: "x"}}}
	release, err := s.Create(r)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // while it runs, and when it is over
		if _, err := s.Create(r); code(err) != fault.FSAlreadyExists {
			t.Errorf("used twice: %v", err)
		}
	}
	r.Status = task.Running
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load("a")
	if err != nil || got.Status != task.Running || len(got.Events) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if s.Asked("a") {
		t.Error("nobody asked to cancel it")
	}
	if err := s.Ask("a"); err != nil || !s.Asked("a") {
		t.Errorf("asked in vain: %v", err)
	}
	files := snapshot.Snapshot{Files: map[string]snapshot.File{"x": {Hash: "h", Mode: "644", Size: 1}}}
	if err := s.SaveFiles("a", files); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Files("a"); err != nil || !reflect.DeepEqual(got, files) {
		t.Errorf("%+v, %v", got, err)
	}
	if held := s.Held(); !slices.Equal(held, []string{"a"}) {
		t.Errorf("held: %q", held)
	}
	if _, ok := s.Orphan("a"); ok {
		t.Error("it is no orphan")
	}
	release()
	if got := names(t, s); !slices.Equal(got, []string{"a.json"}) {
		t.Errorf("left: %q", got)
	}
	if fi, err := os.Stat(s.Dir.Path("a.json")); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if held := s.Held(); len(held) > 0 {
		t.Errorf("still held: %q", held)
	}
}

func TestList(t *testing.T) {
	s := store(t)
	for _, name := range []string{"b.json", "a.json", "a.files", "c.lock", ".x.json", "a..b.json", "sub.json/x"} {
		full := s.Dir.Path(name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := s.List(); err != nil || !slices.Equal(ids, []string{"a", "b", "sub"}) {
		t.Errorf("%q, %v", ids, err)
	}
}

func TestWhatIsNoRecord(t *testing.T) {
	s := store(t)
	other, _ := json.Marshal(task.Record{TaskID: "b"})
	for _, content := range []string{"", "{", "[]", string(other)} {
		if err := s.Dir.Replace("a.json", []byte(content)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load("a"); code(err) != fault.FSReadFailed {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := s.Load("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestOrphan: a task is one's own again as soon as its server is gone, not
// before.
func TestOrphan(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdVar+"="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Dir.Close()
	if _, ok := s.Orphan("held"); ok || s.Abandoned("held") {
		t.Error("taken from a server that runs it")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !s.Abandoned("held") {
		t.Error("nobody is there, and yet it is not abandoned")
	}
	release, ok := s.Orphan("held")
	if !ok {
		t.Fatal("its server is gone, and yet it is held")
	}
	if _, ok := s.Orphan("held"); ok {
		t.Error("held by two")
	}
	release()
	if got := names(t, s); !slices.Equal(got, []string{"held.json"}) {
		t.Errorf("left: %q", got)
	}
}
