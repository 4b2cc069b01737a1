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
	"github.com/conduit-mcp/conduit-mcp/internal/rewrite"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
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
	off := journal.New(journal.Settings{}, slog.New(slog.DiscardHandler))
	return desk{&Files{off, rewrite.Engine{Writer: atomicfile.New(), MaxBytes: 50 << 20}}, dir, root}
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
	for what, size := range map[string]int{"small": 1, "large": 2 << 20} {
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
	large := strings.Repeat("x", 2<<20)
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

// Edits made at the same time wait for each other: all of them are made.
func TestEditsAtTheSameTime(t *testing.T) {
	for _, all := range []bool{false, true} {
		d := newDesk(t)
		d.write(t, "a", "")
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				list, err := d.Run(t.Context(), []Task{d.task("a", fmt.Sprintf("line %d\n", i), nil)}, Options{AllOrNothing: all})
				if err != nil || list[0].Failed() {
					t.Errorf("%v %+v", err, list)
				}
			})
		}
		wg.Wait()
		got := d.content(t, "a")
		for i := range 20 {
			if line := fmt.Sprintf("line %d\n", i); strings.Count(got, line) != 1 {
				t.Errorf("%q is there %d times", line, strings.Count(got, line))
			}
		}
	}
}

func TestManyFilesInBatches(t *testing.T) {
	d := newDesk(t)
	var tasks []Task
	for i := range 522 {
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
		d.write(t, "b", strings.Repeat("x", 2<<20))
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
