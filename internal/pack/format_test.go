package pack

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"

	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

var readers = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/bodgit/sevenzip", "github.com/mholt/archives").Output()
	return string(out), err
})

// readerFile is a file of the test data of the modules that read 7z and rar.
func readerFile(t testing.TB, name string) []byte {
	t.Helper()
	dirs, err := readers()
	must(t, err)
	for dir := range strings.FieldsSeq(dirs) {
		if b, err := os.ReadFile(filepath.Join(dir, "testdata", name)); err == nil {
			return b
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

func wrapped(t testing.TB, f Format, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch f {
	case TarGz:
		return gzipped(t, b)
	case TarBz2:
		w, err = archives.Bz2{}.OpenWriter(&out)
	case TarXz:
		w, err = archives.Xz{}.OpenWriter(&out)
	case TarZst:
		w, err = zstd.NewWriter(&out)
	default:
		return b
	}
	must(t, err)
	_, err = w.Write(b)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

// makeRar makes a rar, version 5, whose files are stored. An entry whose mode
// says so is encrypted.
func makeRar(entries ...in) []byte {
	var b bytes.Buffer
	b.WriteString("Rar!\x1a\x07\x01\x00")
	vint := func(to []byte, n int) []byte { return binary.AppendUvarint(to, uint64(n)) }
	block := func(kind, flags, extra, data int, fields []byte) {
		h := vint(vint(nil, kind), flags)
		if flags&1 != 0 {
			h = vint(h, extra)
		}
		if flags&2 != 0 {
			h = vint(h, data)
		}
		h = append(h, fields...)
		h = append(vint(nil, len(h)), h...)
		b.Write(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(h)))
		b.Write(h)
	}
	block(1, 0, 0, 0, []byte{0})
	for _, e := range entries {
		name := strings.TrimSuffix(e.name, "/")
		flags, kind := 2|4, 0o100000
		if name != e.name {
			flags, kind = 1|2|4, 0o040000
		}
		if e.link != "" {
			kind = 0o120000
			e.content = e.link
		}
		f := vint(nil, flags)
		f = vint(f, len(e.content))
		f = vint(f, kind|int(e.perm().Perm()))
		f = binary.LittleEndian.AppendUint32(f, uint32(when.Unix()))
		f = binary.LittleEndian.AppendUint32(f, crc32.ChecksumIEEE([]byte(e.content)))
		f = vint(f, 0)
		f = vint(f, 1)
		f = vint(f, len(name))
		f = append(f, name...)
		if e.kind == 'e' { // an encryption record
			extra := append([]byte{1, 0, 0, 15}, make([]byte, 32)...)
			extra = append(vint(nil, len(extra)), extra...)
			block(2, 1|2, len(extra), len(e.content), append(f, extra...))
		} else {
			block(2, 2, 0, len(e.content), f)
		}
		b.WriteString(e.content)
	}
	block(5, 0, 0, 0, []byte{0})
	return b.Bytes()
}

var tars = []Format{Tar, TarGz, TarBz2, TarXz, TarZst}

func TestDetect(t *testing.T) {
	some := makeTar(t, in{name: "f", content: "1"})
	type sample struct {
		name    string
		content []byte
		want    Format
		code    fault.Code
	}
	samples := []sample{
		{"a.zip", makeZip(t, in{name: "f"}), Zip, ""},
		{"a.zip", makeZip(t), Zip, ""}, // empty
		{"a.tar.gz", makeZip(t, in{name: "f"}), Zip, ""},
		{"a.exe", append([]byte("MZ program"), makeZip(t, in{name: "f"})...), Zip, ""},
		{"a.zip", some, Tar, ""},
		{"empty.tar", make([]byte, 10240), Tar, ""},
		{"a.7z", readerFile(t, "lzma2.7z"), SevenZip, ""},
		{"a.rar", makeRar(in{name: "f"}), Rar, ""},
		{"a.gz", gzipped(t, []byte("a text")), "", fault.ArchiveFormat},
		{"a", gzipped(t, bytes.Repeat([]byte("a text"), 1000)), "", fault.ArchiveFormat},
		{"cut.tgz", wrapped(t, TarGz, some)[:20], TarGz, ""},
		{"cut.bin", wrapped(t, TarGz, some)[:20], "", fault.ArchiveFormat},
		{"a.deb", []byte("!<arch>\ndebian-binary"), "", fault.ArchiveFormat},
		{"a.cpio", []byte("070701000"), "", fault.ArchiveFormat},
		{"a.zip", []byte("a text"), "", fault.ArchiveDetect},
		{"a.tar", nil, "", fault.ArchiveDetect},
		{"a.bin", bytes.Repeat([]byte("x"), 2000), "", fault.ArchiveDetect},
	}
	for _, f := range tars {
		samples = append(samples, sample{"any.bin", wrapped(t, f, some), f, ""})
	}
	for _, s := range samples {
		have, err := Detect(bytes.NewReader(s.content), int64(len(s.content)), s.name)
		if s.code != "" {
			wantCode(t, err, s.code, s.name)
		} else if err != nil || have != s.want {
			t.Errorf("%s: %q, %v; want %q", s.name, have, err, s.want)
		}
	}
}

func TestFormatNames(t *testing.T) {
	for _, name := range Formats() {
		if f, err := ParseFormat(strings.ToUpper("." + name)); err != nil || !slices.Contains(Formats(), string(f)) {
			t.Errorf("%s: %q, %v", name, f, err)
		}
		f, err := ParseWritten(name)
		if writable := slices.Contains([]string{"zip", "tar.gz", "tgz"}, name); writable != (err == nil) {
			t.Errorf("%s: %q, %v", name, f, err)
		}
	}
	_, err := ParseFormat("arj")
	wantCode(t, err, fault.ArchiveFormat, "arj", "tar.zst")
}

func TestAllTarsAreUnpacked(t *testing.T) {
	entries := []in{{name: "d/", mode: 0o700}, {name: "d/f", content: strings.Repeat("x", 3<<20), mode: 0o600}, {name: "l", link: "d/f"}, {name: "empty"}}
	for _, f := range tars {
		s := newScratch(t)
		archive := wrapped(t, f, makeTar(t, entries...))
		s.write("a", archive)
		_, err := s.extract("a", "to", ExtractOptions{})
		must(t, err)
		if len(s.read("to/l")) != 3<<20 {
			t.Errorf("%s: wrong content", f)
		}
		s.untouched("a", "to", "to/d", "to/d/f", "to/empty", "to/l")
		archive[len(archive)/2] ^= 0x55
		s.write("a.x", archive)
		if _, err := s.extract("a.x", "bad", ExtractOptions{Format: f}); f != Tar {
			wantCode(t, err, fault.Unarchive)
		}
	}
}

func TestSevenZip(t *testing.T) {
	var want []string
	for _, name := range []string{"copy.7z", "lzma.7z", "lzma2.7z", "bzip2.7z", "deflate.7z", "zstd.7z", "brotli.7z", "lz4.7z"} {
		s := newScratch(t)
		s.write("a", readerFile(t, name))
		done, err := s.extract("a", "to", ExtractOptions{})
		must(t, err)
		have := s.tree("to")[1:]
		if want == nil {
			want = have
		}
		if done.Count != 10 || !slices.EqualFunc(have, want, func(a, b string) bool { return strings.Fields(a)[5] == strings.Fields(b)[5] }) {
			t.Errorf("%s: %+v %q, want %q", name, done, have, want)
		}
	}
	s := newScratch(t)
	s.write("a.7z", readerFile(t, "empty.7z"))
	if done, err := s.extract("a.7z", "to", ExtractOptions{}); err != nil || done.Count == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	refused(t, "a.7z", readerFile(t, "aes7z.7z"), ExtractOptions{}, fault.Unarchive, "encrypted")
	whole := readerFile(t, "lzma2.7z")
	for n := 64; n < len(whole); n += 640 {
		refused(t, "a.7z", whole[:n], ExtractOptions{}, fault.Unarchive)
	}
}

func TestRar(t *testing.T) {
	s := newScratch(t)
	s.write("a.rar", makeRar(in{name: "d/", mode: 0o700}, in{name: "d/f", content: "content", mode: 0o600}, in{name: "l", link: "d/f"}, in{name: "g", content: strings.Repeat("x", 2<<20)}))
	_, err := s.extract("a.rar", "to", ExtractOptions{})
	must(t, err)
	if s.read("to/l") != "content" || len(s.read("to/g")) != 2<<20 {
		t.Errorf("%q", s.tree("to"))
	}
	fi, err := os.Stat(s.path("to/d/f"))
	must(t, err)
	if fi.Mode() != 0o600 || !fi.ModTime().Equal(when) {
		t.Errorf("%v of %v", fi.Mode(), fi.ModTime())
	}
	for _, evil := range [][]in{{{name: "../x", content: "1"}}, {{name: "l", link: "../../out"}}, {{name: "f", content: "1"}, {name: "f", content: "2"}}, {{name: "l", link: "d"}, {name: "l/x", content: "1"}}} {
		refused(t, "a.rar", makeRar(evil...), ExtractOptions{}, fault.Unarchive, "nothing was unpacked")
	}
	refused(t, "a.rar", makeRar(in{name: "secret", content: "1", kind: 'e'}), ExtractOptions{}, fault.Unarchive, "encrypted")
	whole := makeRar(in{name: "a", content: strings.Repeat("1", 500)}, in{name: "b", content: "2"})
	for n := 64; n < len(whole)-8; n += 64 {
		refused(t, "a.rar", whole[:n], ExtractOptions{}, fault.Unarchive)
	}
	refused(t, "a.rar", readerFile(t, "test.part01.rar"), ExtractOptions{}, fault.Unarchive, "volumes")
}

// Names that are not UTF-8 are taken for what the formats say or what is usual.
func TestForeignNames(t *testing.T) {
	zipped := bytes.ReplaceAll(makeZip(t, in{name: "k_se", content: "1"}), []byte("k_se"), []byte("k\x84se"))
	tarred := makeTar(t, in{name: "k\xe4se", content: "1"})
	for _, archive := range [][]byte{zipped, tarred} {
		s := newScratch(t)
		s.write("a", archive)
		_, err := s.extract("a", "to", ExtractOptions{})
		must(t, err)
		s.untouched("a", "to", "to/käse")
	}
}

func TestChoice(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		strip            int
		want             string
	}{
		{nil, nil, 0, "a.md,d,d/b.go,d/c.md,d/e,d/e/f.md"},
		{[]string{"*.md"}, nil, 0, "a.md,d,d/c.md,d/e,d/e/f.md"},
		{[]string{"d/*.md"}, nil, 0, "d,d/c.md"},
		{[]string{"e"}, nil, 0, "d,d/e,d/e/f.md"},
		{[]string{"d/e/"}, nil, 0, "d,d/e,d/e/f.md"},
		{nil, []string{"e", "*.go"}, 0, "a.md,d,d/c.md"},
		{[]string{"d/**"}, []string{"**/f.md"}, 0, "d,d/b.go,d/c.md,d/e"},
		{nil, nil, 1, "b.go,c.md,e,e/f.md"},
		{nil, nil, 2, "f.md"},
		{nil, nil, 9, ""},
		{[]string{"none"}, nil, 0, ""},
	} {
		for file, archive := range archivesOf(t, in{name: "a.md", content: "1"}, in{name: "d/"}, in{name: "d/b.go", content: "2"}, in{name: "d/c.md", content: "3"}, in{name: "d/e/"}, in{name: "d/e/f.md", content: "4"}) {
			s := newScratch(t)
			s.write(file, archive)
			o := ExtractOptions{Include: c.include, Exclude: c.exclude, Strip: c.strip}
			done, err := s.extract(file, "to", o)
			must(t, err)
			if have := strings.Join(s.names("to"), ","); have != c.want {
				t.Errorf("%s, %+v: %s, want %s", file, c, have, c.want)
			}
			o.DryRun = true
			dry, err := s.extract(file, "dry", o)
			must(t, err)
			var names []string
			for _, p := range dry.Planned {
				names = append(names, p.Path)
			}
			if have := strings.Join(names, ","); have != c.want || dry.Count != done.Count {
				t.Errorf("dry run of %s, %+v: %s, want %s", file, c, have, c.want)
			}
			if _, err := os.Lstat(s.path("dry")); err == nil {
				t.Error("a dry run wrote")
			}
		}
	}
	for _, bad := range []string{"", "a[", "{a,b}{c,d}{e,f}{g,h}{i,j}"} {
		s := newScratch(t)
		s.write("a.zip", makeZip(t))
		_, err := s.extract("a.zip", "to", ExtractOptions{Exclude: []string{bad}})
		wantCode(t, err, fault.InvalidParameter, "`exclude`")
	}
}

func openIndex(t testing.TB, archive []byte, name string) *Archive {
	t.Helper()
	a, err := Open(t.Context(), bytes.NewReader(archive), int64(len(archive)), name)
	must(t, err)
	return a
}

func TestIndex(t *testing.T) {
	entries := []in{{name: "z", content: "last in order"}, {name: "d/e/f", content: strings.Repeat("deep", 1000)}, {name: "d/b", content: "2"}, {name: "l", link: "z"}, {name: "d.x", content: "3"}, {name: "empty"}}
	all := map[Format][]byte{Zip: makeZip(t, entries...), Rar: makeRar(entries...)}
	for _, f := range tars {
		all[f] = wrapped(t, f, makeTar(t, entries...))
	}
	for f, archive := range all {
		a := openIndex(t, archive, "a")
		var names []string
		for _, e := range a.Entries() {
			names = append(names, e.Name)
		}
		if have := strings.Join(names, ","); have != "d,d/b,d/e,d/e/f,d.x,empty,l,z" {
			t.Errorf("%s: %s", f, have)
		}
		for _, e := range entries {
			have, ok := a.Lookup(e.name)
			if !ok || have.IsDir() || have.IsLink() != (e.link != "") || !have.IsLink() && have.Size != int64(len(e.content)) || !have.Modified.Equal(when) {
				t.Errorf("%s: %+v, want %+v", f, have, e)
			}
			r, _, err := a.OpenMember(t.Context(), e.name)
			must(t, err)
			b, err := io.ReadAll(r)
			must(t, err)
			must(t, r.Close())
			if string(b) != e.content+e.link {
				t.Errorf("%s: %s holds %.20q", f, e.name, b)
			}
		}
		for dir, want := range map[string]string{"": "d,d.x,empty,l,z", ".": "d,d.x,empty,l,z", "d": "d/b,d/e", "d/": "d/b,d/e", "d/e": "d/e/f", "z": "", "none": ""} {
			var names []string
			for _, e := range a.Children(dir) {
				names = append(names, e.Name)
			}
			if have := strings.Join(names, ","); have != want {
				t.Errorf("%s: in %q are %s, want %s", f, dir, have, want)
			}
		}
		if e, ok := a.Lookup("."); !ok || !e.IsDir() {
			t.Error("the top is no directory")
		}
		_, _, err := a.OpenMember(t.Context(), "d")
		wantCode(t, err, fault.FSIsDirectory)
		_, _, err = a.OpenMember(t.Context(), "none")
		wantCode(t, err, fault.FSNotFound)
		// One that is closed early, or cancelled, ends.
		r, _, err := a.OpenMember(t.Context(), "d/e/f")
		must(t, err)
		must(t, r.Close())
		ctx, cancel := context.WithCancel(t.Context())
		r, _, err = a.OpenMember(ctx, "d/e/f")
		must(t, err)
		cancel()
		io.Copy(io.Discard, r)
		must(t, r.Close())
	}
}

func TestIndexOfSevenZip(t *testing.T) {
	a := openIndex(t, readerFile(t, "lzma2.7z"), "a.7z")
	for _, name := range []string{"10", "01"} {
		r, e, err := a.OpenMember(t.Context(), name)
		must(t, err)
		n, err := io.Copy(io.Discard, r)
		if err != nil || n != e.Size || n == 0 {
			t.Errorf("%s: %d of %d, %v", name, n, e.Size, err)
		}
		must(t, r.Close())
	}
}

func TestIndexOfUnsafeArchives(t *testing.T) {
	entries := []in{{name: "../x", content: "1"}, {name: "/abs", content: "2"}, {name: "f", content: "3"}, {name: "f/y", content: "4"}, {name: `a\b`, content: "5"}, {name: "f", content: "6"}}
	for file, archive := range archivesOf(t, entries...) {
		a := openIndex(t, archive, file)
		if len(a.Entries()) != 1 || a.Unsafe() != 4 {
			t.Errorf("%s: %+v, %d unsafe", file, a.Entries(), a.Unsafe())
		}
		r, _, err := a.OpenMember(t.Context(), "f")
		must(t, err)
		if b, err := io.ReadAll(r); err != nil || string(b) != "6" {
			t.Errorf("%s: %q, %v", file, b, err)
		}
	}
	a := openIndex(t, makeTarGz(t, in{name: "f", content: "1"}, in{name: "h", hard: "f"}, in{name: "out", hard: "../f"}), "a")
	r, e, err := a.OpenMember(t.Context(), "h")
	must(t, err)
	if b, err := io.ReadAll(r); err != nil || string(b) != "1" || e.Size != 1 || a.Unsafe() != 1 {
		t.Errorf("%q, %v, %+v", b, err, e)
	}
	b := makeZip(t, in{name: "secret", content: "2"})
	b[bytes.LastIndex(b, []byte("PK\x01\x02"))+8] |= zipfile.FlagEncrypted
	_, _, err = openIndex(t, b, "a.zip").OpenMember(t.Context(), "secret")
	wantCode(t, err, fault.Unarchive, "encrypted")
	big := bigDirectory(200_000, 1)
	_, err = Open(t.Context(), bytes.NewReader(big), int64(len(big)), "a.zip")
	wantCode(t, err, fault.LimitExceeded)
	_, err = Open(t.Context(), strings.NewReader("text"), 4, "a.txt")
	wantCode(t, err, fault.ArchiveDetect)
	cut := makeTarGz(t, in{name: "f", content: strings.Repeat("1", 5000)})
	_, err = Open(t.Context(), bytes.NewReader(cut), int64(len(cut)-9), "a.tgz")
	wantCode(t, err, fault.Unarchive)
}
