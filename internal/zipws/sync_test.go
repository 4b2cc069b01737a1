package zipws

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
)

// odd is an archive with all that other programs put into one.
func odd(t testing.TB) []byte {
	stub := []byte("#!/bin/sh\nexec java -jar \"$0\"\n")
	extra := []byte{0x75, 0x78, 11, 0, 1, 4, 1, 2, 3, 4, 4, 5, 6, 7, 8}
	raw := zipOf(t, "the comment",
		file{"mimetype", "application/epub+zip", func(h *zip.FileHeader) { h.Method = zip.Store; h.Modified = time.Time{} }},
		file{"META-INF/", "", func(h *zip.FileHeader) { h.SetMode(os.ModeDir | 0o755) }},
		file{"META-INF/container.xml", "<container/>", func(h *zip.FileHeader) { h.SetMode(0o640); h.Comment = "an entry's comment"; h.Extra = extra }},
		file{"twice", "the first", nil},
		file{"stored.bin", strings.Repeat("stored ", 40), func(h *zip.FileHeader) { h.Method = zip.Store; h.SetMode(0o600); h.Extra = extra }},
		file{"text.txt", strings.Repeat("text\n", 100), func(h *zip.FileHeader) { h.SetMode(0o755); h.Comment = "text"; h.Extra = extra }},
		file{"twice", "the second", nil},
		file{"b\x81ld.txt", "code page 437", func(h *zip.FileHeader) { h.NonUTF8 = true }},
		file{"link", "text.txt", func(h *zip.FileHeader) { h.SetMode(os.ModeSymlink | 0o777) }},
		file{"last.txt", "last", nil})
	return append(stub, raw...)
}

func parsed(t testing.TB, raw []byte) *zipfile.Directory {
	t.Helper()
	d, err := readDirectory(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// span is the bytes of an entry.
func span(raw []byte, e *zipfile.Entry) []byte { return raw[e.Begin:e.End] }

// placeless is the record of an entry without its place.
func placeless(e *zipfile.Entry) string {
	r := bytes.Clone(e.Record())
	binary.LittleEndian.PutUint32(r[42:], 0)
	return string(r)
}

// front is what is in front of the first entry.
func front(raw []byte, d *zipfile.Directory) []byte {
	at := len(raw)
	for _, e := range d.Entries {
		at = min(at, int(e.Begin))
	}
	return raw[:at]
}

func TestUntouchedBytesStay(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		t.Run(fmt.Sprintf("lazy %v", lazy), func(t *testing.T) {
			s := newScratch(t)
			before := odd(t)
			s.put("a.jar", before)
			s.open("a.jar", OpenOptions{Lazy: lazy})
			s.write("text.txt", "shorter")
			s.write("stored.bin", "stored anew")
			s.write("dir/new.txt", "new")
			r, err := s.Sync(t.Context(), "", SyncOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Modified != 2 || r.Added != 1 || r.Deleted != 0 || r.Backup != s.path("a.bak.jar") {
				t.Errorf("%+v", r)
			}
			after := s.get("a.jar")
			old, now := parsed(t, before), parsed(t, after)
			if string(now.Comment) != "the comment" || !bytes.Equal(front(after, now), front(before, old)) {
				t.Errorf("comment %q, front %q", now.Comment, front(after, now))
			}
			if len(now.Entries) != len(old.Entries)+1 {
				t.Fatalf("%d entries", len(now.Entries))
			}
			for i := range old.Entries {
				a, b := &old.Entries[i], &now.Entries[i]
				switch a.Name {
				case "text.txt", "stored.bin":
					if b.Name != a.Name || b.Method != a.Method || b.Mode != a.Mode || string(b.Comment()) != string(a.Comment()) {
						t.Errorf("%s: method %d, mode %v, comment %q", b.Name, b.Method, b.Mode, b.Comment())
					}
					if !bytes.Contains(b.Extra(), []byte{0x75, 0x78, 11, 0, 1, 4}) || time.Since(b.Modified).Abs() > time.Hour {
						t.Errorf("%s: extra %x, time %v", b.Name, b.Extra(), b.Modified)
					}
				default:
					if !bytes.Equal(span(before, a), span(after, b)) || placeless(a) != placeless(b) {
						t.Errorf("%s is not as it was", a.Name)
					}
				}
			}
			if !bytes.Equal(s.get("a.bak.jar"), before) {
				t.Error("the backup is not the archive as it was")
			}
			if fi, err := os.Stat(s.path("a.jar")); err != nil || fi.Mode().Perm() != 0o640 {
				t.Errorf("%v, %v", fi.Mode(), err)
			}
			if st, err := s.Status(t.Context(), ""); err != nil || st.dirty() {
				t.Errorf("status %+v, %v", st, err)
			}
			listing(t, s.path("a.jar"))
			// The earlier entry of a name goes with the one that counts.
			s.must(s.Delete(t.Context(), "", "twice", false))
			if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
				t.Fatal(err)
			}
			if have := listing(t, s.path("a.jar")); strings.Contains(have, "twice") {
				t.Errorf("still there:\n%s", have)
			}
			s.leftovers()
		})
	}
}

func TestDryRunTellsTheSize(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", odd(t))
	s.open("a.zip", OpenOptions{})
	s.write("text.txt", strings.Repeat("other text\n", 1000))
	s.write("new.txt", "new")
	r, err := s.Sync(t.Context(), "", SyncOptions{DryRun: true})
	if err != nil || r.Estimated == nil || r.Synced {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if have := int64(len(s.get("a.zip"))); have != *r.Estimated {
		t.Errorf("%d bytes, the dry run said %d", have, *r.Estimated)
	}
}

// More entries than 16 bits count, as the records for large zips have it.
func TestManyEntries(t *testing.T) {
	var files []file
	for i := range 67_000 {
		files = append(files, file{name: fmt.Sprintf("d%d/f%d", i/1000, i), header: func(h *zip.FileHeader) { h.Method = zip.Store }})
	}
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", files...))
	s.open("a.zip", OpenOptions{Lazy: true})
	s.write("d0/f0", "written")
	s.must(s.Delete(t.Context(), "", "d1", true))
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(s.path("a.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if len(z.File) != 66_000 {
		t.Errorf("%d entries", len(z.File))
	}
	s.write("d2/more", "more")
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if have := s.read("d0/f0"); have != "written" {
		t.Errorf("%q", have)
	}
	if d := parsed(t, s.get("a.zip")); len(d.Entries) != 66_001 {
		t.Errorf("%d entries", len(d.Entries))
	}
}

func TestConflicts(t *testing.T) {
	source := odd(t)
	for name, c := range map[string]struct {
		meddle   func(s *scratch)
		conflict bool
	}{
		"touched": {func(s *scratch) { s.must(os.Chtimes(s.path("a.zip"), entryTime, entryTime)) }, false},
		"one bit of content, in place": {func(s *scratch) {
			raw := s.get("a.zip")
			i := bytes.Index(raw, []byte("stored stored"))
			raw[i] ^= 1
			s.put("a.zip", raw)
		}, true},
		"another archive":  {func(s *scratch) { s.put("a.zip", killLike(s.t)) }, true},
		"cut off":          {func(s *scratch) { s.put("a.zip", source[:len(source)/2]) }, true},
		"bytes at the end": {func(s *scratch) { s.put("a.zip", append(bytes.Clone(source), 0)) }, true},
		"replaced by the same": {func(s *scratch) {
			s.must(os.Remove(s.path("a.zip")))
			s.put("a.zip", source)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScratch(t)
			s.put("a.zip", source)
			s.open("a.zip", OpenOptions{})
			s.write("new.txt", "new")
			c.meddle(s)
			theirs := s.get("a.zip")
			_, err := s.Sync(t.Context(), "", SyncOptions{})
			if c.conflict {
				wantCode(t, err, ConflictDetected, "a.zip")
				if !bytes.Equal(s.get("a.zip"), theirs) {
					t.Error("the archive was changed")
				}
				if _, err = s.Sync(t.Context(), "", SyncOptions{Force: true}); err == nil && !bytes.Equal(s.get("a.bak.zip"), theirs) {
					t.Error("the backup is not theirs")
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			have := listing(t, s.path("a.zip"))
			for _, want := range []string{"mimetype 0 \"application/epub+zip\"\n", "text.txt 8 \"text\\n", "new.txt 8 \"new\"\n"} {
				if !strings.Contains(have, want) {
					t.Errorf("%q is missing in\n%s", want, have)
				}
			}
			s.leftovers()
		})
	}
}

func killLike(t testing.TB) []byte {
	return zipOf(t, "", file{name: "theirs.txt", content: "theirs"}, file{name: "link", content: "text.txt", header: func(h *zip.FileHeader) { h.SetMode(os.ModeSymlink | 0o777) }})
}

// What others do to the archive at the last moment is noticed, and so is a
// failure at any step.
func TestSyncTakesItselfBack(t *testing.T) {
	source := odd(t)
	for _, c := range []struct {
		name, step string
		then       func(s *scratch) error
	}{
		{"modified meanwhile", "flush archive", func(s *scratch) error { return os.WriteFile(s.path("a.zip"), []byte("theirs"), 0o640) }},
		{"no room for the backup", "back up", func(s *scratch) error { return os.Mkdir(s.path("a.bak.zip"), 0o755) }},
		{"the file is gone", "create archive", func(s *scratch) error {
			return os.Remove(filepath.Join(s.Data, "workspaces", "a", "contents", "new.txt"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScratch(t)
			s.put("a.zip", source)
			s.open("a.zip", OpenOptions{})
			s.write("new.txt", "new")
			done := false
			s.Workspaces.step = func(step string) {
				if step == c.step && !done {
					done = true
					if err := c.then(s); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := s.Sync(t.Context(), "", SyncOptions{}); err == nil || !done {
				t.Fatalf("err %v, done %v", err, done)
			}
			if have := s.get("a.zip"); !bytes.Equal(have, source) && string(have) != "theirs" {
				t.Error("the archive was changed")
			}
			list, err := s.Sessions(t.Context())
			if err != nil || len(list) != 1 || list[0].State != stateOpen {
				t.Errorf("%+v, %v", list, err)
			}
			s.leftovers()
		})
	}
}

// A cancelled sync, or opening, leaves nothing.
func TestCancelled(t *testing.T) {
	s := newScratch(t)
	source := odd(t)
	s.put("a.zip", source)
	ctx, cancel := context.WithCancel(t.Context())
	s.Workspaces.step = func(step string) {
		if step == "unpack file" || step == "pack file" {
			cancel()
		}
	}
	if _, err := s.Open(ctx, s.at("a.zip"), OpenOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
	s.Workspaces.step = func(string) {}
	s.open("a.zip", OpenOptions{})
	s.write("new.txt", "new")
	ctx, cancel = context.WithCancel(t.Context())
	s.Workspaces.step = func(step string) {
		if step == "pack file" {
			cancel()
		}
	}
	if _, err := s.Sync(ctx, "", SyncOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("sync: %v", err)
	}
	if !bytes.Equal(s.get("a.zip"), source) {
		t.Error("the archive was changed")
	}
	s.leftovers()
}

// A file that is changed behind the back of the tools, and made to look as it
// was, is found.
func TestChangesThatHide(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", odd(t))
	o := s.open("a.zip", OpenOptions{})
	name := filepath.Join(o.Path, "text.txt")
	fi, err := os.Stat(name)
	s.must(err)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	s.must(err)
	_, err = f.WriteString("TEXT")
	s.must(errors.Join(err, f.Close(), os.Chtimes(name, fi.ModTime(), fi.ModTime())))
	if st, err := s.Status(t.Context(), ""); err != nil || !slices.Equal(st.Modified, []string{"text.txt"}) {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestBackupsRotate(t *testing.T) {
	for _, unlinked := range []bool{false, true} {
		s := newScratch(t)
		s.Workspaces.unlinked = unlinked
		s.put("a.zip", odd(t))
		s.open("a.zip", OpenOptions{})
		var versions []string
		for i := range 5 {
			versions = append(versions, listing(t, s.path("a.zip")))
			s.write("n.txt", fmt.Sprint(i))
			if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for i, name := range []string{"a.bak.zip", "a.bak.2.zip", "a.bak.3.zip"} {
			if have := listing(t, s.path(name)); have != versions[4-i] {
				t.Errorf("%s is not version %d", name, 4-i)
			}
		}
		if have := entriesOf(t, s.dir); len(have) != 4 {
			t.Errorf("%v", have)
		}
	}
}

// Whatever is done to a session, the archive holds it after a sync; lazy or not.
func TestRandomWorkIsSynced(t *testing.T) {
	for seed := range uint64(longtest.Count(3, 12)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := newScratch(t)
		model := map[string]string{}
		var files []file
		for i := range 30 {
			f := file{name: fmt.Sprintf("d%d/e%d/f%d", rnd.IntN(3), rnd.IntN(3), i), content: strings.Repeat(fmt.Sprint(i), rnd.IntN(400))}
			if rnd.IntN(3) == 0 {
				f.header = func(h *zip.FileHeader) { h.Method = zip.Store }
			}
			files = append(files, f)
			model[f.name] = f.content
		}
		s.put("a.zip", zipOf(t, "", files...))
		s.open("a.zip", OpenOptions{Lazy: seed%2 == 0})
		for step := range 60 {
			known := slices.Sorted(maps.Keys(model))
			name := fmt.Sprintf("d%d/e%d/g%d", rnd.IntN(4), rnd.IntN(3), rnd.IntN(10))
			if len(known) > 0 && rnd.IntN(2) == 0 {
				name = known[rnd.IntN(len(known))]
			}
			switch rnd.IntN(6) {
			case 0, 1, 2:
				model[name] = fmt.Sprint("step ", step)
				s.write(name, model[name])
			case 3:
				if _, ok := model[name]; ok {
					s.must(s.Delete(t.Context(), "", Name(name), false))
					delete(model, name)
				}
			case 4:
				dir := filepath.ToSlash(filepath.Dir(name))
				err := s.Delete(t.Context(), "", Name(dir), true)
				if code, _ := Of(err); err != nil && code != PathNotFound {
					t.Fatal(err)
				}
				maps.DeleteFunc(model, func(n, _ string) bool { return strings.HasPrefix(n, dir+"/") })
			case 5:
				if step%2 == 0 {
					if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
						t.Fatal(err)
					}
				} else if step > 50 {
					if _, err := s.Path(t.Context(), "", nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			if have, ok := model[name]; ok && s.read(name) != have {
				t.Fatalf("seed %d, step %d: %s is %q, want %q", seed, step, name, s.read(name), have)
			}
		}
		items, err := s.List(t.Context(), "", "", true)
		s.must(err)
		var listed []string
		for _, i := range items {
			if i.Type == "file" {
				listed = append(listed, i.Name)
			}
		}
		slices.Sort(listed)
		if want := slices.Sorted(maps.Keys(model)); !slices.Equal(listed, want) {
			t.Errorf("seed %d: listed %v, want %v", seed, listed, want)
		}
		if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
			t.Fatal(err)
		}
		z, err := zip.OpenReader(s.path("a.zip"))
		s.must(err)
		held := map[string]string{}
		for _, f := range z.File {
			if strings.HasSuffix(f.Name, "/") {
				continue
			}
			r, err := f.Open()
			s.must(err)
			b, err := io.ReadAll(r)
			s.must(err)
			held[f.Name] = string(b)
		}
		z.Close()
		if !maps.Equal(held, model) {
			t.Errorf("seed %d: the archive holds %v, want %v", seed, held, model)
		}
		if st, err := s.Status(t.Context(), ""); err != nil || st.dirty() {
			t.Errorf("seed %d: %+v, %v", seed, st, err)
		}
	}
}

func TestUnsavedChangesAreListed(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", odd(t))
	s.open("a.zip", OpenOptions{})
	for i := range listed + 5 {
		s.write(fmt.Sprintf("new%02d", i), "new")
	}
	_, err := s.Workspaces.Close(t.Context(), "", CloseOptions{})
	wantCode(t, err, UnsavedChanges, "added new00", "added new19 and 5 more", "<Sync>", "<Discard>")
	if c, err := s.Workspaces.Close(t.Context(), "", CloseOptions{Discard: true}); err != nil || !c.Closed || c.Synced {
		t.Errorf("%+v, %v", c, err)
	}
	if !bytes.Equal(s.get("a.zip"), odd(t)) {
		t.Error("the archive was changed")
	}
}
