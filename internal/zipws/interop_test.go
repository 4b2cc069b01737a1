//go:build interop

package zipws

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// run runs a program that must succeed and returns what it says.
func (s *scratch) run(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

const pythonList = `
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None, z.testzip()
for i in z.infolist():
    print(i.filename, i.compress_type, i.comment, i.extra, i.create_system, i.external_attr, i.CRC, i.file_size, i.date_time, i.flag_bits & 0x800)
print(z.comment)
`

// infolist is what Python's zipfile tells of an archive, an entry a line.
func (s *scratch) infolist(name string) []string {
	s.t.Helper()
	return strings.Split(strings.TrimSpace(s.run("python3", "-c", pythonList, name)), "\n")
}

// accepted has other programs test an archive.
func (s *scratch) accepted(name string) {
	s.t.Helper()
	s.run("unzip", "-tq", name)
	s.run("7z", "t", name)
	s.run("bsdtar", "-tf", name)
	s.run("zip", "-T", name)
}

// synced opens an archive, changes the file called name, adds one and syncs.
func (s *scratch) synced(archive, name, content string) {
	s.t.Helper()
	s.open(archive, OpenOptions{})
	s.write(name, content)
	s.write("added/by sync.txt", "added\n")
	if _, err := s.Sync(s.t.Context(), "", SyncOptions{}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.Workspaces.Close(s.t.Context(), "", CloseOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// sameBut fails the test where entries other than those named differ between
// what two infolists tell.
func sameBut(t *testing.T, before, after []string, names ...string) {
	t.Helper()
	for i, line := range before {
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(line, n+" ") }) {
			continue
		}
		if i == len(before)-1 { // the comment
			if after[len(after)-1] != line {
				t.Errorf("comment %s, was %s", after[len(after)-1], line)
			}
		} else if after[i] != line {
			t.Errorf("%s\nwas\n%s", after[i], line)
		}
	}
}

// Archives made by other programs are accepted by other programs after a sync,
// and say the same of what was not touched.
func TestOtherProgramsAccept(t *testing.T) {
	for _, maker := range []string{"zip", "zip -0", "7z", "python3", "bsdtar", "jar"} {
		t.Run(maker, func(t *testing.T) {
			s := newScratch(t)
			for i := range 20 {
				name := s.path(fmt.Sprintf("tree/d%d/file%d.txt", i%3, i))
				s.must(os.MkdirAll(filepath.Dir(name), 0o755))
				s.must(os.WriteFile(name, bytes.Repeat([]byte(fmt.Sprintln("line", i)), 100*i), 0o644))
			}
			s.must(os.Chmod(s.path("tree/d0/file0.txt"), 0o755))
			s.must(os.Symlink("file1.txt", s.path("tree/d1/link")))
			archive := "a.zip"
			switch maker {
			case "zip":
				s.run("sh", "-c", "cd tree && zip -qry ../a.zip . && echo comment | zip -qz ../a.zip")
			case "zip -0":
				s.run("sh", "-c", "cd tree && zip -0qry ../a.zip .")
			case "7z":
				s.run("sh", "-c", "cd tree && 7z a -tzip ../a.zip .")
			case "python3":
				s.run("python3", "-c", "import shutil; shutil.make_archive('a', 'zip', 'tree')")
			case "bsdtar":
				s.run("bsdtar", "-C", "tree", "--format", "zip", "-cf", "a.zip", ".")
			case "jar":
				archive = "a.jar"
				s.run("jar", "cf", "a.jar", "-C", "tree", ".")
			}
			before := s.infolist(archive)
			names := []string{"d1/file1.txt", "./d1/file1.txt"}
			s.synced(archive, "d1/file1.txt", "changed\n")
			s.accepted(archive)
			after := s.infolist(archive)
			sameBut(t, before, after, names...)
			if len(after) != len(before)+1 {
				t.Errorf("%d entries, were %d", len(after)-1, len(before)-1)
			}
			// To take the changes back yields what there was before.
			s.must(os.RemoveAll(s.path("out")))
			s.run("unzip", "-q", archive, "-d", "out")
			if have, err := os.ReadFile(s.path("out/d1/file1.txt")); err != nil || string(have) != "changed\n" {
				t.Errorf("%q, %v", have, err)
			}
			if fi, err := os.Stat(s.path("out/d0/file0.txt")); err != nil || maker == "zip" && fi.Mode().Perm() != 0o755 {
				t.Errorf("%v, %v", fi, err)
			}
			if archive == "a.jar" {
				if have := s.run("jar", "tf", archive); !strings.HasPrefix(have, "META-INF/\nMETA-INF/MANIFEST.MF\n") || !strings.Contains(have, "added/by sync.txt") {
					t.Errorf("jar lists %s", have)
				}
			}
		})
	}
}

// Documents that are zip archives stay what they are: the type stored first and
// without an extra field, the rest in order.
func TestDocumentsStayValid(t *testing.T) {
	python := map[string]string{
		"a.epub": `
z.writestr(zipfile.ZipInfo('mimetype'), 'application/epub+zip')
z.writestr('META-INF/container.xml', '<container/>', zipfile.ZIP_DEFLATED)
z.writestr('content.xml', '<html/>' * 100, zipfile.ZIP_DEFLATED)`,
		"a.odt": `
z.writestr(zipfile.ZipInfo('mimetype'), 'application/vnd.oasis.opendocument.text')
z.writestr('META-INF/manifest.xml', '<manifest/>', zipfile.ZIP_DEFLATED)
z.writestr('content.xml', '<office/>' * 100, zipfile.ZIP_DEFLATED)`,
		"a.docx": `
z.writestr('[Content_Types].xml', '<Types/>', zipfile.ZIP_DEFLATED)
z.writestr('_rels/.rels', '<Relationships/>', zipfile.ZIP_DEFLATED)
z.writestr('content.xml', '<w/>' * 100, zipfile.ZIP_DEFLATED)`,
	}
	for name, script := range python {
		t.Run(name, func(t *testing.T) {
			s := newScratch(t)
			s.run("python3", "-c", "import zipfile\nz = zipfile.ZipFile('"+name+"', 'w')"+script+"\nz.close()")
			before, old := s.infolist(name), s.get(name)
			s.synced(name, "content.xml", "<changed/>")
			s.accepted(name)
			sameBut(t, before, s.infolist(name), "content.xml")
			now := s.get(name)
			z, err := zip.NewReader(bytes.NewReader(now), int64(len(now)))
			s.must(err)
			if z.File[0].Name == "mimetype" {
				if head := now[:30+8+20]; !bytes.Equal(head, old[:len(head)]) || z.File[0].Method != zip.Store {
					t.Errorf("it begins with %q", head)
				}
			}
			// The type itself can be written anew, too.
			if z.File[0].Name == "mimetype" {
				s.synced(name, "mimetype", "application/other")
				now := s.get(name)
				if string(now[30:55]) != "mimetypeapplication/other" {
					t.Errorf("it begins with %q", now[:60])
				}
				s.accepted(name)
			}
		})
	}
}

// A file of more than 32 bits gets 64-bit sizes.
func TestFileOver4GiB(t *testing.T) {
	s := newScratch(t)
	s.MaxSize = 16 << 30
	s.put("a.zip", zipOf(t, "", file{name: "text.txt", content: "text"}, file{name: "last.txt", content: "last"}))
	o := s.open("a.zip", OpenOptions{})
	const size = 1<<32 + 10
	s.must(os.WriteFile(filepath.Join(o.Path, "huge"), []byte("begin"), 0o644))
	s.must(os.Truncate(filepath.Join(o.Path, "huge"), size))
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Status(t.Context(), ""); err != nil || st.dirty() {
		t.Errorf("%+v, %v", st, err)
	}
	s.run("7z", "t", "a.zip")
	s.write("text.txt", "changed") // and moves the large one
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	list := strings.Join(s.infolist("a.zip"), "\n")
	if !strings.Contains(list, fmt.Sprint(int64(size))) {
		t.Errorf("%s", list)
	}
}

// Archives of other formats open read-only.
func TestOtherFormatsOpen(t *testing.T) {
	s := newScratch(t)
	s.must(os.MkdirAll(s.path("tree/sub"), 0o755))
	s.must(os.WriteFile(s.path("tree/sub/file.txt"), []byte("content"), 0o644))
	s.run("7z", "a", "a.7z", "./tree/sub")
	for _, format := range []string{"gz", "bz2", "xz", "zst"} {
		s.run("bsdtar", "-C", "tree", "-acf", "a.tar."+format, "sub")
	}
	for _, name := range []string{"a.7z", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst"} {
		if o := s.open(name, OpenOptions{}); !o.ReadOnly || o.Files != 1 || o.Bytes != 7 {
			t.Errorf("%s: %+v", name, o)
		}
		if have := s.read("sub/file.txt"); have != "content" {
			t.Errorf("%s: %q", name, have)
		}
		wantCode(t, s.Write(t.Context(), "", "new", nil, true), ReadOnly)
		wantCode(t, s.Delete(t.Context(), "", "sub", true), ReadOnly)
		_, err := s.Sync(t.Context(), "", SyncOptions{})
		wantCode(t, err, ReadOnly)
		if _, err := s.Workspaces.Close(t.Context(), "", CloseOptions{}); err != nil {
			t.Error(err)
		}
	}
}
