//go:build interop

package pack

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These tests run other programs: zip, unzip, 7z, tar, bsdtar, gzip, bzip2, xz
// and zstd. A missing one fails them.

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// sample makes a tree, of names that all of the programs handle.
func sample(t *testing.T, s scratch) {
	t.Helper()
	f := &forest{t: t, rand: rand.New(rand.NewPCG(7, 7))}
	all := oddNames
	oddNames = []string{"plain", "with space", "käse", "日本語", ".hidden", strings.Repeat("l", 200), strings.Repeat("é", 100), "-dash"}
	defer func() { oddNames = all }()
	must(t, os.Mkdir(s.path("tree"), 0o755))
	f.grow(s.path("tree"), 0)
	s.write("tree/large", f.bytes(5*blockSize+3))
	s.write("tree/repeats", []byte(strings.Repeat("some text that repeats, ", 300_000)))
	must(t, os.Mkdir(s.path("tree/nothing"), 0o700))
}

func (f *forest) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.rand.Uint32())
	}
	return b
}

// alike compares two trees but for the times of links, which not all programs
// keep.
func alike(t *testing.T, what string, have, want []string) {
	t.Helper()
	plain := func(list []string) []string {
		out := slices.Clone(list)
		for i, line := range out {
			if at := strings.Index(line, " L"); at >= 0 {
				if _, target, ok := strings.Cut(line, " -> "); ok {
					out[i] = line[:at] + " -> " + target
				}
			}
		}
		return out
	}
	h, w := plain(have), plain(want)
	if !slices.Equal(h, w) {
		t.Errorf("%s: %s", what, difference(h, w))
	}
}

func TestOthersReadOurs(t *testing.T) {
	s := newScratch(t)
	sample(t, s)
	want := s.tree("tree")
	for _, f := range both {
		_, err := s.create("a."+string(f), CreateOptions{Format: f, Recursive: true}, "tree")
		must(t, err)
	}
	zip, tgz := s.path("a.zip"), s.path("a.tar.gz")
	for name, args := range map[string][]string{"unzip": {"-tqq", zip}, "7z": {"t", zip}, "bsdtar": {"-tf", zip}, "gzip": {"-t", tgz}} {
		run(t, s.dir, name, args...)
	}
	run(t, s.dir, "7z", "t", tgz)
	// 7z does not unpack links that go up.
	for title, command := range map[string][]string{
		"unzip": {"unzip", "-qq", zip}, "bsdtar zip": {"bsdtar", "-xpf", zip}, "tar": {"tar", "xpzf", tgz}, "bsdtar": {"bsdtar", "-xpf", tgz},
	} {
		to := "by-" + strings.ReplaceAll(title, " ", "-")
		must(t, os.Mkdir(s.path(to), 0o755))
		run(t, s.path(to), command[0], command[1:]...)
		alike(t, title, s.tree(to+"/tree"), want)
	}
	for _, command := range [][]string{{"tar", "tzf", tgz}, {"bsdtar", "-tf", tgz}, {"bsdtar", "-tf", zip}} {
		if n := strings.Count(run(t, s.dir, command[0], command[1:]...), "tree"); n < len(want) {
			t.Errorf("%s lists %d of %d", command[0], n, len(want))
		}
	}
}

func TestWeReadTheirs(t *testing.T) {
	s := newScratch(t)
	sample(t, s)
	want := s.tree("tree")
	for file, command := range map[string][]string{
		"by-zip.zip":     {"zip", "-qry", "-", "tree"},
		"by-7z.zip":      {"7z", "a", "-snl", "by-7z.zip", "tree"},
		"by-bsdtar.zip":  {"bsdtar", "--format", "zip", "-cf", "by-bsdtar.zip", "tree"},
		"by-7z.7z":       {"7z", "a", "-snl", "by-7z.7z", "tree"},
		"by-tar.tar":     {"tar", "cf", "by-tar.tar", "tree"},
		"by-tar.tgz":     {"tar", "czf", "by-tar.tgz", "tree"},
		"pax.tgz":        {"tar", "czf", "pax.tgz", "--format=pax", "tree"},
		"v7.tgz":         {"tar", "czf", "v7.tgz", "--format=ustar", "tree/nothing", "tree/large"},
		"by-tar.tbz2":    {"tar", "cjf", "by-tar.tbz2", "tree"},
		"by-tar.txz":     {"tar", "cJf", "by-tar.txz", "tree"},
		"by-tar.tzst":    {"tar", "--zstd", "-cf", "by-tar.tzst", "tree"},
		"by-bsdtar.tgz":  {"bsdtar", "-czf", "by-bsdtar.tgz", "tree"},
		"by-bsdtar.cpio": {"bsdtar", "--format", "cpio", "-cf", "by-bsdtar.cpio", "tree"},
	} {
		out := run(t, s.dir, command[0], command[1:]...)
		if command[0] == "zip" {
			s.write(file, []byte(out))
		}
		to := "to-" + file
		done, err := s.extract(file, to, ExtractOptions{})
		switch {
		case strings.HasSuffix(file, ".cpio"):
			if err == nil {
				t.Errorf("%s: %+v", file, done)
			}
		case err != nil:
			t.Errorf("%s: %v", file, err)
		case file == "v7.tgz":
			if have := s.names(to); !slices.Equal(have, []string{"tree", "tree/large", "tree/nothing"}) {
				t.Errorf("%s: %q", file, have)
			}
		default:
			alike(t, file, s.tree(to+"/tree"), want)
		}
	}
}

func TestEncryptedByOthers(t *testing.T) {
	s := newScratch(t)
	s.write("f", []byte("secret"))
	run(t, s.dir, "zip", "-qP", "password", "a.zip", "f")
	run(t, s.dir, "7z", "a", "-ppassword", "-mem=AES256", "b.zip", "f")
	run(t, s.dir, "7z", "a", "-ppassword", "c.7z", "f")
	run(t, s.dir, "7z", "a", "-ppassword", "-mhe=on", "d.7z", "f")
	for _, file := range []string{"a.zip", "b.zip", "c.7z", "d.7z"} {
		_, err := s.extract(file, "to", ExtractOptions{})
		if err == nil || !strings.Contains(err.Error(), "encrypted") {
			t.Errorf("%s: %v", file, err)
		}
		if _, err := os.Lstat(filepath.Join(s.dir, "to")); err == nil {
			t.Error("something was unpacked")
		}
	}
}

// Hard links and sparse files of GNU tar.
func TestTarOfSparseAndHardLinkedFiles(t *testing.T) {
	s := newScratch(t)
	s.write("tree/a", []byte("content"))
	must(t, os.Link(s.path("tree/a"), s.path("tree/b")))
	h, err := os.Create(s.path("tree/hole"))
	must(t, err)
	_, err = h.WriteAt([]byte("end"), 3<<20)
	must(t, err)
	must(t, h.Close())
	want := s.tree("tree")
	for _, format := range []string{"gnu", "pax"} {
		run(t, s.dir, "tar", "czSf", format+".tgz", "--format="+format, "tree")
		_, err := s.extract(format+".tgz", format, ExtractOptions{})
		must(t, err)
		alike(t, format, s.tree(format+"/tree"), want)
	}
}
