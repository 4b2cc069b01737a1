package apply

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

// A sample is a file of the corpus. Its line number three is "the mark", which
// stands nowhere else in it.
type sample struct {
	name, path  string // the file, and the path by which it is edited
	charset     string // to be given, or ""
	mode        fs.FileMode
	raw         []byte
	front, back int // bytes before and behind line three, its end not counted
	encode      func(string) []byte
	end         string // of line three
}

// corpus writes every mix of line ends, byte order mark and charset, last line
// end, mode and symbolic link below dir.
func corpus(t *testing.T, dir string) (list []sample) {
	t.Helper()
	charsets := []struct{ name, given, bom, word string }{
		{"utf-8", "", "", "naïve 日本 😀"}, {"utf-8", "", "\xef\xbb\xbf", "naïve 日本"}, {"utf-8", "", "", "torn \xff\xe9 bytes"},
		{"utf-16le", "", "\xff\xfe", "naïve 日本 😀"}, {"utf-16be", "", "\xfe\xff", "naïve 😀"}, {"utf-16le", "utf-16le", "", "naïve"},
		{"windows-1252", "latin1", "", "naïve €"}, {"koi8-r", "koi8-r", "", "слово"}, {"shift_jis", "shift_jis", "", "日本"}, {"gb18030", "gb18030", "", "日本 😀"},
	}
	ends := map[string][]string{"lf": {"\n"}, "crlf": {"\r\n"}, "mixed": {"\n", "\r\n"}, "mixed2": {"\r\n", "\n", "\n"}, "cr": {"\r\n", "\rx\n"}}
	modes := []fs.FileMode{0o644, 0o600, 0o755, 0o4711}
	for ci, c := range charsets {
		encode := func(s string) []byte {
			if c.name == "utf-8" {
				return []byte(s)
			}
			enc, err := htmlindex.Get(c.name)
			if err != nil {
				t.Fatal(err)
			}
			b, err := enc.NewEncoder().Bytes([]byte(s))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		for style, e := range ends {
			for last := range 2 {
				for link := range 2 {
					s := sample{name: fmt.Sprintf("%d-%s-%d-%d.txt", ci, style, last, link), charset: c.given, mode: modes[len(list)%len(modes)], encode: encode, end: e[2%len(e)]}
					var front, back strings.Builder
					for i := range 2 {
						fmt.Fprintf(&front, "line %d \t%s  %s", i, c.word, e[i%len(e)])
					}
					for i := 3; i < 7; i++ {
						fmt.Fprintf(&back, "line %d %s%s", i, c.word, e[i%len(e)])
					}
					if last == 1 {
						back.WriteString("the last line " + c.word)
					}
					s.raw = append([]byte(c.bom), encode(front.String())...)
					s.front = len(s.raw)
					s.raw = append(s.raw, encode("the mark")...)
					rest := encode(s.end + back.String())
					s.back = len(rest)
					s.raw = append(s.raw, rest...)
					s.path = s.name
					if link == 1 {
						s.path = "link-" + s.name
						if err := os.Symlink(s.name, filepath.Join(dir, s.path)); err != nil {
							t.Fatal(err)
						}
					}
					list = append(list, s)
				}
			}
		}
	}
	return list
}

// TestFidelity edits each file of the corpus in every way and compares the bytes
// outside of the edit by hash, and the mode.
func TestFidelity(t *testing.T) {
	b := optest.New(t, op(), nil)
	list := corpus(t, b.Dir)
	if len(list) < 200 {
		t.Fatalf("only %d files", len(list))
	}
	type kind struct {
		name string
		edit string                  // JSON
		want func(s sample) []string // what stands where line three stood, its end not counted, in LF; or the pieces around its end
	}
	line := func(text ...string) func(sample) []string {
		return func(s sample) []string { return []string{strings.Join(text, s.end)} }
	}
	for _, k := range []kind{
		{"old text", `{"old_text": "the mark", "new_text": "new"}`, line("new")},
		{"part of a line", `{"old_text": "mark", "new_text": "end"}`, line("the end")},
		{"deleted text", `{"old_text": "the mark", "new_text": ""}`, line("")},
		{"more lines", `{"old_text": "the mark", "new_text": "one\ntwo\nthree"}`, line("one", "two", "three")},
		{"several lines", `{"old_text": "the mark\nline 3", "new_text": "one\ntwo\nline 3"}`, line("one", "two")},
		{"with other white space", `{"old_text": " the mark", "new_text": " one\n two"}`, line("one", "two")},
		{"lines", `{"start_line": 3, "new_text": "one\ntwo\n"}`, line("one", "two")},
		{"lines without an end", `{"start_line": 3, "end_line": 3, "new_text": "one"}`, line("one")},
		{"inserted before", `{"insert_at_line": 3, "new_text": "zero"}`, line("zero", "the mark")},
		{"inserted after", `{"insert_at_line": 3, "position": "after", "new_text": "four\n"}`, line("the mark", "four")},
		{"deleted", `{"start_line": 3}`, func(sample) []string { return nil }},
	} {
		t.Run(k.name, func(t *testing.T) {
			var changes []string
			for _, s := range list {
				name := filepath.Join(b.Dir, s.name)
				os.Remove(name)
				if err := os.WriteFile(name, s.raw, 0o600); err != nil {
					t.Fatal(err)
				}
				mode := s.mode.Perm()
				if s.mode&0o4000 != 0 {
					mode |= fs.ModeSetuid
				}
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
				changes = append(changes, fmt.Sprintf(`{"path": %q, "charset": %q, "edits": [%s]}`, s.path, s.charset, k.edit))
			}
			match := ""
			if k.name == "with other white space" {
				match = `, "match": "whitespace"`
			}
			var results []struct {
				Status  string `json:"status"`
				Message string `json:"error_message"`
				Diff    string `json:"diff"`
			}
			text := b.Text(t, `{"changes": [`+strings.Join(changes, ",")+`]`+match+`}`)
			if err := json.Unmarshal([]byte(text), &results); err != nil || len(results) != len(list) {
				t.Fatalf("%v: %.300s", err, text)
			}
			for i, s := range list {
				if results[i].Status != "success" {
					t.Errorf("%s: %s", s.name, results[i].Message)
					continue
				}
				got, err := os.ReadFile(filepath.Join(b.Dir, s.name))
				if err != nil {
					t.Fatal(err)
				}
				behind := s.back
				var want []byte
				if pieces := k.want(s); pieces == nil {
					behind -= len(s.encode(s.end))
				} else {
					want = s.encode(pieces[0])
				}
				if len(got) != s.front+len(want)+behind || sha256.Sum256(got[:s.front]) != sha256.Sum256(s.raw[:s.front]) ||
					sha256.Sum256(got[len(got)-behind:]) != sha256.Sum256(s.raw[len(s.raw)-behind:]) {
					t.Errorf("%s: bytes outside of the edit differ:\n%q\n%q", s.name, s.raw, got)
				} else if mid := got[s.front : len(got)-behind]; string(mid) != string(want) {
					t.Errorf("%s: it wrote %q, want %q", s.name, mid, want)
				}
				fi, err := os.Stat(filepath.Join(b.Dir, s.name))
				if err != nil {
					t.Fatal(err)
				}
				if fi.Mode().Perm() != s.mode.Perm() || (fi.Mode()&fs.ModeSetuid != 0) != (s.mode&0o4000 != 0) {
					t.Errorf("%s: mode %v, want %o", s.name, fi.Mode(), s.mode)
				}
				if s.path != s.name {
					if to, err := os.Readlink(filepath.Join(b.Dir, s.path)); err != nil || to != s.name {
						t.Errorf("%s is no link any more", s.path)
					}
				}
			}
		})
	}
}
