package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// listed reads an archive with the standard library: name, mode and content or
// target of each entry, in order.
func (s scratch) listed(name string) []string {
	s.t.Helper()
	b := []byte(s.read(name))
	var list []string
	if z, err := zip.NewReader(bytes.NewReader(b), int64(len(b))); err == nil {
		for _, f := range z.File {
			r, err := f.Open()
			must(s.t, err)
			content, err := io.ReadAll(r)
			must(s.t, err)
			list = append(list, fmt.Sprintf("%s %v %s", f.Name, f.Mode(), content))
		}
		return list
	}
	g, err := gzip.NewReader(bytes.NewReader(b))
	must(s.t, err)
	t := tar.NewReader(g)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		must(s.t, err)
		content, err := io.ReadAll(t)
		must(s.t, err)
		list = append(list, fmt.Sprintf("%s %v %s", h.Name, h.FileInfo().Mode(), string(content)+h.Linkname))
	}
	_, err = io.Copy(io.Discard, g)
	must(s.t, err)
	return list
}

func (s scratch) wantListed(name string, want ...string) {
	s.t.Helper()
	if have := s.listed(name); !slices.Equal(have, want) {
		s.t.Errorf("%s holds\n%q, want\n%q", name, have, want)
	}
}

func TestCreate(t *testing.T) {
	for _, f := range both {
		s := newScratch(t)
		s.write("src/b", []byte("2"))
		s.write("src/a/x", []byte("1"))
		must(t, os.Mkdir(s.path("src/empty"), 0o700))
		must(t, os.Chmod(s.path("src/b"), 0o640))
		must(t, os.Symlink("a/x", s.path("src/l")))
		must(t, os.Symlink(s.path("src/a"), s.path("src/la")))
		s.write("src/.conduit-abcdefghijkl.tmp", []byte("ours"))
		s.write("README", nil)
		r, err := s.create("made/a", CreateOptions{Format: f, Recursive: true}, "src", "README")
		must(t, err)
		if r.Entries != 8 || r.Message() != "Packed entries: 8." {
			t.Errorf("%+v", r)
		}
		s.wantListed("made/a", "src/ drwxr-xr-x ", "src/a/ drwxr-xr-x ", "src/a/x -rw-r--r-- 1", "src/b -rw-r----- 2", "src/empty/ drwx------ ", "src/l Lrwxrwxrwx a/x", "src/la Lrwxrwxrwx a", "README -rw-r--r-- ")
		// Not recursive: links to what is not packed are replaced by the content.
		r, err = s.create("made/b", CreateOptions{Format: f}, "src")
		must(t, err)
		s.wantListed("made/b", "src/ drwxr-xr-x ", "src/b -rw-r----- 2", "src/l -rw-r--r-- 1")
	}
}

func TestLinksInSources(t *testing.T) {
	for _, f := range both {
		s := newScratch(t)
		s.write("d/sub/f", []byte("1"))
		s.write("other/g", []byte("2"))
		s.write("other/deep/h", []byte("3"))
		must(t, os.WriteFile(s.path("../out/secret"), []byte("secret"), 0o644))
		for link, target := range map[string]string{
			"d/detour": "sub/../sub/f", "d/up": "../d/sub", "d/file": "../other/g", "d/tree": "../other", "d/sub/outside": "../../../out/secret",
			"d/sub/out": "../../../out", "d/gone": "nothing", "d/far": "../nothing", "d/loop": "loop", "d/all": "..", "other/back": "../d",
		} {
			must(t, os.Symlink(target, s.path(link)))
		}
		r, err := s.create("a", CreateOptions{Format: f, Recursive: true}, "d")
		must(t, err)
		s.wantListed("a", "d/ drwxr-xr-x ", "d/detour Lrwxrwxrwx sub/f", "d/file -rw-r--r-- 2", "d/gone Lrwxrwxrwx nothing", "d/sub/ drwxr-xr-x ", "d/sub/f -rw-r--r-- 1",
			"d/tree/ drwxr-xr-x ", "d/tree/deep/ drwxr-xr-x ", "d/tree/deep/h -rw-r--r-- 3", "d/tree/g -rw-r--r-- 2", "d/up Lrwxrwxrwx sub")
		if r.Links != 6 || strings.Contains(s.read("a"), "secret") {
			t.Errorf("%+v", r)
		}
		if _, err := s.extract("a", "to", ExtractOptions{}); err != nil {
			t.Errorf("what was packed cannot be unpacked: %v", err)
		}
	}
}

func TestArchiveIsNotInItself(t *testing.T) {
	for _, f := range both {
		s := newScratch(t)
		s.write("d/f", []byte("1"))
		s.write("d/a", []byte("the archive of yesterday"))
		must(t, os.Link(s.path("d/a"), s.path("d/twin")))
		must(t, os.Symlink("../d/a", s.path("l")))
		must(t, os.Symlink("../d/a", s.path("d/l")))
		for range 2 {
			_, err := s.create("d/a", CreateOptions{Format: f, Recursive: true}, "d", "f")
			must(t, err)
			if have := s.listed("d/a"); have[1] != "d/f -rw-r--r-- 1" || slices.ContainsFunc(have, func(e string) bool { return strings.HasPrefix(e, "d/a ") }) {
				t.Errorf("%q", have)
			}
		}
		_, err := s.create("d/a", CreateOptions{Format: f, Recursive: true}, "l")
		wantCode(t, err, fault.ArchiveRead)
	}
}

func TestWhatCannotBePacked(t *testing.T) {
	for _, f := range both {
		s := newScratch(t, "*.key")
		s.write("d/f", []byte("1"))
		s.write("d/x.key", []byte("secret"))
		s.write(`d/back\slash`, []byte("1"))
		if err := os.WriteFile(s.path("d/")+"/latin\xe4", nil, 0o600); err != nil {
			t.Logf("no such names here: %v", err)
		}
		r, err := s.create("a", CreateOptions{Format: f, Recursive: true}, "d", "none", "d/x.key", "../out/f")
		must(t, err)
		s.wantListed("a", "d/ drwxr-xr-x ", "d/f -rw-r--r-- 1")
		if r.Denied != 1 || r.Names == 0 || len(r.Skipped) != 3 || r.Skipped[0] != s.path("none") {
			t.Errorf("%+v", r)
		}
		for _, part := range []string{"denied by a rule of this server: 1", "names that not every system can unpack"} {
			if !strings.Contains(r.Message(), part) {
				t.Errorf("%q lacks %q", r.Message(), part)
			}
		}
	}
}

func TestTreesThatAreTooDeep(t *testing.T) {
	s := newScratch(t)
	root, err := os.OpenRoot(s.dir)
	must(t, err)
	for range entryname.MaxLevels + 5 {
		must(t, root.Mkdir("d", 0o755))
		sub, err := root.OpenRoot("d")
		must(t, err)
		root.Close()
		root = sub
	}
	root.Close()
	_, err = s.create("a", CreateOptions{Format: Zip, Recursive: true}, "d")
	wantCode(t, err, fault.TooDeep)
	if _, err := os.Lstat(s.path("a")); err == nil {
		t.Error("an archive was left")
	}
}

func TestLargeFiles(t *testing.T) {
	random := make([]byte, 3*blockSize+17)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for _, f := range both {
		s := newScratch(t)
		s.write("d/random", random)
		s.write("d/text", bytes.Repeat([]byte("some text that repeats, "), 300_000))
		s.write("d/exact", random[:2*blockSize])
		s.write("d/odd", random[:blockSize+1])
		_, err := s.create("a", CreateOptions{Format: f, Recursive: true}, "d")
		must(t, err)
		have := s.listed("a")
		for i, name := range []string{"d", "d/exact", "d/odd", "d/random", "d/text"} {
			if want := name; !strings.HasPrefix(have[i], want) {
				t.Fatalf("%.40q, want %s", have[i], want)
			}
			if name == "d" {
				continue
			}
			if _, content, _ := strings.Cut(have[i], "-- "); content != s.read(name) {
				t.Errorf("%s: %s has another content", f, name)
			}
		}
		if size := int64(len(s.read("a"))); size > 7*blockSize {
			t.Errorf("%s: what cannot be compressed grew to %d", f, size)
		}
		_, err = s.extract("a", "to", ExtractOptions{})
		must(t, err)
		if s.read("to/d/random") != string(random) {
			t.Error("unpacked to another content")
		}
	}
}

// Files change while they are packed: what is done after the first entries
// changes those that follow.
func TestFilesThatChange(t *testing.T) {
	for _, f := range both {
		s := newScratch(t)
		for n := range 300 {
			s.write(fmt.Sprintf("d/%03d", n), bytes.Repeat([]byte("x"), 20_000))
		}
		for _, name := range []string{"y-cut", "y-gone", "z-cut", "z-grown"} {
			s.write("d/"+name, bytes.Repeat([]byte("0123456789"), 800_000))
		}
		once := false
		r, err := s.create("a", CreateOptions{Format: f, Recursive: true, Progress: func(int64) {
			if once {
				return
			}
			once = true
			must(t, os.Truncate(s.path("d/y-cut"), 5))
			must(t, os.Remove(s.path("d/y-gone")))
			must(t, os.Truncate(s.path("d/z-cut"), 3_000_000))
			h, err := os.OpenFile(s.path("d/z-grown"), os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			defer h.Close()
			_, err = h.Write(make([]byte, 1000))
			must(t, err)
		}}, "d")
		must(t, err)
		if have := s.listed("a"); len(have) < 304 {
			t.Errorf("%s: %d entries, %+v", f, len(have), r)
		}
		if _, err := s.extract("a", "to", ExtractOptions{}); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// A file may change between any two reads; what was read then makes a valid
// archive still.
func TestALargeFileThatIsCutWhileItIsRead(t *testing.T) {
	for _, f := range both {
		s := newScratch(t)
		s.write("f", bytes.Repeat([]byte("0123456789"), 1_000_000))
		at, out := s.at("f"), s.path("a")
		to, err := os.Create(out)
		must(t, err)
		tl := &tally{}
		l := newLine(t.Context(), 2, 2)
		st := stock{line: l, tally: tl}
		var p packer = newTarGzWriter(to, &st)
		if f == Zip {
			p = newZipWriter(to, &st)
		}
		c := collector{ctx: t.Context(), tally: tl, emit: func(e entry) error {
			// The size in the tar's header is that of the open file, so it is
			// cut once the first blocks are on their way.
			go func() { os.Truncate(s.path("f"), 1_500_000) }()
			return p.large(e)
		}}
		_, err = c.source(at, "f")
		must(t, l.close(err))
		must(t, p.end())
		must(t, to.Close())
		if have := s.listed("a"); len(have) != 1 {
			t.Errorf("%q", have)
		}
	}
}

func TestCancelledPacking(t *testing.T) {
	for _, f := range both {
		s := newScratch(t)
		for n := range 500 {
			s.write(fmt.Sprintf("d/%d", n), bytes.Repeat([]byte("x"), 20_000))
		}
		s.write("a", []byte("old"))
		ctx, cancel := context.WithCancel(t.Context())
		src := s.at("d")
		_, err := Create(ctx, atomicfile.New(), s.at("a"), []Source{{Place: src, Asked: src.Abs}}, CreateOptions{Format: f, Recursive: true, Progress: func(n int64) { cancel() }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if s.read("a") != "old" {
			t.Error("the archive was replaced")
		}
		if list, _ := os.ReadDir(s.dir); len(list) != 2 {
			t.Errorf("%v is left", list)
		}
	}
}

func TestSourcesAreNamedOnce(t *testing.T) {
	s := newScratch(t)
	s.write("a/x", []byte("1"))
	s.write("b/x", []byte("2"))
	for _, sources := range [][]string{{"a/x", "b/x"}, {"a", "a"}, {"a", "./b/../a"}} {
		_, err := s.create("z", CreateOptions{Format: Zip, Recursive: true}, sources...)
		wantCode(t, err, fault.ArchiveCreation, "in the archive")
	}
	s.untouched("a", "a/x", "b", "b/x")
	_, err := s.create("z", CreateOptions{Format: Zip, Recursive: true}, "none", "../out")
	wantCode(t, err, fault.ArchiveRead, s.path("none"))
	_, err = s.create("a", CreateOptions{Format: Zip, Recursive: true}, "b")
	wantCode(t, err, fault.ArchivePath, "is a directory")
	s.untouched("a", "a/x", "b", "b/x")
}

func TestALinkAsSource(t *testing.T) {
	for _, f := range both {
		s := newScratch(t)
		s.write("real/f", []byte("1"))
		must(t, os.Symlink("real", s.path("link")))
		_, err := s.create("a", CreateOptions{Format: f, Recursive: true}, "link")
		must(t, err)
		s.wantListed("a", "link/ drwxr-xr-x ", "link/f -rw-r--r-- 1")
	}
}

func TestLine(t *testing.T) {
	var got []int
	l := newLine(t.Context(), 4, 8)
	for n := range 100 {
		must(t, l.put(func() error { time.Sleep(time.Duration(n%3) * time.Microsecond); return nil }, func() error { got = append(got, n); return nil }))
	}
	must(t, l.close(nil))
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("finished in the order %v", got)
	}
	failed := errors.New("failed")
	for _, fail := range []func(l *line) error{
		func(l *line) error { return l.put(func() error { return failed }, nil) },
		func(l *line) error { return l.put(nil, func() error { return failed }) },
		func(l *line) error { return failed },
	} {
		l := newLine(t.Context(), 2, 2)
		err := fail(l)
		for n := 0; err == nil && n < 1000; n++ {
			err = l.put(nil, nil)
		}
		if err := l.close(err); err != failed {
			t.Errorf("close = %v", err)
		}
	}
	l = newLine(t.Context(), 2, 2)
	must(t, l.put(func() error { panic("overboard") }, nil))
	if err := l.close(nil); err == nil || !strings.Contains(err.Error(), "overboard") {
		t.Errorf("close = %v", err)
	}
}

func TestSourceThatIsATopOfADirectoryTree(t *testing.T) {
	s := newScratch(t)
	s.write("f", []byte("1"))
	_, err := s.create("a", CreateOptions{Format: Zip, Recursive: true}, ".")
	must(t, err)
	name := filepath.Base(s.dir)
	s.wantListed("a", name+"/ drwxr-xr-x ", name+"/f -rw-r--r-- 1")
}

// Blocks are compressed by what is before them in the file.
func TestDeflateRefersToTheBlockBefore(t *testing.T) {
	before := make([]byte, 20_000)
	r := rand.New(rand.NewPCG(3, 3))
	for i := range before {
		before[i] = byte(r.Uint32())
	}
	var out bytes.Buffer
	must(t, deflate(&out, nil, before, false))
	first := out.Len()
	must(t, deflate(&out, before, before, false))
	if grown := out.Len() - first; grown > 1000 {
		t.Errorf("a repeated block takes %d bytes", grown)
	}
	out.Write(endOfStream)
	have, err := io.ReadAll(codec.Inflate(&out))
	if err != nil || !bytes.Equal(have, slices.Concat(before, before)) {
		t.Errorf("%d bytes, %v", len(have), err)
	}
}

// Where the system does not number files, the archive is known by its path.
func TestArchiveIsKnownByItsPath(t *testing.T) {
	s := newScratch(t)
	c := collector{self: s.at("a"), old: &fileinfo.Info{}}
	if !c.isSelf(s.path("a"), fileinfo.Info{}) || c.isSelf(s.path("b"), fileinfo.Info{}) {
		t.Error("the archive is not told from other files")
	}
}
