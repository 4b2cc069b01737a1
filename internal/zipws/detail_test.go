package zipws

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// To change permissions is a change, which leaves the content as it is, byte for
// byte.
func TestPermissionsAreSynced(t *testing.T) {
	s := newScratch(t)
	before := odd(t)
	s.put("a.jar", before)
	o := s.open("a.jar", OpenOptions{})
	s.must(os.Chmod(filepath.Join(o.Path, "text.txt"), 0o600)) // was 0755
	s.must(os.Chmod(filepath.Join(o.Path, "META-INF/container.xml"), 0o755))
	s.write("last.txt", "last, and more")
	s.must(os.Chmod(filepath.Join(o.Path, "last.txt"), 0o755))
	st, err := s.Status(t.Context(), "")
	if want := []string{"META-INF/container.xml", "last.txt", "text.txt"}; err != nil || !slices.Equal(st.Modified, want) {
		t.Errorf("%+v, %v; want %v", st, err, want)
	}
	changes, err := s.Diff(t.Context(), "", "text.txt", 3)
	if err != nil || len(changes) != 1 || changes[0].Diff != "old mode 100755\nnew mode 100600\n" {
		t.Errorf("%+v, %v", changes, err)
	}
	_, err = s.Close(t.Context(), "", CloseOptions{})
	wantCode(t, err, UnsavedChanges, "text.txt")
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	after := s.get("a.jar")
	old, now := parsed(t, before), parsed(t, after)
	for name, mode := range map[string]fs.FileMode{"text.txt": 0o600, "META-INF/container.xml": 0o755, "last.txt": 0o755, "stored.bin": 0o600} {
		a, b := &old.Entries[old.Index()[name]], &now.Entries[now.Index()[name]]
		if b.Mode != mode {
			t.Errorf("%s has %v, want %v", name, b.Mode, mode)
		}
		if name != "last.txt" && !bytes.Equal(span(before, a), span(after, b)) {
			t.Errorf("the content of %s is another", name)
		}
		if string(a.Extra()) != string(b.Extra()) && name != "last.txt" || string(a.Comment()) != string(b.Comment()) {
			t.Errorf("%s: extra %x, comment %q", name, b.Extra(), b.Comment())
		}
	}
	if st, err := s.Status(t.Context(), ""); err != nil || st.dirty() {
		t.Errorf("after: %+v, %v", st, err)
	}
	listing(t, s.path("a.jar"))
}

// An archive of a system without permissions gets them where they are set.
func TestPermissionsOfAnArchiveWithoutAny(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", file{"run.sh", "#!/bin/sh\n", func(h *zip.FileHeader) { h.CreatorVersion, h.ExternalAttrs = 20, 0x20 }}))
	o := s.open("a.zip", OpenOptions{})
	s.must(os.Chmod(filepath.Join(o.Path, "run.sh"), 0o755))
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if d := parsed(t, s.get("a.zip")); d.Entries[0].Mode != 0o755 {
		t.Errorf("%v", d.Entries[0].Mode)
	}
}

// What lies behind the end of an archive stays.
func TestBytesBehindTheEndStay(t *testing.T) {
	s := newScratch(t)
	tail := []byte("a signature that another program has put there")
	s.put("a.zip", append(zipOf(t, "comment", file{name: "one.txt", content: "one"}), tail...))
	s.open("a.zip", OpenOptions{})
	s.write("two.txt", "two")
	for range 2 {
		if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
			t.Fatal(err)
		}
		if have := s.get("a.zip"); !bytes.HasSuffix(have, append([]byte("comment"), tail...)) {
			t.Errorf("ends in %q", have[max(0, len(have)-80):])
		}
		s.write("three.txt", "three")
	}
}

// An entry that was stored since it could not get smaller is packed once it can;
// one that was stored for its own sake stays so.
func TestStoredEntriesThatGrow(t *testing.T) {
	stored := func(h *zip.FileHeader) { h.Method = zip.Store }
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "",
		file{"mimetype", "application/epub+zip", stored},
		file{"empty.txt", "", stored},
		file{"short.txt", "short", stored},
		file{"resources.arsc", strings.Repeat("text that was not packed\n", 50), stored}))
	s.open("a.zip", OpenOptions{})
	long := strings.Repeat("a line that packs well\n", 1000)
	for _, name := range []string{"empty.txt", "short.txt", "resources.arsc"} {
		s.write(name, long)
	}
	s.write("mimetype", "application/vnd.oasis.opendocument.text")
	s.write("tiny.txt", "tiny")
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	have := map[string]uint16{}
	for _, e := range parsed(t, s.get("a.zip")).Entries {
		have[e.Name] = e.Method
	}
	if want := map[string]uint16{"mimetype": 0, "empty.txt": 8, "short.txt": 8, "resources.arsc": 0, "tiny.txt": 8}; fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", have, want)
	}
	listing(t, s.path("a.zip"))
}

// The size of a session is limited whatever is written, and what is deleted
// makes room.
func TestWritesWithinTheLimit(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		t.Run(fmt.Sprintf("lazy %v", lazy), func(t *testing.T) {
			s := newScratch(t)
			s.put("a.zip", zipOf(t, "", file{name: "one.txt", content: strings.Repeat("1", 600)}))
			s.open("a.zip", OpenOptions{Lazy: lazy, MaxSize: 1000})
			s.write("two.txt", strings.Repeat("2", 300))
			err := s.Write(t.Context(), "", "three.txt", bytes.Repeat([]byte("3"), 200), false)
			wantCode(t, err, LimitExceeded, "1000")
			s.write("one.txt", strings.Repeat("1", 500)) // in place of 600
			s.write("three.txt", strings.Repeat("3", 200))
			s.must(s.Delete(t.Context(), "", "two.txt", false))
			s.write("four.txt", strings.Repeat("4", 300))
			fresh := scratchIn(t, filepath.Dir(s.dir))
			err = fresh.Write(t.Context(), "", "five.txt", []byte("5"), false)
			wantCode(t, err, LimitExceeded, "1000")
		})
	}
}

// Directories that only the names of entries tell are there in a lazy session
// too, and nothing is left of a file that was made and deleted.
func TestLazyAnswersAlike(t *testing.T) {
	status := map[bool]string{}
	for _, lazy := range []bool{false, true} {
		s := newScratch(t)
		s.put("a.zip", zipOf(t, "", file{name: "docs/deep/one.txt", content: "one"}, file{name: "src/", content: ""}, file{name: "src/two.txt", content: "two"}))
		s.open("a.zip", OpenOptions{Lazy: lazy})
		var out strings.Builder
		tell := func() {
			st, err := s.Status(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%v %v %v %d\n", st.Modified, st.Added, st.Deleted, st.Unchanged)
		}
		for _, name := range []string{"docs/new.txt", "docs/deep/new.txt", "src/new.txt", "fresh/new.txt"} {
			s.write(name, "new")
		}
		tell()
		for _, name := range []string{"docs/new.txt", "docs/deep/new.txt", "src/new.txt"} {
			s.must(s.Delete(t.Context(), "", Name(name), false))
		}
		s.must(s.Delete(t.Context(), "", "fresh", true))
		tell()
		s.must(s.Delete(t.Context(), "", "docs/deep/one.txt", false))
		tell()
		status[lazy] = out.String()
	}
	if status[true] != status[false] {
		t.Errorf("lazy:\n%s\neager:\n%s", status[true], status[false])
	}
}

// A search tells which files it could not read, and whether a glob chose any.
func TestGrepTellsWhatItLeftOut(t *testing.T) {
	raw := zipOf(t, "", file{name: "good.txt", content: "the word"}, file{name: "bad.txt", content: "the word, in a file that is damaged"})
	d := parsed(t, raw)
	raw[d.Entries[1].End-20] ^= 0xff
	s := newScratch(t)
	s.put("a.zip", raw)
	s.open("a.zip", OpenOptions{Lazy: true})
	g, err := s.Grep(t.Context(), "", GrepOptions{Pattern: "word"})
	if err != nil || len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0], "bad.txt") || g.Matches[len(g.Matches)-1].File != "good.txt" {
		t.Errorf("%+v, %v", g, err)
	}
	for glob, files := range map[string]int{"/good.txt": 1, "./good.txt": 1, "**/good.txt": 1, "good.*": 1} {
		if g, err := s.Grep(t.Context(), "", GrepOptions{Pattern: "word", Glob: glob}); err != nil || g.Total != files || len(g.Warnings) != 0 {
			t.Errorf("%s: %+v, %v", glob, g, err)
		}
	}
	g, err = s.Grep(t.Context(), "", GrepOptions{Pattern: "word", Glob: "src/*.go"})
	if err != nil || len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0], "src/*.go") {
		t.Errorf("%+v, %v", g, err)
	}
	for _, glob := range []string{"../*.txt", "docs//*.txt", "docs/./x", "a/../b", "docs/"} {
		_, err := s.Grep(t.Context(), "", GrepOptions{Pattern: "word", Glob: glob})
		wantCode(t, err, InvalidParams, "match nothing")
	}
}

// A long line is marked where it was cut.
func TestCutLinesAreMarked(t *testing.T) {
	s := newScratch(t)
	long := strings.Repeat("a", 2000) + "word" + strings.Repeat("b", 2000)
	s.put("a.zip", zipOf(t, "", file{name: "long.txt", content: long + "\nword" + strings.Repeat("c", 2000) + "\n" + strings.Repeat("d", 2000) + "word\nword\n"}))
	s.open("a.zip", OpenOptions{})
	g, err := s.Grep(t.Context(), "", GrepOptions{Pattern: "word"})
	if err != nil || g.Total != 4 {
		t.Fatalf("%+v, %v", g, err)
	}
	for i, want := range []struct{ front, back bool }{{true, true}, {false, true}, {true, false}, {false, false}} {
		text := g.Matches[i].Text
		if strings.HasPrefix(text, "…") != want.front || strings.HasSuffix(text, "…") != want.back || !strings.Contains(text, "word") {
			t.Errorf("%d: %.20q … %.20q", i, text, text[max(0, len(text)-20):])
		}
	}
}

// Archives of Windows tools separate directories by backslashes.
func TestBackslashesInNames(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		s := newScratch(t)
		raw := zipOf(t, "", file{name: `docs\`, content: ""}, file{name: `docs\one.txt`, content: "one"}, file{name: `docs\two.txt`, content: "two"})
		s.put("a.zip", raw)
		o := s.open("a.zip", OpenOptions{Lazy: lazy})
		if len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0], "backslash") {
			t.Errorf("%v", o.Warnings)
		}
		if have := s.read("docs/one.txt"); have != "one" {
			t.Errorf("%q", have)
		}
		s.write("docs/one.txt", "1")
		if r, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil || r.Modified != 1 || r.Added+r.Deleted != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if have, want := listing(t, s.path("a.zip")), "docs\\ 0 \"\"\ndocs\\one.txt 8 \"1\"\ndocs\\two.txt 8 \"two\"\n"; have != want && strings.Replace(have, `docs\ 8`, `docs\ 0`, 1) != want {
			t.Errorf("%s", have)
		}
	}
}

// Names that lead outside are told as such.
func TestZipSlipIsTraversal(t *testing.T) {
	s := newScratch(t)
	for _, name := range []string{"../evil", "a/../../evil", "/etc/evil", `..\evil`, `a\..\..\evil`, "C:/evil", `C:\evil`, `\\host\share`, ".."} {
		refused(t, s, zipOf(t, "", file{name: "good", content: "good"}, file{name: name, content: "evil"}), PathTraversal)
	}
}
