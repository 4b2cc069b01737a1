package zipws

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// foreign writes a file of others below the data directory; a name with a slash at
// the end is a directory.
func (s *scratch) foreign(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.Data, filepath.FromSlash(name))
	if strings.HasSuffix(name, "/") {
		s.must(os.MkdirAll(path, 0o755))
		return
	}
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte(content), 0o644))
}

// snapshot is all that is below a directory, one line each, of which keep is true.
func snapshot(t testing.TB, dir string, keep func(name string) bool) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !keep(filepath.ToSlash(name)) {
			return err
		}
		content := ""
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		_, err = fmt.Fprintf(&out, "%s %s %q\n", name, d.Type(), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// metadata as the original program writes it.
const originalMetadata = `{
  "id": "5b1a2f5e-8f1d-4b66-9f0e-2f7a30f1c9aa",
  "name": "report",
  "source_path": %q,
  "created_at": "2026-01-30T11:00:00Z",
  "last_synced_at": null,
  "last_accessed_at": "2026-01-30T11:05:00Z",
  "state": "open",
  "zip_hash_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "extracted_size_bytes": 11,
  "file_count": 1
}
`

// Where the data directory has a workspaces/ and a locks/ of others, nothing in
// them is changed, whatever is done.
func TestWhatIsOfOthersStays(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", file{name: "one.txt", content: "one"}))
	s.foreign("workspaces/project/src/main.go", "package main")
	s.foreign("workspaces/empty/", "")
	s.foreign("workspaces/README", "what this is")
	s.foreign("workspaces/.gone-fishing/photo.jpg", "a fish")
	s.foreign("workspaces/.gone-AAAAAAAAAAAAAAAAAAAAAAAAAA/photo.jpg", "another fish")
	s.foreign("workspaces/.gone-empty/", "")
	s.foreign("workspaces/half/contents/file.txt", "half-made by the original program")
	s.foreign("workspaces/half/original.zip", "PK")
	s.foreign("workspaces/site/metadata.json", `{"title": "somebody's site", "name": "site"}`)
	s.foreign("workspaces/broken/metadata.json", `{"title":`)
	s.foreign("workspaces/report/metadata.json", fmt.Sprintf(originalMetadata, s.path("a.zip")))
	s.foreign("workspaces/report/contents/one.txt", "unsaved work")
	s.foreign("workspaces/report/original.zip", string(s.get("a.zip")))
	s.foreign("locks/database", "held by process 4711")
	s.foreign("locks/empty", "")
	theirs := func(name string) bool {
		parts := strings.Split(name, "/")
		return len(parts) > 1 && parts[1] != "ours" && parts[1] != allLock
	}
	before := snapshot(t, s.Data, theirs)
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"sessions", func() error { list, err := s.Sessions(t.Context()); s.none(list); return err }},
		{"open", func() error { s.open("a.zip", OpenOptions{Name: "ours"}); return nil }},
		{"a name that is taken", func() error {
			_, err := s.Open(t.Context(), s.at("a.zip"), OpenOptions{Name: "project"})
			wantCode(t, err, NameCollision, "project")
			return nil
		}},
		{"write", func() error { s.write("new.txt", "new"); return nil }},
		{"sync", func() error { _, err := s.Sync(t.Context(), "", SyncOptions{}); return err }},
		{"close", func() error { _, err := s.Close(t.Context(), "ours", CloseOptions{}); return err }},
		{"prune", func() error { _, err := s.Prune(t.Context(), PruneOptions{All: true}); return err }},
		{"another process", func() error { _, err := scratchIn(t, filepath.Dir(s.dir)).Sessions(t.Context()); return err }},
	} {
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if now := snapshot(t, s.Data, theirs); now != before {
			t.Fatalf("%s: there is\n%s\nwas\n%s", c.name, now, before)
		}
	}
}

func (s *scratch) none(list []Session) {
	s.t.Helper()
	if len(list) > 0 {
		s.t.Errorf("%+v", list)
	}
}

// A session of the original program is told as what it is, and nothing is done
// with it.
func TestSessionOfTheOriginalProgram(t *testing.T) {
	s := newScratch(t)
	s.put("report.zip", zipOf(t, "", file{name: "one.txt", content: "one"}))
	s.foreign("workspaces/report/metadata.json", fmt.Sprintf(originalMetadata, s.path("report.zip")))
	s.foreign("workspaces/report/contents/one.txt", "unsaved work")
	for _, ref := range []string{"report", "5b1a2f5e-8f1d-4b66-9f0e-2f7a30f1c9aa", "5b1a2f"} {
		for name, do := range map[string]func() error{
			"status": func() error { _, err := s.Status(t.Context(), ref); return err },
			"write":  func() error { return s.Write(t.Context(), ref, "one.txt", []byte("x"), false) },
			"sync":   func() error { _, err := s.Sync(t.Context(), ref, SyncOptions{Force: true}); return err },
			"close":  func() error { _, err := s.Close(t.Context(), ref, CloseOptions{Discard: true}); return err },
			"path":   func() error { _, err := s.Path(t.Context(), ref, nil); return err },
		} {
			t.Run(name, func(t *testing.T) { wantCode(t, do(), SessionNotFound, "report", "another program") })
		}
	}
	_, err := s.Status(t.Context(), "")
	wantCode(t, err, NoSessions)
	if o := s.open("report.zip", OpenOptions{}); o.Name != "report-2" {
		t.Errorf("the new session is called %s", o.Name)
	}
	if b, err := os.ReadFile(filepath.Join(s.Data, "workspaces/report/contents/one.txt")); err != nil || string(b) != "unsaved work" {
		t.Errorf("%q, %v", b, err)
	}
}

// Sessions that others have made do not count against the limit.
func TestOthersDoNotCount(t *testing.T) {
	s := newScratch(t)
	s.MaxOpen = 1
	s.put("a.zip", zipOf(t, "", file{name: "one.txt", content: "one"}))
	s.foreign("workspaces/project/file", "file")
	s.open("a.zip", OpenOptions{})
	_, err := s.Open(t.Context(), s.at("a.zip"), OpenOptions{Name: "more"})
	wantCode(t, err, LimitExceeded, "1 session is open")
}

func TestDataDirectoryWithoutLocks(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", file{name: "one.txt", content: "one"}))
	s.foreign("workspaces/", "")
	if _, err := s.Sessions(t.Context()); err != nil {
		t.Error(err)
	}
	_, err := s.Status(t.Context(), "")
	wantCode(t, err, NoSessions)
	s.open("a.zip", OpenOptions{})
	s.must(os.RemoveAll(filepath.Join(s.Data, "locks")))
	if list, err := s.Sessions(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if have := s.read("one.txt"); have != "one" {
		t.Errorf("%q", have)
	}
	s.must(os.RemoveAll(filepath.Join(s.Data, "locks")))
	if _, err := s.Close(t.Context(), "", CloseOptions{}); err != nil {
		t.Error(err)
	}
}

// A session that an earlier version has opened, without a mark, goes on.
func TestSessionOfAnEarlierVersion(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", file{name: "one.txt", content: "one"}))
	o := s.open("a.zip", OpenOptions{})
	s.must(os.Remove(filepath.Join(s.Data, workspacesDir, o.Name, markName)))
	s.write("one.txt", "two")
	if r, err := s.Close(t.Context(), "", CloseOptions{Sync: true}); err != nil || !r.Synced {
		t.Errorf("%+v, %v", r, err)
	}
	if list := entriesOf(t, filepath.Join(s.Data, workspacesDir)); len(list) != 0 {
		t.Errorf("%v is left", list)
	}
	if have := listing(t, s.path("a.zip")); !strings.Contains(have, `"two"`) {
		t.Error(have)
	}
}

// What has our mark but no metadata that can be read is told of, and pruned.
func TestBrokenMetadata(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", file{name: "one.txt", content: "one"}))
	o := s.open("a.zip", OpenOptions{})
	s.must(os.WriteFile(filepath.Join(s.Data, workspacesDir, o.Name, metadataName), []byte(`{"id":`), 0o600))
	_, err := s.Status(t.Context(), o.Name)
	wantCode(t, err, SessionNotFound, o.Name, "<Prune>")
	r, err := s.Prune(t.Context(), PruneOptions{All: true, DryRun: true})
	if err != nil || len(r.Pruned) != 1 || r.Pruned[0].Name != o.Name {
		t.Fatalf("%+v, %v", r, err)
	}
	r, err = s.Prune(t.Context(), PruneOptions{All: true})
	if err != nil || len(r.Pruned) != 1 || r.Freed != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	s.open("a.zip", OpenOptions{Name: o.Name})
}
