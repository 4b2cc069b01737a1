package undo

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestGoldens(t *testing.T) { optest.Golden(t, registry.New(desc, build)) }

// A scratch is a bench with the journal of the op.
type scratch struct {
	testing.TB
	*optest.Bench
	j     *journal.Journal
	roots *roots.Roots
	w     *atomicfile.Writer
}

func newScratch(t testing.TB, env map[string]string) *scratch {
	t.Helper()
	state := t.TempDir()
	all := map[string]string{"CONDUIT_JOURNAL_DIR": state}
	for k, v := range env {
		all[k] = v
	}
	s := &scratch{TB: t, w: atomicfile.New()}
	s.j = s.journal(state)
	s.Bench = optest.New(t, registry.New(desc, func(cfg settings, env *registry.Env) (registry.Func[params, result], error) {
		_, err := registry.Shared(env, func(*registry.Env) (*change.Files, error) { return &change.Files{Writer: s.w, Journal: s.j}, nil })
		if err != nil {
			return nil, err
		}
		return build(cfg, env)
	}), all)
	var err error
	if s.roots, _, err = roots.New(roots.Config{Allowed: []string{s.Dir, s.Out}, Project: s.Dir}); err != nil {
		t.Fatal(err)
	}
	return s
}

// journal is that of a server with that directory.
func (s *scratch) journal(state string) *journal.Journal {
	j := journal.New(journal.Settings{Dir: state, Max: 64 << 20}, slog.New(slog.DiscardHandler))
	s.Cleanup(func() { j.Close() })
	return j
}

// change runs do as one change and returns its id.
func (s *scratch) change(op string, do func(p *journal.Part)) string {
	s.Helper()
	c := s.j.Begin(op)
	p := c.Part()
	do(p)
	mark := p.Mark()
	c.Done()
	if mark.ChangeID == "" {
		s.Fatalf("%s was not kept", op)
	}
	return mark.ChangeID
}

func (s *scratch) put(p *journal.Part, path, content string) {
	s.Helper()
	at, err := s.roots.Resolve(path)
	if err == nil {
		j := &atomicfile.Job{Place: at, Content: content, Keep: p}
		if err = s.w.Run(s.Context(), []*atomicfile.Job{j}, nil); err == nil {
			err = j.Err
		}
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scratch) delete(p *journal.Part, path string) {
	s.Helper()
	at, err := s.roots.Resolve(path)
	if err == nil {
		_, err = filetree.Delete(s.Context(), s.w, at, true, p, nil)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// call runs the op and returns what it answers, also as text without what
// differs from run to run.
func (s *scratch) call(args string) (r result, text string) {
	s.Helper()
	text = s.Text(s, args)
	if err := json.Unmarshal([]byte(text), &r); err != nil && !strings.Contains(args, "lean") {
		s.Fatalf("%v: %s", err, text)
	}
	return r, strings.ReplaceAll(strings.ReplaceAll(text, s.Dir, "$DIR"), s.Out, "$OUT")
}

func (s *scratch) in(name string) string { return filepath.Join(s.Dir, name) }

func (s *scratch) read(name string) string {
	s.Helper()
	b, err := os.ReadFile(s.in(name))
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

func (s *scratch) write(name, content string) {
	s.Helper()
	if err := os.WriteFile(s.in(name), []byte(content), 0o644); err != nil {
		s.Fatal(err)
	}
}

func TestUndo(t *testing.T) {
	s := newScratch(t, nil)
	s.write("a.txt", "one\ntwo\nthree\n")
	id := s.change("write.put", func(p *journal.Part) {
		s.put(p, s.in("a.txt"), "one\n2\nthree\n")
		s.put(p, s.in("new.txt"), "new\n")
	})
	dry, _ := s.call(`{"dry_run": true}`)
	const diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-2\n+two\n three\n"
	if dry.Undone != id || dry.ChangeID != "" || !strings.HasPrefix(dry.Message, "Dry run: would undo the write.put of ") || s.read("new.txt") != "new\n" {
		t.Errorf("dry run: %+v", dry)
	}
	r, _ := s.call(`{}`)
	if r.Status != "success" || r.Undone != id || r.ChangeID == "" || r.Undo != nil || !strings.Contains(r.Diff, diff) || !strings.Contains(r.Diff, "+++ /dev/null") || r.Diff != dry.Diff {
		t.Errorf("undo: %+v", r)
	}
	if len(r.Files) != 2 || r.Files[0].Path != s.in("a.txt") || r.Files[0].Action != "restored" || len(r.Files[0].ETag) != 22 || r.Files[1].Action != "removed" || r.Files[1].ETag != "" {
		t.Errorf("files: %+v", r.Files)
	}
	if s.read("a.txt") != "one\ntwo\nthree\n" {
		t.Errorf("a.txt holds %q", s.read("a.txt"))
	}
	if _, err := os.Lstat(s.in("new.txt")); err == nil {
		t.Error("new.txt is still there")
	}
	again, _ := s.call(`{"change_id": "` + r.ChangeID + `"}`)
	if again.Undone != r.ChangeID || s.read("a.txt") != "one\n2\nthree\n" || s.read("new.txt") != "new\n" {
		t.Errorf("redo: %+v", again)
	}
	if _, text := s.call(`{"change_id": "` + id + `"}`); !strings.Contains(text, "ERR_PRECONDITION_FAILED") || !strings.Contains(text, r.ChangeID) {
		t.Errorf("a change undone already: %s", text)
	}
}

func TestUndoOfADirectoryIsTold(t *testing.T) {
	s := newScratch(t, nil)
	if err := os.MkdirAll(s.in("d/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("d/a", "a")
	s.write("d/e/b", "b\x00")
	s.change("write.delete", func(p *journal.Part) { s.delete(p, s.in("d")) })
	r, _ := s.call(`{}`)
	if len(r.Files) != 1 || r.Files[0] != (file{Path: s.in("d"), Action: "recreated"}) || !strings.Contains(r.Message, s.in("d")+" comes with 2 files.") || s.read("d/e/b") != "b\x00" {
		t.Errorf("%+v", r)
	}
}

func TestLean(t *testing.T) {
	s := newScratch(t, nil)
	s.write("a.txt", "old\n")
	s.change("edit.apply", func(p *journal.Part) { s.put(p, s.in("a.txt"), "new\n") })
	_, text := s.call(`{"view": "lean"}`)
	first, diff, _ := strings.Cut(text, "\n")
	if !regexp.MustCompile(`^change_id: [0-9a-v]{11}$`).MatchString(first) || diff != "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-new\n+old\n" {
		t.Errorf("%s", text)
	}
	s.write("bin", "\x00")
	s.change("write.delete", func(p *journal.Part) { s.delete(p, s.in("bin")) })
	if _, text := s.call(`{"view": "lean", "dry_run": true}`); text != "recreated: $DIR/bin\n" {
		t.Errorf("%s", text)
	}
}

func TestRefused(t *testing.T) {
	s := newScratch(t, map[string]string{"CONDUIT_DENIED_PATHS": "*.key"})
	expect := func(args string, words ...string) {
		t.Helper()
		_, text := s.call(args)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %s\ndoes not say %s", args, text, w)
			}
		}
	}
	expect(`{}`, "ERR_FS_NOT_FOUND", "no change to undo")
	expect(`{"change_id": "00000000000"}`, "ERR_FS_NOT_FOUND", "there is no change 00000000000")

	s.write("a", "old")
	id := s.change("write.put", func(p *journal.Part) { s.put(p, s.in("a"), "new") })
	s.write("a", "theirs")
	expect(`{}`, "ERR_PRECONDITION_FAILED", "nothing was undone", "$DIR/a;")
	if s.read("a") != "theirs" {
		t.Errorf("a holds %q", s.read("a"))
	}
	s.write("a", "new")
	if err := os.Rename(s.Dir, s.Dir+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.Out, s.Dir); err != nil {
		t.Fatal(err)
	}
	if _, text := s.call(`{"change_id": "` + id + `"}`); !strings.Contains(text, "ERR_FS_") || strings.Contains(text, "success") {
		t.Errorf("the directory became a link: %s", text)
	}
	if err := os.Remove(s.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.Dir+"2", s.Dir); err != nil {
		t.Fatal(err)
	}

	// Another server may use more.
	s.j = s.journal(s.j.Dir())
	outside := s.change("write.put", func(p *journal.Part) { s.put(p, filepath.Join(s.Out, "f"), "x") })
	denied := s.change("write.put", func(p *journal.Part) { s.put(p, s.in("b.key"), "x") })
	for _, id := range []string{outside, denied} {
		expect(`{"change_id": "`+id+`"}`, "ERR_FS_ACCESS_DENIED")
	}
	if r, _ := s.call(`{}`); r.Undone != id || s.read("a") != "old" {
		t.Errorf("the last change of this server: %+v", r)
	}
}
