package all_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

var then = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// packed are the entries of the archives of these tests; those that end in a
// slash are directories, "->" makes a link.
var packed = [][2]string{
	{"docs/", ""},
	{"docs/a.txt", "alpha\nbeta\n"},
	{"docs/deep/er/b.md", "# Beta\n"},
	{"docs/link", "->a.txt"},
	{"docs/out", "->../../etc/passwd"},
	{"logo.png", "\x89PNG\r\n\x1a\n"},
	{"old.txt", "alpha\ngamma\n"},
}

func zipOf(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range packed {
		h := &zip.FileHeader{Name: e[0], Method: zip.Deflate, Modified: then}
		h.SetMode(0o644)
		content, link := strings.CutPrefix(e[1], "->")
		switch {
		case strings.HasSuffix(e[0], "/"):
			h.SetMode(os.ModeDir | 0o755)
		case link:
			h.SetMode(os.ModeSymlink | 0o777)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarGzOf(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range packed {
		h := &tar.Header{Name: e[0], Mode: 0o644, Size: int64(len(e[1])), ModTime: then, Typeflag: tar.TypeReg}
		content, link := strings.CutPrefix(e[1], "->")
		switch {
		case strings.HasSuffix(e[0], "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case link:
			h.Typeflag, h.Linkname, h.Mode, h.Size, content = tar.TypeSymlink, content, 0o777, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is in an archive is read, described, compared, listed and found like
// files, whatever the format.
func TestInsideArchives(t *testing.T) {
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	ops := map[string]*registry.Op{}
	for _, op := range set.AllOps() {
		ops[op.ID()] = op
	}
	archives := map[string][]byte{"a.zip": zipOf(t), "b.tgz": tarGzOf(t), "c.unknown": zipOf(t)}
	const file = `"type":"file","size_bytes":%d,"mime_type":"text/plain","created_at_iso":"2026-03-01T10:00:00.000Z","modified_at_iso":"2026-03-01T10:00:00.000Z","permissions_octal":"0644","permissions_string":"rw-r--r--"`
	aTxt := `{"name":"a.txt","path":"$A!/docs/a.txt",` + fmt.Sprintf(file, 11) + `}`
	for name, content := range archives {
		for _, c := range []struct{ op, env, args, want string }{
			{"read.content", "", `{"sources": ["$N!/docs/a.txt", "$N!/docs/link"], "view": "lean"}`, "==> $N!/docs/a.txt <==\nalpha\nbeta\n\n==> $N!/docs/link <==\nalpha\nbeta\n"},
			{"read.content", "", `{"sources": ["$N!/docs/a.txt"], "start_line": 2}`, `[{"source":"$N!/docs/a.txt","source_type":"file","output_format_used":"text","content":"beta\n","status":"success","mime_type":"text/plain","size_bytes":5}]`},
			{"read.content", "", `{"sources": ["$N!/logo.png"]}`, `[{"source":"$N!/logo.png","source_type":"file","output_format_used":"base64","content":"iVBORw0KGgo=","status":"success","mime_type":"image/png","size_bytes":12,"compression_applied":false}]`},
			{"read.content", "", `{"sources": ["$N!/docs/a.txt"], "format": "checksum", "checksum_algorithm": "md5"}`, `[{"source":"$N!/docs/a.txt","source_type":"file","output_format_used":"checksum","status":"success","mime_type":"text/plain","size_bytes":11,"checksum":"852e77b490fb4e8653fbc11f4c6f89c2","checksum_algorithm_used":"md5"}]`},
			{"read.content", "", `{"sources": ["$N!/none", "$N!/docs", "$N!/docs/out"]}`, "ERR_FS_NOT_FOUND ERR_FS_IS_DIRECTORY ERR_FS_NOT_FOUND"},
			{"read.content", "CONDUIT_MAX_FILE_READ_BYTES=10", `{"sources": ["$N!/docs/a.txt"]}`, "ERR_RESOURCE_LIMIT_EXCEEDED"},
			{"read.content", "CONDUIT_DENIED_PATHS=*.md", `{"sources": ["$N!/docs/deep/er/b.md"]}`, "ERR_FS_ACCESS_DENIED"},
			{"read.metadata", "", `{"sources": ["$N!/docs/a.txt"]}`, `[{"source":"$N!/docs/a.txt","source_type":"file","status":"success","metadata":{"name":"a.txt","entry_type":"file","size_bytes":11,"mime_type":"text/plain","modified_at_iso":"2026-03-01T10:00:00.000Z","permissions_octal":"0644","permissions_string":"rw-r--r--"}}]`},
			{"read.metadata", "", `{"sources": ["$N!/docs/deep", "$N!/x"], "view": "lean"}`, "ERR_FS_NOT_FOUND"},
			{"read.diff", "", `{"sources": ["$N!/old.txt", "$N!/docs/a.txt"], "view": "lean"}`, "--- a/old.txt\n+++ b/old.txt\n@@ -1,2 +1,2 @@\n alpha\n-gamma\n+beta\n"},
			{"list.entries", "", `{"path": "$N!/", "view": "lean"}`, "docs/\nlogo.png\nold.txt"},
			{"list.entries", "", `{"path": "$N!/", "recursive_depth": 5, "calculate_recursive_size": true, "view": "lean"}`, "docs/\t18\n  a.txt\t11\n  deep/\t7\n    er/\t7\n      b.md\t7\n  link -> a.txt\n  out -> ../../etc/passwd\nlogo.png\t8\nold.txt\t12"},
			{"list.entries", "", `{"path": "$N!/docs", "max_results": 1}`, `[` + aTxt + `]`},
			{"list.entries", "CONDUIT_DENIED_PATHS=deep", `{"path": "$N!/docs", "recursive_depth": 5, "view": "lean"}`, "a.txt\nlink -> a.txt\nout -> ../../etc/passwd"},
			{"list.entries", "", `{"path": "$N!/old.txt"}`, "ERR_FS_IS_FILE"},
			{"list.entries", "", `{"path": "$N!/", "ignore": "gitignore"}`, "ERR_INVALID_PARAMETER"},
			{"find", "", `{"base_path": "$N!/", "match_criteria": [{"type": "content_pattern", "pattern": "BETA"}], "include_matches": true, "view": "lean"}`, "docs/a.txt:2: beta\ndocs/deep/er/b.md:1: # Beta"},
			{"find", "", `{"base_path": "$N!/docs", "match_criteria": [{"type": "name_pattern", "pattern": "*.txt"}]}`, `[` + aTxt + `]`},
			{"find", "", `{"base_path": "$N!/", "match_criteria": [{"type": "metadata_filter", "attribute": "mime_type", "operator": "starts_with", "value": "image/"}], "view": "lean"}`, "logo.png"},
			{"find", "", `{"base_path": "$N!/", "match_criteria": [], "entry_type_filter": "directory", "view": "lean"}`, "docs/\ndocs/deep/\ndocs/deep/er/"},
			{"find", "", `{"base_path": "$N!/", "recursive": false, "match_criteria": [], "view": "lean"}`, "docs/\nlogo.png\nold.txt"},
			{"find", "", `{"base_path": "$N!/", "match_criteria": [], "max_results": 2, "cursor": "docs/a.txt", "view": "lean"}`, "docs/deep/\ndocs/deep/er/"},
			{"find", "CONDUIT_DENIED_PATHS=deep", `{"base_path": "$N!/", "match_criteria": [{"type": "name_pattern", "pattern": "*.md"}]}`, "[]"},
			{"find", "", `{"base_path": "$N!/none", "match_criteria": []}`, "ERR_FS_NOT_FOUND"},
			{"write.delete", "", `{"entries": [{"path": "$N!/docs/a.txt"}]}`, "ERR_FS_BAD_PATH_INPUT"},
			{"write.put", "", `{"entries": [{"path": "$N!/docs/a.txt", "content": "x"}]}`, "ERR_FS_BAD_PATH_INPUT"},
		} {
			env := map[string]string{}
			if key, value, ok := strings.Cut(c.env, "="); ok {
				env[key] = value
			}
			b := optest.New(t, ops[c.op], env)
			if err := os.WriteFile(filepath.Join(b.Dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
			show := strings.NewReplacer("$N", name, "$A", filepath.Join(b.Dir, name))
			got := b.Text(t, show.Replace(c.args))
			want := show.Replace(c.want)
			if strings.HasPrefix(want, "ERR_") {
				for code := range strings.FieldsSeq(want) {
					if !strings.Contains(got, code) {
						t.Errorf("%s %s of %s: want %s, got %s", c.op, c.args, name, code, got)
					}
				}
			} else if got != want {
				t.Errorf("%s %s of %s:\ngot  %s\nwant %s", c.op, c.args, name, got, want)
			}
		}
	}
}

func TestWhatIsNoArchive(t *testing.T) {
	set, err := registry.Registered()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range set.AllOps() {
		args := map[string]string{"read.content": `{"sources": ["a.txt!/x"]}`, "list.entries": `{"path": "a.txt!/x"}`, "find": `{"base_path": "a.txt!/", "match_criteria": []}`}[op.ID()]
		if args == "" {
			continue
		}
		b := optest.New(t, op, nil)
		for content, code := range map[string]string{"words": "ERR_COULD_NOT_DETECT_ARCHIVE_FORMAT", string(zipOf(t)[:300]): "ERR_"} {
			if err := os.WriteFile(filepath.Join(b.Dir, "a.txt"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := b.Text(t, args); !strings.Contains(got, code) || strings.Contains(got, "INTERNAL") {
				t.Errorf("%s: %s", op.ID(), got)
			}
		}
	}
}
