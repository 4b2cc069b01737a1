package pack

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
)

var both = []Format{Zip, TarGz}

// oddNames are names that archives must carry.
var oddNames = []string{
	"plain", "with space", "käse", "日本語", "emoji😀", "-dash", "dot.", ".hidden", "new\nline", "tab\t", "quote\"'", "*?[]{}", "a:b", "%2e%2e", "~",
	strings.Repeat("l", 255), strings.Repeat("é", 127), "CON", "...", "e\u0301", "\u00e9",
}

// A forest makes random trees.
type forest struct {
	t    testing.TB
	rand *rand.Rand
	dirs []string
	all  []string
}

func (f *forest) time() time.Time {
	switch f.rand.IntN(6) {
	case 0:
		return time.Unix(f.rand.Int64N(1<<31), 0)
	case 1:
		return time.Unix(-f.rand.Int64N(1<<31), 0) // back to 1901
	case 2:
		return time.Unix(1<<31+f.rand.Int64N(4<<30), 0) // on to 2174
	}
	return time.Unix(1_700_000_000+f.rand.Int64N(1<<20), f.rand.Int64N(1e9))
}

func (f *forest) content() []byte {
	switch f.rand.IntN(40) {
	case 0, 3, 4, 5:
		return nil
	case 1:
		b := make([]byte, f.rand.IntN(3*blockSize))
		for i := range b {
			b[i] = byte(f.rand.Uint32())
		}
		return b
	case 2:
		return bytes.Repeat([]byte("all work and no play\n"), f.rand.IntN(3*blockSize/20))
	}
	return bytes.Repeat([]byte(fmt.Sprintln(f.rand.Uint64())), 1+f.rand.IntN(200))
}

// grow fills the directory dir.
func (f *forest) grow(dir string, level int) {
	f.dirs = append(f.dirs, dir)
	for n := range 2 + f.rand.IntN(9) {
		name := oddNames[f.rand.IntN(len(oddNames))]
		if f.rand.IntN(2) == 0 {
			name = fmt.Sprintf("f%d", n)
		}
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		switch k := f.rand.IntN(10); {
		case k < 3 && level < 5 && len(path) < 2500:
			must(f.t, os.Mkdir(path, 0o755))
			f.grow(path, level+1)
		case k == 3 && len(f.all) > 0:
			target, err := filepath.Rel(dir, f.all[f.rand.IntN(len(f.all))])
			must(f.t, err)
			must(f.t, os.Symlink(target, path))
			f.all = append(f.all, path)
			continue
		default:
			must(f.t, os.WriteFile(path, f.content(), 0o600))
		}
		f.all = append(f.all, path)
	}
}

// setAttributes gives all their permissions and times, directories last.
func (f *forest) setAttributes() {
	for _, path := range f.all {
		if fi, err := os.Lstat(path); err == nil && fi.Mode().IsRegular() {
			must(f.t, os.Chmod(path, []os.FileMode{0o644, 0o600, 0o755, 0o400, 0o640}[f.rand.IntN(5)]))
			at := f.time()
			must(f.t, os.Chtimes(path, at, at))
		}
	}
	for _, dir := range slices.Backward(f.dirs) {
		at := f.time()
		must(f.t, os.Chtimes(dir, at, at))
		must(f.t, os.Chmod(dir, []os.FileMode{0o755, 0o700, 0o500}[f.rand.IntN(3)]))
	}
}

func TestRoundTripOfRandomTrees(t *testing.T) {
	for _, seed := range []uint64{2, 0, 3, 4, 7, 6, 5, 1}[:longtest.Count(3, 8)] { // the smallest first
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newScratch(t)
			f := &forest{t: t, rand: rand.New(rand.NewPCG(seed, 1))}
			must(t, os.Mkdir(s.path("tree"), 0o755))
			f.grow(s.path("tree"), 0)
			f.setAttributes()
			want := s.tree("tree")
			for _, format := range both {
				made, err := s.create("a."+string(format), CreateOptions{Format: format, Recursive: true}, "tree")
				must(t, err)
				if made.Entries != int64(len(want)) || made.Links+made.Names+made.Unreadable+made.Changed > 0 {
					t.Errorf("%s: %+v, want %d entries", format, made, len(want))
				}
				to := "to-" + string(format)
				done, err := s.extract("a."+string(format), to, ExtractOptions{})
				must(t, err)
				if done.Count != len(want) {
					t.Errorf("%s: %+v, want %d", format, done, len(want))
				}
				if have := s.tree(to + "/tree"); !slices.Equal(have, want) {
					t.Errorf("%s: %s", format, difference(have, want))
				}
				// Into a destination that exists, over what is there.
				_, err = s.extract("a."+string(format), to, ExtractOptions{Overwrite: true})
				must(t, err)
				if have := s.tree(to + "/tree"); !slices.Equal(have, want) {
					t.Errorf("%s, again: %s", format, difference(have, want))
				}
			}
		})
	}
}

// difference shows the first lines that differ.
func difference(have, want []string) string {
	for i := range max(len(have), len(want)) {
		var h, w string
		if i < len(have) {
			h = have[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if h != w {
			return fmt.Sprintf("%.300s\nwant %.300s", h, w)
		}
	}
	return ""
}
