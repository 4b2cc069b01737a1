package edit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A desk is a directory with files to edit.
type desk struct {
	*Files
	dir  string
	root *os.Root
}

func newDesk(t *testing.T) desk {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	off := journal.New(journal.Settings{Dir: journal.Off}, func(string) (string, bool) { return "", false }, slog.New(slog.DiscardHandler))
	return desk{&Files{&change.Files{Writer: atomicfile.New(), Journal: off}, 50 << 20}, dir, root}
}

func (d desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d desk) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(d.path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d desk) content(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(d.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// task puts text in front of a file; meanwhile is called after it was read.
func (d desk) task(name, text string, meanwhile func()) Task {
	return Task{Path: name, Place: place.Place{Root: d.root, Name: name, Abs: d.path(name)}, Edit: func(context.Context, *textedit.Doc, *Result) ([]textedit.Splice, error) {
		if meanwhile != nil {
			meanwhile()
		}
		return []textedit.Splice{{New: text}}, nil
	}}
}

func TestFilesThatChangeMeanwhileAreLeftAlone(t *testing.T) {
	for what, size := range map[string]int{"small": 1, "large": 2 * streamed} {
		d := newDesk(t)
		d.write(t, "a", strings.Repeat("a", size))
		d.write(t, "b", strings.Repeat("b", size))
		list, err := d.Run(t.Context(), []Task{
			d.task("a", "new ", func() { d.write(t, "a", "of another") }),
			d.task("b", "new ", func() { os.Remove(d.path("b")) }),
		}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.ErrorCode != fault.PreconditionFailed || !strings.Contains(r.ErrorMessage, "changed while it was edited") || r.Diff != "" {
				t.Errorf("%s: %+v", what, r)
			}
		}
		if got := d.content(t, "a"); got != "of another" {
			t.Errorf("%s: it holds %.20q", what, got)
		}
		if _, err := os.Stat(d.path("b")); err == nil {
			t.Errorf("%s: a removed file is there again", what)
		}
	}
}

func TestAllOrNothingPutsBack(t *testing.T) {
	d := newDesk(t)
	large := strings.Repeat("x", 2*streamed)
	d.write(t, "a", "old a")
	d.write(t, "b", large)
	d.write(t, "c", "old c")
	d.write(t, "d", large)
	tasks := []Task{d.task("a", "new ", nil), d.task("b", "new ", nil), d.task("c", "new ", func() { d.write(t, "c", "of another") }), d.task("d", "new ", nil)}
	list, err := d.Run(t.Context(), tasks, Options{AllOrNothing: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "old a", "b": large, "c": "of another", "d": large} {
		if got := d.content(t, name); got != want {
			t.Errorf("%s holds %.20q", name, got)
		}
	}
	for i, r := range list {
		say := "is left as it was, since the call is all_or_nothing and c failed"
		if i == 2 {
			say = "changed while it was edited"
		}
		if r.ErrorCode != fault.PreconditionFailed || !strings.Contains(r.ErrorMessage, say) {
			t.Errorf("%+v", r)
		}
	}
}

// What changed again before it could be put back is left, and that is said.
func TestWhatCannotBePutBackIsTold(t *testing.T) {
	d := newDesk(t)
	d.write(t, "a", "old a")
	w := &work{Task: &Task{Path: "a", Place: place.Place{Root: d.root, Name: "a", Abs: d.path("a")}}, Result: &Result{ETag: "of what was written"}, old: []byte("older"), written: true}
	if err := d.putBack(t.Context(), []*work{w}); err != nil {
		t.Fatal(err)
	}
	code, message := fault.Of(w.err)
	if code != fault.FSWriteFailed || !strings.Contains(message, "could not be put back") || d.content(t, "a") != "old a" {
		t.Errorf("%s %s; it holds %q", code, message, d.content(t, "a"))
	}
}

// Of edits made at the same time none is lost: each is either made or refused.
func TestEditsAtTheSameTime(t *testing.T) {
	d := newDesk(t)
	d.write(t, "a", "")
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := map[string]bool{}
	for i := range 20 {
		wg.Go(func() {
			line := fmt.Sprintf("line %d\n", i)
			list, err := d.Run(t.Context(), []Task{d.task("a", line, nil)}, Options{})
			if err != nil || list[0].Failed() && list[0].ErrorCode != fault.PreconditionFailed {
				t.Errorf("%v %+v", err, list)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made[line] = !list[0].Failed()
		})
	}
	wg.Wait()
	got := d.content(t, "a")
	count := 0
	for line, ok := range made {
		if ok {
			count++
		}
		if strings.Contains(got, line) != ok {
			t.Errorf("%q was made: %t, and is there: %t", line, ok, !ok)
		}
	}
	if count == 0 {
		t.Error("no edit was made")
	}
}

func TestManyFilesInBatches(t *testing.T) {
	d := newDesk(t)
	var tasks []Task
	for i := range batchTasks + 10 {
		name := fmt.Sprintf("f%d", i)
		d.write(t, name, "x")
		tasks = append(tasks, d.task(name, "new ", nil))
	}
	list, err := d.Run(t.Context(), tasks, Options{})
	if err != nil || len(list) != len(tasks) {
		t.Fatal(err)
	}
	for i, r := range list {
		if r.Failed() || d.content(t, r.Path) != "new x" || r.Path != tasks[i].Path {
			t.Fatalf("%d: %+v", i, r)
		}
	}
}

func TestCancelledCallsWriteNothing(t *testing.T) {
	for _, all := range []bool{false, true} {
		d := newDesk(t)
		ctx, cancel := context.WithCancel(t.Context())
		d.write(t, "a", "old")
		d.write(t, "b", strings.Repeat("x", 2*streamed))
		_, err := d.Run(ctx, []Task{d.task("a", "new ", nil), d.task("b", "new ", cancel)}, Options{AllOrNothing: all})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("all %t: %v", all, err)
		}
		if d.content(t, "a") != "old" || d.content(t, "b")[0] != 'x' {
			t.Errorf("all %t: something was written", all)
		}
	}
}

func TestNamesInDiffs(t *testing.T) {
	for _, c := range []struct{ path, below, want string }{
		{"a/b.txt", "proj/a/b.txt", "a/b.txt"}, {"./a//b.txt", "a/b.txt", "a/b.txt"}, {"../x/b.txt", "x/b.txt", "x/b.txt"},
		{"/srv/x/b.txt", "x/b.txt", "x/b.txt"}, {"~/b.txt", "b.txt", "b.txt"}, {"~b.txt", "~b.txt", "~b.txt"},
	} {
		if got := nameIn(c.path, c.below); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}
