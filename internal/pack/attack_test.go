package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// archivesOf returns the entries as a tar, a tar.gz and a zip.
func archivesOf(t testing.TB, entries ...in) map[string][]byte {
	t.Helper()
	return map[string][]byte{"a.tar": makeTar(t, entries...), "a.tar.gz": makeTarGz(t, entries...), "a.zip": makeZip(t, entries...)}
}

// refused checks that the archive is refused with code, into a destination that
// exists and one that does not, and in a dry run, and that nothing is left.
func refused(t *testing.T, name string, archive []byte, o ExtractOptions, code fault.Code, contains ...string) {
	t.Helper()
	s := newScratch(t)
	s.write(name, archive)
	s.write("old/f", []byte("old"))
	for _, to := range []string{"old", "new/deep/er"} {
		_, err := s.extract(name, to, o)
		wantCode(t, err, code, contains...)
		s.untouched(name, "old", "old/f")
	}
	if s.read("old/f") != "old" {
		t.Error("a file at the destination was changed")
	}
}

// Records of a zip.
const (
	fileSign = "PK\x01\x02"
	endSign  = "PK\x05\x06"
)

func TestNamesThatLeadOutsideAreRefused(t *testing.T) {
	for _, name := range []string{
		"../x", "a/../../x", "a/..", "..", "../out/x", "/abs", "//abs", "/", `back\slash`, `..\x`, `a\..\..\x`, "C:/x", "c:x", `C:\x`,
		strings.Repeat("n", 256), strings.Repeat("d/", 2100) + "f", "./../x", "a/./../../x",
	} {
		for file, archive := range archivesOf(t, in{name: "fine", content: "fine"}, in{name: name, content: "evil"}) {
			t.Run(file+" "+entryname.Shown(name)[:min(12, len(entryname.Shown(name)))], func(t *testing.T) {
				refused(t, file, archive, ExtractOptions{Overwrite: true}, fault.Unarchive, "nothing was unpacked")
				// What is not chosen is judged too.
				refused(t, file, archive, ExtractOptions{Include: []string{"fine"}}, fault.Unarchive)
				refused(t, file, archive, ExtractOptions{DryRun: true}, fault.Unarchive)
			})
		}
	}
}

func TestNamesWithNUL(t *testing.T) {
	// Package tar does not write them, so the header is changed afterwards.
	archive := makeZip(t, in{name: "a_b", content: "evil"})
	refused(t, "a.zip", bytes.ReplaceAll(archive, []byte("a_b"), []byte("a\x00b")), ExtractOptions{}, fault.Unarchive, "NUL")
	refused(t, "a.zip", makeZip(t, in{name: "", content: "evil"}), ExtractOptions{}, fault.Unarchive)
	refused(t, "a.zip", makeZip(t, in{name: "a\uFFFDb", content: "evil"}), ExtractOptions{}, fault.Unarchive, "UTF-8")
}

func TestHarmlessNames(t *testing.T) {
	for file, archive := range archivesOf(t, in{name: "./"}, in{name: "./a", content: "1"}, in{name: "d//b", content: "2"}, in{name: "d/./c/", mode: 0o700}) {
		s := newScratch(t)
		s.write(file, archive)
		done, err := s.extract(file, "to", ExtractOptions{})
		must(t, err)
		if done.Count != 4 {
			t.Errorf("%s: %+v", file, done)
		}
		s.untouched(file, "to", "to/a", "to/d", "to/d/b", "to/d/c")
	}
}

func TestLinksThatLeadOutsideAreRefused(t *testing.T) {
	for title, entries := range map[string][]in{
		"up":             {{name: "l", link: "../out"}},
		"up in a dir":    {{name: "d/l", link: "../../out"}},
		"absolute":       {{name: "l", link: "/etc/passwd"}},
		"backslash":      {{name: "l", link: `..\out`}},
		"by a link":      {{name: "x/y", link: ".."}, {name: "l", link: "x/y/../out"}},
		"link to link":   {{name: "d/a", link: "../d"}, {name: "l", link: "d/a/../../out"}},
		"later by a dir": {{name: "l", link: "d/../../out"}, {name: "d/"}},
	} {
		for file, archive := range archivesOf(t, append(entries, in{name: "f", content: "1"})...) {
			t.Run(file+" "+title, func(t *testing.T) {
				refused(t, file, archive, ExtractOptions{Overwrite: true}, fault.Unarchive, "link")
			})
		}
	}
	t.Run("after stripping", func(t *testing.T) {
		archive := makeTar(t, in{name: "top/d/l", link: "../../x"})
		refused(t, "a.tar", archive, ExtractOptions{Strip: 1}, fault.Unarchive, "points outside")
	})
}

func TestLinksThatStayAreKept(t *testing.T) {
	entries := []in{{name: "a", link: "d/f"}, {name: "d/up", link: "../d/f"}, {name: "d/self", link: "."}, {name: "b", link: "d/self/f"}, {name: "loop", link: "loop"}, {name: "gone", link: "nothing/here"}, {name: "d/f", content: "1"}}
	for file, archive := range archivesOf(t, entries...) {
		s := newScratch(t)
		s.write(file, archive)
		for _, to := range []string{"new", "new"} { // the second time it exists
			_, err := s.extract(file, to, ExtractOptions{Overwrite: true})
			must(t, err)
			for _, e := range entries {
				if e.link == "" {
					continue
				}
				if have, err := os.Readlink(s.path(to + "/" + e.name)); err != nil || have != e.link {
					t.Errorf("%s: %s leads to %q, %v", file, e.name, have, err)
				}
			}
			if s.read(to+"/b") != "1" {
				t.Error("a link to a link does not lead to the file")
			}
		}
	}
}

func TestNothingIsWrittenThroughALink(t *testing.T) {
	for title, entries := range map[string][]in{
		"link, then file":        {{name: "l", link: "d"}, {name: "d/"}, {name: "l/x", content: "evil"}},
		"file, then link":        {{name: "l/x", content: "evil"}, {name: "l", link: "d"}},
		"directory through link": {{name: "l", link: "d"}, {name: "l/x/"}},
		"link through link":      {{name: "l", link: "d"}, {name: "l/x", link: "y"}},
		"file as directory":      {{name: "f", content: "1"}, {name: "f/x", content: "2"}},
		"directory as file":      {{name: "f/x", content: "2"}, {name: "f", content: "1"}},
		"file, then directory":   {{name: "f", content: "1"}, {name: "f/"}},
		"directory, then link":   {{name: "d/"}, {name: "d", link: "e"}},
	} {
		for file, archive := range archivesOf(t, entries...) {
			t.Run(file+" "+title, func(t *testing.T) {
				refused(t, file, archive, ExtractOptions{Overwrite: true}, fault.Unarchive, "nothing was unpacked")
			})
		}
	}
}

// The second archive must not use the link that is there already.
func TestNothingIsWrittenThroughALinkOfTheDestination(t *testing.T) {
	for file, archive := range archivesOf(t, in{name: "l/x", content: "evil"}) {
		s := newScratch(t)
		s.write(file, archive)
		must(t, os.Mkdir(s.path("to"), 0o755))
		must(t, os.Mkdir(s.path("other"), 0o755))
		for _, target := range []string{"../../out", "../other", "."} {
			must(t, os.Symlink(target, s.path("to/l")))
			_, err := s.extract(file, "to", ExtractOptions{Overwrite: true})
			wantCode(t, err, fault.Unarchive, "symbolic link", "nothing was unpacked")
			s.untouched(file, "to", "to/l", "other")
			must(t, os.Remove(s.path("to/l")))
		}
	}
	for file, archive := range archivesOf(t, in{name: "m", link: "l/x"}) {
		s := newScratch(t)
		s.write(file, archive)
		must(t, os.Mkdir(s.path("to"), 0o755))
		must(t, os.Symlink("../../out", s.path("to/l")))
		_, err := s.extract(file, "to", ExtractOptions{})
		wantCode(t, err, fault.Unarchive, "in the destination already")
		s.untouched(file, "to", "to/l")
	}
	// A link of the name of a file is replaced, not followed.
	for file, archive := range archivesOf(t, in{name: "l", content: "new"}) {
		s := newScratch(t)
		s.write(file, archive)
		s.write("to/f", []byte("old"))
		must(t, os.Symlink("f", s.path("to/l")))
		_, err := s.extract(file, "to", ExtractOptions{Overwrite: true})
		must(t, err)
		if s.read("to/f") != "old" || s.read("to/l") != "new" {
			t.Errorf("%s: f is %q, l is %q", file, s.read("to/f"), s.read("to/l"))
		}
	}
}

func TestHardLinks(t *testing.T) {
	for title, entries := range map[string][]in{
		"outside":       {{name: "h", hard: "../out/f"}},
		"absolute":      {{name: "h", hard: "/etc/passwd"}},
		"nothing":       {{name: "h", hard: "none"}},
		"later":         {{name: "h", hard: "f"}, {name: "f", content: "1"}},
		"directory":     {{name: "d/"}, {name: "h", hard: "d"}},
		"via directory": {{name: "d", link: "."}, {name: "h", hard: "d/h2"}},
	} {
		t.Run(title, func(t *testing.T) {
			refused(t, "a.tar", makeTar(t, entries...), ExtractOptions{}, fault.Unarchive, "hard link")
		})
	}
	s := newScratch(t)
	s.write("a.tar", makeTar(t, in{name: "t/f", content: "1", mode: 0o640}, in{name: "t/d/h", hard: "t/f"}, in{name: "t/h", hard: "./t/f"}, in{name: "t/f", content: "2"}, in{name: "t/l", link: "f"}, in{name: "t/hl", hard: "t/l"}))
	_, err := s.extract("a.tar", "to", ExtractOptions{Strip: 1})
	must(t, err)
	// The later f is a file of its own.
	if s.read("to/d/h") != "1" || s.read("to/h") != "1" || s.read("to/f") != "2" || s.read("to/hl") != "2" {
		t.Errorf("%q", s.tree("to"))
	}
	s.untouched("a.tar", "to", "to/d", "to/d/h", "to/f", "to/h", "to/hl", "to/l")
}

func TestSpecialFilesAreLeftOut(t *testing.T) {
	s := newScratch(t)
	s.write("a.tar", makeTar(t, in{name: "block", kind: tar.TypeBlock}, in{name: "char", kind: tar.TypeChar}, in{name: "fifo", kind: tar.TypeFifo}, in{name: "f", content: "1"}))
	done, err := s.extract("a.tar", "to", ExtractOptions{})
	must(t, err)
	if done.Special != 3 || done.Count != 1 || !strings.Contains(done.Message(), "special files: 3") {
		t.Errorf("%+v", done)
	}
	s.untouched("a.tar", "to", "to/f")
}

func TestPermissions(t *testing.T) {
	umask := func() fs.FileMode {
		f := filepath.Join(t.TempDir(), "f")
		h, err := os.OpenFile(f, os.O_CREATE, 0o777)
		must(t, err)
		defer h.Close()
		fi, err := h.Stat()
		must(t, err)
		return 0o777 &^ fi.Mode().Perm()
	}()
	for file, archive := range archivesOf(t, in{name: "setuid", content: "1", mode: 0o755 | fs.ModeSetuid}, in{name: "open", content: "1", mode: 0o777}, in{name: "closed", content: "1", mode: 0o400}, in{name: "d/", mode: 0o777 | fs.ModeSetuid}, in{name: "ro/", mode: 0o555}, in{name: "ro/f", content: "2"}) {
		s := newScratch(t)
		s.write(file, archive)
		for range 2 {
			_, err := s.extract(file, "to", ExtractOptions{Overwrite: true})
			must(t, err)
			for name, want := range map[string]fs.FileMode{"setuid": 0o755, "open": 0o777, "closed": 0o400, "d": fs.ModeDir | 0o777, "ro": fs.ModeDir | 0o555, "ro/f": 0o644} {
				fi, err := os.Lstat(s.path("to/" + name))
				must(t, err)
				if want &^= umask; fi.Mode() != want {
					t.Errorf("%s: %s is %v, want %v", file, name, fi.Mode(), want)
				}
				if !fi.ModTime().Equal(when) {
					t.Errorf("%s: %s is of %v", file, name, fi.ModTime())
				}
			}
		}
	}
}

func TestDuplicates(t *testing.T) {
	twice := []in{{name: "f", content: "first"}, {name: "d/"}, {name: "d/"}, {name: "f", content: "last"}, {name: "./f2", link: "f"}, {name: "f2", content: "file"}}
	refused(t, "a.zip", makeZip(t, twice...), ExtractOptions{Overwrite: true}, fault.Unarchive, "two entries called f")
	s := newScratch(t)
	s.write("a.tgz", makeTarGz(t, twice...))
	done, err := s.extract("a.tgz", "to", ExtractOptions{})
	must(t, err)
	if done.Count != 3 || s.read("to/f") != "last" || s.read("to/f2") != "file" {
		t.Errorf("%+v, %q", done, s.tree("to"))
	}
}

// Twins in case or Unicode form are two files where the file system holds them
// for two, and are refused where it does not.
func TestTwins(t *testing.T) {
	twins := []in{{name: "Name", content: "1"}, {name: "name", content: "2"}, {name: "\u00e9", content: "3"}, {name: "e\u0301", content: "4"}}
	probe := newScratch(t)
	probe.write("name", nil)
	_, err := os.Lstat(probe.path("NAME"))
	folds := err == nil
	for file, archive := range archivesOf(t, twins...) {
		if folds {
			refused(t, file, archive, ExtractOptions{}, fault.Unarchive, "differ only in case")
			continue
		}
		s := newScratch(t)
		s.write(file, archive)
		_, err := s.extract(file, "to", ExtractOptions{})
		must(t, err)
		for _, e := range twins {
			if s.read("to/"+e.name) != e.content {
				t.Errorf("%s: %s is %q", file, e.name, s.read("to/"+e.name))
			}
		}
	}
	// As on a file system that folds names: the second one is there already.
	s := newScratch(t)
	root, err := os.OpenRoot(s.dir)
	must(t, err)
	defer root.Close()
	s.write("name", []byte("1"))
	x := extractor{budget: budget{most: plenty, free: plenty, archive: 1}}
	err = x.write(root, "name", &item{mode: 0o644}, []byte("2"), nil)
	wantCode(t, x.failed(err), fault.Unarchive, "differ only in case")
	if s.read("name") != "1" {
		t.Error("the twin was overwritten")
	}
}

// zeros is a reader of n zeros.
type zeros struct{ n int64 }

func (z *zeros) Read(b []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), z.n)
	clear(b[:n])
	z.n -= n
	return int(n), nil
}

func zipOfZeros(t *testing.T, size int64) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("zeros")
	must(t, err)
	_, err = io.Copy(f, &zeros{size})
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func TestBytesAreCounted(t *testing.T) {
	small := []in{{name: "a", content: strings.Repeat("1", 600)}, {name: "b", content: strings.Repeat("2", 600)}}
	for file, archive := range archivesOf(t, small...) {
		refused(t, file, archive, ExtractOptions{MaxBytes: 1000}, fault.LimitExceeded, "CONDUIT_MAX_UNARCHIVE_BYTES (1000)")
		s := newScratch(t)
		s.write(file, archive)
		if _, err := s.extract(file, "to", ExtractOptions{MaxBytes: 1200}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if _, err := s.extract(file, "one", ExtractOptions{MaxBytes: 1000, Include: []string{"a"}}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	refused(t, "a.zip", zipOfZeros(t, 40<<20), ExtractOptions{MaxBytes: 32 << 20}, fault.LimitExceeded)
}

func TestBudget(t *testing.T) {
	b := budget{most: 100 << 30, free: 200 << 30, archive: 1 << 20}
	if err := b.add(1 << 30); err != nil {
		t.Errorf("within 1 GiB the ratio does not count: %v", err)
	}
	wantCode(t, b.add(1<<20), fault.LimitExceeded, "200 times")
	b = budget{most: 100, free: 50, archive: 1 << 20}
	wantCode(t, b.add(51), fault.LimitExceeded, "free on the disk")
	b = budget{most: 100, free: 200, archive: 1}
	if err := b.add(100); err != nil {
		t.Error(err)
	}
	wantCode(t, b.add(1), fault.LimitExceeded, "CONDUIT_MAX_UNARCHIVE_BYTES")
}

func TestFreeSpaceIsKnown(t *testing.T) {
	d, err := os.Open(t.TempDir())
	must(t, err)
	defer d.Close()
	if n, ok := freeSpace(d); !ok || n <= 0 {
		t.Errorf("freeSpace = %d, %v", n, ok)
	}
}

// A zip that says its files are smaller, or larger, than they are.
func TestSizesThatLie(t *testing.T) {
	honest := zipOfZeros(t, 100_000)
	for _, claim := range []uint32{10, 99_999, 100_001, 1 << 31} {
		b := bytes.Clone(honest)
		d := bytes.Index(b, []byte(fileSign))
		binary.LittleEndian.PutUint32(b[d+24:], claim)
		s := newScratch(t)
		s.write("a.zip", b)
		_, err := s.extract("a.zip", "to", ExtractOptions{})
		wantCode(t, err, fault.Unarchive, "damaged")
		s.untouched("a.zip")
	}
}

// A deflate stream that is not as its header says, or that is not whole. The
// checksum is always that of what the reader comes to have.
func TestDeflateStreamsEndWhereTheyShould(t *testing.T) {
	const data = "some content, some content, some content"
	var b bytes.Buffer
	must(t, deflate(&b, nil, []byte(data), true))
	whole := b.Bytes()
	var open bytes.Buffer // all of it, but no last block
	must(t, deflate(&open, nil, []byte(data), false))
	for title, c := range map[string]struct {
		stream []byte
		size   int
		ok     bool
	}{
		"whole":             {whole, len(data), true},
		"bytes after it":    {append(bytes.Clone(whole), "more"...), len(data), true},
		"more than it says": {whole, len(data) - 1, false},
		"less than it says": {whole, len(data) + 1, false},
		"cut":               {whole[:len(whole)-1], len(data), false},
		"no end":            {open.Bytes(), len(data), false},
		"nothing":           {nil, 0, true},
		"nothing of some":   {nil, 1, false},
		"no kind of block":  {[]byte{7}, 0, false},
	} {
		t.Run(title, func(t *testing.T) {
			var archive bytes.Buffer
			w := zip.NewWriter(&archive)
			content := make([]byte, c.size)
			copy(content, data)
			f, err := w.CreateRaw(&zip.FileHeader{Name: "f", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(content),
				CompressedSize64: uint64(len(c.stream)), UncompressedSize64: uint64(c.size)})
			must(t, err)
			_, err = f.Write(c.stream)
			must(t, err)
			must(t, w.Close())
			s := newScratch(t)
			s.write("a.zip", archive.Bytes())
			_, err = s.extract("a.zip", "to", ExtractOptions{})
			if !c.ok {
				wantCode(t, err, fault.Unarchive, "damaged")
				s.untouched("a.zip")
				return
			}
			must(t, err)
			if got := s.read("to/f"); got != string(content) {
				t.Errorf("%q", got)
			}
		})
	}
}

// What is unpacked in memory, and what is larger than that, stored or deflated.
func TestZipMembersOfManySizes(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, blockSize, blockSize + 1, smallSize, smallSize + 1} {
		content := bytes.Repeat([]byte("a line that repeats itself\n"), size/27+1)[:size]
		for range size / 50 {
			content[noise.IntN(size)] = byte(noise.Uint32())
		}
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			var b bytes.Buffer
			w := zip.NewWriter(&b)
			f, err := w.CreateHeader(&zip.FileHeader{Name: "f", Method: method})
			must(t, err)
			_, err = f.Write(content)
			must(t, err)
			must(t, w.Close())
			archive := b.Bytes()
			s := newScratch(t)
			s.write("a.zip", archive)
			_, err = s.extract("a.zip", "to", ExtractOptions{})
			must(t, err)
			if s.read("to/f") != string(content) {
				t.Errorf("%d bytes, method %d: it differs", size, method)
			}
			if size == 0 {
				continue
			}
			// In the middle of the content, with 31 bytes before it and 16 behind.
			archive[(31+bytes.Index(archive, []byte(fileSign))-16)/2] ^= 1
			s = newScratch(t)
			s.write("a.zip", archive)
			_, err = s.extract("a.zip", "to", ExtractOptions{})
			wantCode(t, err, fault.Unarchive, "damaged")
			s.untouched("a.zip")
		}
	}
}

func TestChecksumsAreVerified(t *testing.T) {
	for _, file := range []string{"a.zip", "a.tar.gz"} {
		archive := archivesOf(t, in{name: "f", content: "some content"})[file]
		if file == "a.zip" {
			d := bytes.Index(archive, []byte(fileSign))
			archive[d+16]++
		} else {
			archive[len(archive)-8]++
		}
		refused(t, file, archive, ExtractOptions{}, fault.Unarchive, "damaged")
	}
}

func TestOverlappingEntries(t *testing.T) {
	// Two directory entries for one file in the archive.
	b := makeZip(t, in{name: "aaaa", content: strings.Repeat("1", 100)}, in{name: "bbbb", content: strings.Repeat("1", 100)})
	first := bytes.Index(b, []byte(fileSign))
	second := first + 4 + bytes.Index(b[first+4:], []byte(fileSign))
	copy(b[second+42:second+46], b[first+42:first+46])
	refused(t, "a.zip", b, ExtractOptions{}, fault.Unarchive, "overlap")
}

func TestEncryptedEntries(t *testing.T) {
	b := makeZip(t, in{name: "fine", content: "1"}, in{name: "secret", content: "2"})
	d := bytes.LastIndex(b, []byte(fileSign))
	b[d+8] |= zipfile.FlagEncrypted
	refused(t, "a.zip", b, ExtractOptions{}, fault.Unarchive, "secret is encrypted")
	s := newScratch(t)
	s.write("a.zip", b)
	_, err := s.extract("a.zip", "to", ExtractOptions{Exclude: []string{"secret"}})
	must(t, err)
	if s.read("to/fine") != "1" {
		t.Error("what is not encrypted was not unpacked")
	}
}

// bigDirectory is a zip of n empty entries, whose end record claims fewer.
func bigDirectory(n, claimed int) []byte {
	var b bytes.Buffer
	local := make([]byte, 31)
	copy(local, "PK\x03\x04")
	local[26] = 1
	local[30] = 'f'
	b.Write(local)
	start := b.Len()
	rec := make([]byte, 46+1)
	copy(rec, fileSign)
	rec[28] = 1
	rec[46] = 'f'
	for range n {
		b.Write(rec)
	}
	end := make([]byte, 22)
	copy(end, endSign)
	binary.LittleEndian.PutUint16(end[8:], uint16(claimed))
	binary.LittleEndian.PutUint16(end[10:], uint16(claimed))
	binary.LittleEndian.PutUint32(end[12:], uint32(b.Len()-start))
	binary.LittleEndian.PutUint32(end[16:], uint32(start))
	b.Write(end)
	return b.Bytes()
}

func TestAMillionEntries(t *testing.T) {
	many := longtest.Count(maxEntries+1, 1_000_000)
	refused(t, "a.zip", bigDirectory(many, many%65536), ExtractOptions{}, fault.LimitExceeded, "100000 entries")
	refused(t, "a.zip", bigDirectory(maxEntries+1, 1), ExtractOptions{}, fault.LimitExceeded)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range maxEntries + 1 {
		must(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("d%d/", i), Typeflag: tar.TypeDir, Mode: 0o755}))
	}
	must(t, w.Close())
	refused(t, "a.tgz", gzipped(t, b.Bytes()), ExtractOptions{DryRun: true}, fault.LimitExceeded, "100000 entries")
}

// What an archive holds is not unpacked further.
func TestNestedArchives(t *testing.T) {
	b := zipOfZeros(t, 1<<20)
	for range 5 {
		var entries []in
		for n := range 10 {
			entries = append(entries, in{name: fmt.Sprintf("%d.zip", n), content: string(b)})
		}
		b = makeZip(t, entries...)
	}
	s := newScratch(t)
	s.write("42.zip", b)
	done, err := s.extract("42.zip", "to", ExtractOptions{MaxBytes: 32 << 20})
	must(t, err)
	if done.Count != 10 {
		t.Errorf("%+v", done)
	}
}

func TestTruncated(t *testing.T) {
	entries := []in{{name: "d/"}, {name: "d/a", content: strings.Repeat("line of text\n", 300)}, {name: "b", content: "1"}, {name: "l", link: "b"}, {name: "c", content: string(bytes.Repeat([]byte{1, 2, 3, 250}, 200))}}
	for file, archive := range archivesOf(t, entries...) {
		s := newScratch(t)
		for n := 0; n < len(archive); n += 64 {
			s.write(file, archive[:n])
			done, err := s.extract(file, "to", ExtractOptions{})
			if err == nil && file == "a.tar" && n >= len(archive)-tarBlock && done.Count == len(entries) {
				must(t, os.RemoveAll(s.path("to"))) // all but part of its end
				continue
			}
			code, _ := fault.Of(err)
			if code != fault.Unarchive && code != fault.ArchiveDetect && code != fault.ArchiveFormat {
				t.Errorf("%s cut to %d bytes: %v, %+v", file, n, err, done)
			}
			s.untouched(file)
			if t.Failed() {
				return
			}
		}
	}
}

func TestSparseFilesAreCounted(t *testing.T) {
	// A PAX header claims 1 TiB, of which nothing is in the archive.
	var b bytes.Buffer
	records := ""
	for _, kv := range []string{"GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.name=hole", "GNU.sparse.size=1099511627776", "GNU.sparse.numblocks=0", "GNU.sparse.map="} {
		n := len(kv) + 4
		records += fmt.Sprintf("%d %s\n", n+len(fmt.Sprint(n))-2, kv)
	}
	write := func(name string, kind byte, body string) {
		var h [tarBlock]byte
		copy(h[:], name)
		copy(h[100:], "0000644\x00")
		copy(h[108:], "0000000\x000000000\x00")
		copy(h[124:], fmt.Sprintf("%011o\x00", len(body)))
		copy(h[136:], "00000000000\x00")
		h[156] = kind
		copy(h[257:], "ustar\x0000")
		copy(h[148:], "        ")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		b.Write(h[:])
		b.WriteString(body)
		b.Write(make([]byte, padding(int64(len(body)))))
	}
	write("pax", tar.TypeXHeader, records)
	write("hole", tar.TypeReg, "")
	b.Write(make([]byte, 2*tarBlock))
	h, err := tar.NewReader(bytes.NewReader(b.Bytes())).Next()
	if err != nil || h.Size != 1<<40 {
		t.Fatalf("the archive is not what was meant: %+v, %v", h, err)
	}
	refused(t, "a.tar", b.Bytes(), ExtractOptions{MaxBytes: 8 << 20}, fault.LimitExceeded)
}

func TestTooMuchBehindATar(t *testing.T) {
	b := makeTar(t, in{name: "f", content: "1"})
	refused(t, "a.tgz", gzipped(t, append(b, make([]byte, maxPadding+1)...)), ExtractOptions{}, fault.Unarchive)
}

func TestDenyRulesHoldForWhatIsUnpacked(t *testing.T) {
	for file, archive := range archivesOf(t, in{name: "d/id.key", content: "1"}, in{name: "f", content: "2"}) {
		s := newScratch(t, "*.key")
		s.write(file, archive)
		_, err := s.extract(file, "to", ExtractOptions{})
		wantCode(t, err, fault.FSAccessDenied, "id.key", "exclude")
		s.untouched(file)
		_, err = s.extract(file, "to", ExtractOptions{Exclude: []string{"*.key"}})
		must(t, err)
		s.untouched(file, "to", "to/f")
	}
}

func TestFailuresAtTheDestination(t *testing.T) {
	for file, archive := range archivesOf(t, in{name: "a", content: "new"}, in{name: "d/b", content: "new"}) {
		s := newScratch(t)
		s.write(file, archive)
		s.write("file", nil)
		s.write("dir/a/x", nil)
		s.write("blocked/d", nil)
		s.write("old/d/b", []byte("old"))
		all := s.names(".")
		for to, code := range map[string]fault.Code{"file": fault.ArchivePath, "dir": fault.Unarchive, "blocked": fault.Unarchive} {
			_, err := s.extract(file, to, ExtractOptions{Overwrite: true})
			wantCode(t, err, code, s.path(to))
		}
		_, err := s.extract(file, "old", ExtractOptions{})
		wantCode(t, err, fault.FSAlreadyExists, s.path("old/d/b"), "overwrite is false")
		_, err = s.extract("dir", "to", ExtractOptions{})
		wantCode(t, err, fault.ArchivePath, "is a directory")
		_, err = s.extract("none", "to", ExtractOptions{})
		wantCode(t, err, fault.FSNotFound)
		s.untouched(all...)
		_, err = s.extract(file, "old", ExtractOptions{Overwrite: true})
		must(t, err)
		if s.read("old/a") != "new" || s.read("old/d/b") != "new" {
			t.Error("not merged")
		}
	}
}

// Cancelled while it unpacks, a call leaves nothing behind.
func TestCancelled(t *testing.T) {
	var entries []in
	for n := range 300 {
		entries = append(entries, in{name: fmt.Sprintf("d%d/f%d", n%7, n), content: strings.Repeat("x", 5000)})
	}
	for file, archive := range archivesOf(t, entries...) {
		for _, to := range []string{"new", "old"} {
			s := newScratch(t)
			s.write(file, archive)
			s.write("old/d1/f1", []byte("old"))
			ctx, cancel := context.WithCancel(t.Context())
			_, err := s.extractWith(ctx, file, to, ExtractOptions{Overwrite: true, Progress: func(done, _ int64) {
				if done == 50 {
					cancel()
				}
			}})
			if err == nil || ctx.Err() == nil {
				t.Fatalf("%s: %v", file, err)
			}
			if code, _ := fault.Of(err); code != fault.FSOperation {
				t.Errorf("%s: %v", file, err)
			}
			s.untouched(file, "old", "old/d1", "old/d1/f1")
			if s.read("old/d1/f1") != "old" {
				t.Error("a file was replaced")
			}
		}
	}
}

// An archive that holds a file of its own name replaces itself only when all is
// there.
func TestArchiveThatHoldsItself(t *testing.T) {
	for file, archive := range archivesOf(t, in{name: "a.tar", content: "1"}, in{name: "a.tar.gz", content: "1"}, in{name: "a.zip", content: "1"}) {
		s := newScratch(t)
		s.write(file, archive)
		_, err := s.extract(file, ".", ExtractOptions{Overwrite: true})
		must(t, err)
		s.untouched("a.tar", "a.tar.gz", "a.zip")
		if s.read(file) != "1" {
			t.Error("not replaced")
		}
	}
}

func TestOldTimesOfAZip(t *testing.T) {
	for _, at := range []time.Time{time.Unix(-1, 0), time.Unix(-1<<31, 0), time.Unix(1<<31-1, 0), time.Unix(1<<31, 0), time.Unix(1<<33, 0), time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)} {
		extra := zipfile.TimeExtra(at)
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		_, err := w.CreateRaw(&zip.FileHeader{Name: "f", Extra: extra})
		must(t, err)
		must(t, w.Close())
		list, err := openZip(bytes.NewReader(b.Bytes()), int64(b.Len()), true)
		must(t, err)
		if have := list[0].modified; !have.Equal(at) {
			t.Errorf("%v became %v", at, have)
		}
	}
	if zipfile.TimeExtra(time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC)) != nil {
		t.Error("a time that cannot be told was told")
	}
}
