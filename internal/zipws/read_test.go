package zipws

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGrepReadsWhatIsText(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", file{name: "a.txt", content: "one needle\r\ntwo\nlast needle"}))
	s.open("a.zip", OpenOptions{})
	s.write("binary", "needle\x00needle")
	s.write("long.txt", strings.Repeat("äx", 100_000)+"needle"+strings.Repeat("yö", 100_000)+"\nshort needle\n")
	s.write("beyond.txt", strings.Repeat("z", longestLine)+"needle\nneedle at last\n")
	g, err := s.Grep(t.Context(), "", GrepOptions{Pattern: "needle$|needle y|needley"})
	s.must(err)
	var got []string
	for _, m := range g.Matches {
		if len(m.Text) > shownLine+4 || !strings.Contains(m.Text, "needle") {
			t.Errorf("%s:%d shows %d bytes: %.80q", m.File, m.Line, len(m.Text), m.Text)
		}
		got = append(got, m.File)
	}
	if want := "a.txt a.txt long.txt long.txt"; strings.Join(got, " ") != want || g.Total != 4 || g.Truncated {
		t.Errorf("%v, want %s", got, want)
	}
	if g, err := s.Grep(t.Context(), "", GrepOptions{Pattern: "NEEDLE", IgnoreCase: true, Glob: "**/*.txt", Max: 1}); err != nil || len(g.Matches) != 1 || !g.Truncated {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := s.Grep(t.Context(), "", GrepOptions{Pattern: "at last", Path: "beyond.txt"}); err != nil || len(g.Matches) != 1 || g.Matches[0].Line != 2 {
		t.Errorf("%+v, %v", g, err)
	}
	_, err = s.Grep(t.Context(), "", GrepOptions{Pattern: "x", Glob: "[a"})
	wantCode(t, err, InvalidParams, "glob")
}

// Consecutive parts of a text join without loss.
func TestPartsOfTextJoin(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", file{name: "a.txt", content: strings.Repeat("aä€😀\n", 20)}))
	for _, lazy := range []bool{false, true} {
		s.open("a.zip", OpenOptions{Lazy: lazy})
		want := s.read("a.txt")
		for size := int64(1); size < 12; size++ {
			var joined strings.Builder
			for at := int64(0); at < int64(len(want)); at += size {
				c, err := s.Content(t.Context(), "", "a.txt", ContentOptions{Offset: at, Limit: size})
				s.must(err)
				if c.Encoding != "utf-8" || c.Size != int64(len(want)) {
					t.Fatalf("%+v", c)
				}
				joined.WriteString(c.Content)
			}
			if joined.String() != want {
				t.Errorf("lazy %v: parts of %d bytes make %q", lazy, size, joined.String())
			}
		}
		_, err := s.Workspaces.Close(t.Context(), "", CloseOptions{})
		s.must(err)
	}
}

// Names that archives cannot carry, special files and our own temporary ones
// stay out of an archive.
func TestWhatStaysOut(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", zipOf(t, "", file{name: "a.txt", content: "a"}, file{name: ".conduit-abcdefghijkl.tmp", content: "looks like ours"}))
	o := s.open("a.zip", OpenOptions{})
	s.must(os.WriteFile(filepath.Join(o.Path, "bad\\name"), nil, 0o644))
	s.must(os.Mkdir(filepath.Join(o.Path, "empty"), 0o755))
	st, err := s.Status(t.Context(), "")
	s.must(err)
	if len(st.Added) != 1 || st.Added[0] != "empty/" || len(st.Deleted) != 0 || len(st.Warnings) != 1 {
		t.Errorf("%+v", st)
	}
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if have := listing(t, s.path("a.zip")); have != "a.txt 8 \"a\"\n.conduit-abcdefghijkl.tmp 8 \"looks like ours\"\nempty/ 0 \"\"\n" {
		t.Errorf("%s", have)
	}
}
