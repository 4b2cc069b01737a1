//go:build interop && linux

package all_test

import (
	"archive/zip"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The filesystem toolset: every match, by file and line.
func TestSearchFilesAgainstRipgrep(t *testing.T) {
	s := odd(t, nil)
	r := because(t, append(unseen, "binary", "lossy names", "columns", "modules", "line ends")...)
	for _, c := range []struct{ js, glob, rg string }{
		{"needle", "[!l]*/**", ""}, {"/NEEDLE/i", "*.txt", "(?i)needle"}, {`^needle`, "texts/*", ""}, {`(needle|bar)$`, "{names,texts}/*.{md,txt}", ""},
		{"foo.?bar", "**/words.txt", ""}, {`foo\nbar`, "texts/*", ""}, {"<needle>", "windows.txt", ""}, {"[α-ω]+", "texts/case.txt", ""}, {"é", "[!l]*/**", ""},
	} {
		var got struct {
			Results []struct {
				Type, File, Error string
				Line              int
			}
		}
		remarks := s.call(t, "search_files", object{"regex": c.js, "file_pattern": c.glob}, &got)
		if strings.Contains(remarks, "SEARCH_INCOMPLETE") && (os.Geteuid() == 0 || strings.Contains(remarks, "first 1000")) {
			t.Errorf("%s: %s", c.js, remarks)
		}
		var ours []hit
		for _, h := range got.Results {
			if h.Type == "error" && os.Geteuid() != 0 && h.File == "special/closed.txt" {
				continue // rg tells that by its exit code
			}
			ours = append(ours, hit{h.File, h.Line, 0})
			if h.Type != "match" {
				t.Errorf("%s: %+v", c.js, h)
			}
		}
		pattern := c.rg
		if pattern == "" {
			pattern = c.js
		}
		theirs := rg(t, r, s.dir, "--multiline", "--glob", c.glob, "-e", pattern)
		if c.js == "^needle" || c.js == "(needle|bar)$" {
			lone := []string{"texts/old-mac.txt", "texts/separators.txt"}
			perl := lineStart + "needle"
			if c.js != "^needle" {
				perl = "(needle|bar)" + lineEnd
			}
			theirs = instead(r, "line ends", theirs, grep(t, r, s.dir, "--perl-regexp", "-e", perl), in(lone))
		}
		theirs = textual(r, visible(r, theirs, fileOf))
		theirs = without(r, "modules", theirs, func(h hit) bool { return slices.Contains(strings.Split(h.file, "/"), "node_modules") })
		theirs = exchanged(r, "lossy names", theirs, func(h hit) hit { h.file = string([]rune(h.file)); return h })
		for i := range theirs {
			theirs[i].column = 0
		}
		same(t, c.js, ours, theirs)
	}
}

// The zipfs toolset: every line, in a session of what the tree of oddities holds.
func TestZipGrepAgainstRipgrep(t *testing.T) {
	dir := grow(t)
	s := serve(t, dir, map[string]string{"CONDUIT_ZIP_DATA_DIR": filepath.Join(dir, "../state")})
	packTree(t, dir, filepath.Join(dir, "tree.zip"))
	for _, lazy := range []bool{false, true} {
		name := map[bool]string{false: "whole", true: "lazy"}[lazy]
		var opened any
		s.call(t, "zipfs_open", object{"path": "tree.zip", "name": name, "lazy": lazy}, &opened)
		t.Run(name, func(t *testing.T) {
			declared := []string{"unpackable", "NUL", "marks", "no UTF-8", "long lines", "columns"}
			if !lazy {
				declared = append(declared, "temporary")
			}
			r := because(t, declared...)
			for _, c := range []struct {
				pattern, path, glob string
				fold                bool
			}{
				{"needle", "/", "", false}, {"needle", "/", "[!l]*/**", true}, {"^needle$", "/", "[!l]*/**", false}, {"straße|kelvin", "/texts", "*.txt", true}, {"^.needle", "/", "[!l]*/**", false}, {".{3}needle", "/", "texts/*.txt", false},
				{"needle", "/texts", "*.{txt,go}", false}, {"level [0-9]+$", "/deep", "d00/**", false}, {"[α-ω]+", "/", "[!l]*/**", true}, {`x = [0-9]{3}`, "/", "*.go", false}, {"<needle>", "/large", "", false},
			} {
				args := object{"session": name, "pattern": c.pattern, "path": c.path, "max_results": 1 << 30}
				flags := []string{"--multiline", "-e", c.pattern}
				if c.glob != "" {
					args["glob"] = c.glob
					flags = append(flags, "--glob", c.glob)
				}
				if c.fold {
					args["ignore_case"] = true
					flags = append(flags, "--ignore-case")
				}
				var got struct {
					Matches []struct {
						File string
						Line int `json:"line_number"`
					}
					Truncated bool
				}
				s.call(t, "zipfs_grep", args, &got)
				var ours []hit
				for _, m := range got.Matches {
					ours = append(ours, hit{strings.TrimPrefix(m.File, "/"), m.Line, 0})
				}
				base := strings.Trim(c.path, "/")
				theirs := lines(based(base, rg(t, r, filepath.Join(dir, base), flags...)))
				theirs = without(r, "unpackable", theirs, func(h hit) bool { return !packable(h.file) })
				if !lazy {
					theirs = without(r, "temporary", theirs, func(h hit) bool { return path.Base(h.file) == temporaryName })
				}
				theirs = without(r, "NUL", theirs, func(h hit) bool {
					return slices.Contains(utf16Files, h.file) || strings.Contains(binaries[h.file], "\x00")
				})
				theirs = without(r, "long lines", theirs, func(h hit) bool { return h.file == "large/long-lines.txt" && h.line == 1 })
				if c.pattern[0] == '^' {
					theirs = instead(r, "marks", theirs, lines(grep(t, r, dir, "--perl-regexp", "-e", strings.Replace(c.pattern, "$", `\r?$`, 1))), in(markedFiles))
				}
				plain := lines(rg(t, r, filepath.Join(dir, "../out/decoded"), flags...))
				if base == "" {
					theirs = instead(r, "no UTF-8", theirs, plain, in(brokenFiles))
				}
				same(t, c.pattern+" in "+c.path+c.glob, ours, theirs)
				if got.Truncated {
					t.Error("truncated")
				}
			}
			s.call(t, "zipfs_close", object{"session": name}, &opened)
		})
	}
}

// packable reports whether a file of the tree is put into the archive.
// Those that would be refused are left out.
func packable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsAny(name, "\\\ufffd") && name != "tree.zip"
}

// packTree makes an archive of the regular files in dir.
func packTree(t *testing.T, dir, name string) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	z := zip.NewWriter(f)
	must(t, filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return nil // of the directory that is closed
		}
		rel, _ := filepath.Rel(dir, at)
		if err != nil || !e.Type().IsRegular() || !packable(rel) {
			return err
		}
		content, err := os.ReadFile(at)
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		must(t, err)
		w, err := z.CreateHeader(&zip.FileHeader{Name: rel}) // stored, or it would pass for a bomb
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	}))
	must(t, z.Close())
	must(t, f.Close())
}
