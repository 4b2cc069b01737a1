//go:build interop && linux

package all_test

import (
	"bytes"
	"cmp"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Ignored files: what ripgrep leaves out for .gitignore files, and nothing else.
func TestGitignoreAgainstRipgrep(t *testing.T) {
	dir, err := goSources()
	must(t, err)
	files := []string{"--no-config", "--files", "--null", "--hidden", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot", "--no-ignore-parent", "--no-require-git"}
	list, _ := serve(t, dir, map[string]string{"CONDUIT_MAX_RECURSIVE_DEPTH": "100"}).find(t, object{"ignore": "gitignore", "entry_type_filter": "file"})
	same(t, "the sources of Go", pathsOf(list), paths(t, dir, nil, "rg", append(files, "./")...))

	s := odd(t, nil)
	r := because(t, "git itself", "lossy names", "repositories", "braces")
	for base, flags := range map[string][]string{
		"ignored":        files,
		"ignored/sub":    slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "--no-ignore-parent" || f == "--no-require-git" }),
		"ignored/nested": slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "--no-ignore-parent" || f == "--no-require-git" }),
		"ignored/slash":  files,
	} {
		theirs := paths(t, filepath.Join(s.dir, base), []int{1}, "rg", append(flags, "./")...)
		theirs = without(r, "git itself", theirs, func(name string) bool { return slices.Contains(strings.Split(name, "/"), ".git") })
		if base == "ignored" {
			theirs = without(r, "repositories", theirs, func(name string) bool {
				return slices.Contains([]string{"sub/anchored.txt", "sub/build/y", "sub/sub/any.txt"}, name)
			})
			theirs = without(r, "braces", theirs, func(name string) bool { return name == "{br,ace}" })
			theirs = with(r, "braces", theirs, "br", "ace")
		}
		list, _ := s.find(t, object{"base_path": base, "ignore": "gitignore", "entry_type_filter": "file"})
		ours := pathsOf(list)
		for i := range ours {
			ours[i] = strings.TrimPrefix(ours[i], base+"/")
		}
		same(t, base, ours, exchanged(r, "lossy names", theirs, shown))
	}
}

// textual applies to hits of others in the tree of oddities that files which are
// no text are not searched.
func textual(r *reasons, theirs []hit) []hit {
	return without(r, "binary", theirs, func(h hit) bool { return binaries[h.file] != "" })
}

// linked adds the hits in the files that links lead to.
func linked(r *reasons, theirs []hit) []hit {
	var more []hit
	for name, file := range followed {
		for _, h := range theirs {
			if h.file == file {
				more = append(more, hit{name, h.line, h.column})
			}
		}
	}
	return with(r, "links", theirs, more...)
}

func fileOf(h hit) string { return h.file }

// adapted applies what holds for all content below base in the tree of oddities.
func adapted(r *reasons, base string, theirs []hit) []hit {
	theirs = textual(r, visible(r, theirs, fileOf))
	if base == "." {
		theirs = linked(r, theirs)
	}
	return exchanged(r, "lossy names", theirs, func(h hit) hit { h.file = shown(h.file); return h })
}

var inContent = append(slices.Clone(unseen), "binary", "links", "lossy names", "columns")

// content calls our find for the lines with a pattern.
func (s *server) content(t *testing.T, criterion, more object) []found {
	t.Helper()
	criterion["type"] = "content_pattern"
	args := object{"match_criteria": []object{criterion}, "include_matches": true, "max_matches_per_file": 1 << 30}
	for k, v := range more {
		args[k] = v
	}
	list, remarks := s.find(t, args)
	if strings.Contains(remarks, "files_unreadable") && os.Geteuid() == 0 {
		t.Errorf("%v: %s", criterion, remarks)
	}
	return list
}

// Literals: lines and columns in the sources of Go.
func TestLiteralsInSourcesAgainstRipgrep(t *testing.T) {
	dir, err := goSources()
	must(t, err)
	s := serve(t, dir, map[string]string{"CONDUIT_MAX_RECURSIVE_DEPTH": "100"})
	r := because(t, "columns", "binary")
	for _, c := range []struct {
		base, text string
		sensitive  bool
	}{
		{".", "todo(", false}, {"net", "strings.EqualFold", true}, {"encoding", "世界", true}, {"net", "\t\t\t\t\t\treturn", true}, {"unicode", "É", false}, {"crypto", "k", true},
	} {
		args := []string{"--fixed-strings"}
		if !c.sensitive {
			args = append(args, "--ignore-case")
		}
		theirs := firsts(based(c.base, rg(t, r, filepath.Join(dir, c.base), append(args, "-e", c.text)...)))
		heads := map[string]bool{}
		theirs = without(r, "binary", theirs, func(h hit) bool {
			if _, known := heads[h.file]; !known {
				heads[h.file] = noText(t, filepath.Join(dir, h.file))
			}
			return heads[h.file]
		})
		criterion := object{"pattern": c.text, "case_sensitive": c.sensitive}
		list := s.content(t, criterion, object{"base_path": c.base})
		same(t, c.base+": "+c.text, hitsOf(list), theirs)
		if len(theirs) == 0 {
			t.Errorf("%s is not in %s", c.text, c.base)
		}
	}
}

// noText reports whether the first bytes of a file are none that texts have, by
// the rules of the MIME Sniffing Standard for binary data.
func noText(t *testing.T, name string) bool {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	head := b[:min(len(b), 4096)]
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return false
	}
	return bytes.ContainsFunc(head, func(c rune) bool {
		return c <= 8 || c == 0xb || c >= 0xe && c <= 0x1a || c >= 0x1c && c <= 0x1f
	})
}

// Literals in the tree of oddities, against two others.
func TestLiteralsAgainstRipgrepAndGrep(t *testing.T) {
	s := odd(t, nil)
	r := because(t, append(inContent, "utf-16", "marks", "upper case", "kelvin sign")...)
	for _, literal := range []string{
		"needle", "NEEDLE", "n", "straw\n"[:5], "straße", "STRASSE", "kelvin", "\u212aelvin", "σίσυφος", "ΣΊΣΥΦΟΣ", "istanbul", "İstanbul", "ǆ", "ärger", "å", "μ", "é", "日本語", "😀", "e\u0301",
		"a.b", "a*b", "[x]", "$v", "\\n", ".*", "\"quoted\" 'single'", "\t", "  ", "foo", "needle,", "<needle>", "xy", "aa", "needlen", "zzz", "\u2028", "\ufffd",
	} {
		base := "texts"
		if strings.Contains(literal, "needle") {
			base = "."
		}
		for _, sensitive := range []bool{true, false} {
			what := literal + map[bool]string{true: ", by case"}[sensitive]
			args := []string{"--fixed-strings"}
			if !sensitive {
				args = append(args, "--ignore-case")
			}
			args = append(args, "-e", literal)
			list := s.content(t, object{"pattern": literal, "case_sensitive": sensitive}, object{"base_path": base})
			ours := hitsOf(list)
			theirs := firsts(based(base, rg(t, r, filepath.Join(s.dir, base), args...)))
			same(t, what+": ripgrep", ours, adapted(r, base, theirs))
			second := s.grep(t, r, base, args...)
			second = without(r, "upper case", second, func(h hit) bool { return literal == "istanbul" && !sensitive && h == hit{"texts/case.txt", 5, 1} })
			second = exchanged(r, "kelvin sign", second, func(h hit) hit {
				if literal == "\u212aelvin" && !sensitive && h == (hit{"texts/case.txt", 2, 15}) {
					h.column = 1
				}
				return h
			})
			same(t, what+": grep", ours, adapted(r, base, second))
			s.texts(t, list)
		}
	}
}

// grep returns the first match of each line that GNU grep has below base in the
// tree of oddities, as if it decoded UTF-16 and dropped marks.
func (s *server) grep(t *testing.T, r *reasons, base string, args ...string) []hit {
	t.Helper()
	theirs := based(base, grep(t, r, filepath.Join(s.dir, base), args...))
	plain := based(base, grep(t, r, filepath.Join(s.dir, "../out/decoded", base), args...))
	theirs = instead(r, "utf-16", theirs, plain, in(utf16Files))
	return firsts(instead(r, "marks", theirs, plain, in(markedFiles)))
}

// based puts base in front of names.
func based(base string, hits []hit) []hit {
	for i := range hits {
		hits[i].file = path.Join(base, hits[i].file)
	}
	return hits
}

// in chooses what is in files.
func in(files []string) func(hit) bool {
	return func(h hit) bool { return slices.Contains(files, h.file) }
}

// texts compares the lines that find shows with those of the files.
func (s *server) texts(t *testing.T, list []found) {
	t.Helper()
	for _, f := range list {
		if f.Lossy || slices.Contains(utf16Files, f.Path) || slices.Contains(utf16Files, followed[f.Path]) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(s.dir, f.Path))
		must(t, err)
		rows := strings.Split(strings.TrimPrefix(string(b), "\ufeff"), "\n")
		for _, m := range f.Matches {
			want := shown(strings.TrimSuffix(rows[m.Line-1], "\r"))
			if utf8.RuneCountInString(want) > 500 { // the part around the match
				if part := strings.Trim(m.Text, "…"); !strings.Contains(want, part) || len(part) < 100 {
					t.Errorf("%s:%d: shows %q", f.Path, m.Line, m.Text)
				}
			} else if m.Text != want {
				t.Errorf("%s:%d: shows %q, want %q", path.Clean(f.Path), m.Line, m.Text, want)
			}
		}
	}
}

// Expressions of JavaScript in the tree of oddities. rg is the same for ripgrep
// and perl for grep -P, where they have it and write it otherwise; "-" where
// they do not have it.
var expressions = []struct{ js, rg, perl string }{
	{"needle", "", ""}, {"n[aeiou]{2}dle", "", ""}, {"/needle/i", "(?i)needle", "(?i)needle"}, {"needle|straw", "", ""}, {"(?:needle)+", "", ""}, {"need(l|x)e", "", ""},
	{"^needle", "", lineStart + "needle"}, {"needle$", "", "needle" + lineEnd}, {"^needle$", "", lineStart + "needle" + lineEnd}, {"/^NEEDLE$/im", "(?i)^NEEDLE$", "(?i)" + lineStart + "NEEDLE" + lineEnd},
	{"needle.*needle", "", "needle" + dot + "*needle"}, {".{3}needle", "", dot + "{3}needle"}, {"^.needle", "", lineStart + dot + "needle"}, {"e.needle", "", "e" + dot + "needle"},
	{`[^a-z]needle`, "", "-"}, {`foo\nbar`, "", "-"}, {`bar\s+foo`, "", "-"}, {"/foo.bar/s", "(?s)foo.bar", "-"}, {`needle\r\n`, "", "-"},
	{`\bfoo\b`, `(?-u:\b)foo(?-u:\b)`, "-"}, {`\Bfoo`, `(?-u:\B)foo`, "-"}, {`\d+`, "[0-9]+", "[0-9]+"}, {`\w+é`, "[0-9A-Za-z_]+é", "[0-9A-Za-z_]+é"}, {`[\d-]{4}`, "[0-9-]{4}", "[0-9-]{4}"},
	{"[α-ω]+", "", ""}, {"日本.", "", ""}, {"foo(bar|[.])", "", ""}, {"a{2,3}", "", ""}, {"(?:ab)+c?", "", ""}, {`[\]x]`, "", ""}, {`\u00e9`, `\x{e9}`, `\x{e9}`}, {`\x41`, "", ""}, {`\/path`, "/path", "/path"},
	{`x\d = `, "x[0-9] = ", "x[0-9] = "}, {`\$v`, "", ""}, {`\t+needle`, "", ""}, {"[^\\x00-\\x7f] needle", "", ""}, {"n.{0,2}?d", "", "n" + dot + "{0,2}?d"},
	{"(?<=the )needle", "-", ""}, {"(?<!the |a )needle", "-", ""}, {"foo(?!bar)", "-", ""}, {"foo(?=bar|_)", "-", ""}, {"([a-z])\\1", "-", ""}, {"(?<q>[\"'])[a-z]+\\k<q>", "-", ""}, {"(?<=é|本語 )needle", "-", ""}, {"(?<=^|x)needle", "-", "(?:" + lineStart + "|(?<=x))needle"},
}

// What ^, $ and the dot mean in JavaScript, for grep -P.
const (
	lineStart = `(?<![^\n\r\x{2028}\x{2029}])`
	lineEnd   = `(?![^\n\r\x{2028}\x{2029}])`
	dot       = `[^\n\r\x{2028}\x{2029}]`
)

func TestExpressionsAgainstRipgrepAndGrep(t *testing.T) {
	s := odd(t, nil)
	r := because(t, append(inContent, "utf-16", "marks", "line ends", "classes", "no UTF-8")...)
	for _, c := range expressions {
		base := "." // the whole tree where a word can be looked for first, since the time for large files is limited
		if !strings.Contains(c.js, "needle") || strings.ContainsAny(c.js, "(|") {
			base = "texts"
		}
		list := s.content(t, object{"pattern": c.js, "is_regex": true}, object{"base_path": base})
		ours := hitsOf(list)
		there := filepath.Join(s.dir, base)
		plain := filepath.Join(s.dir, "../out/decoded", base)
		perl := cmp.Or(c.perl, c.js)
		var second []hit
		if perl != "-" {
			args := []string{"--perl-regexp", "-e", perl}
			second = s.grep(t, r, base, args...)
			second = instead(r, "no UTF-8", second, firsts(based(base, grep(t, r, plain, args...))), in(brokenFiles))
			same(t, c.js+": grep", ours, adapted(r, base, second))
		}
		if c.rg == "-" {
			continue
		}
		args := []string{"--multiline", "-e", cmp.Or(c.rg, c.js)}
		theirs := firsts(based(base, rg(t, r, there, args...)))
		if ascii.MatchString(c.js) {
			theirs = instead(r, "classes", firsts(based(base, rg(t, r, there, "--multiline", "-e", c.js))), theirs, func(hit) bool { return true })
		}
		theirs = instead(r, "no UTF-8", theirs, firsts(based(base, rg(t, r, plain, args...))), in(brokenFiles))
		if perl != "-" {
			theirs = instead(r, "line ends", theirs, second, in([]string{"texts/old-mac.txt", "texts/separators.txt"}))
		}
		same(t, c.js+": ripgrep", ours, adapted(r, base, theirs))
	}
}

// ascii finds what stands for other characters in ripgrep.
var ascii = regexp.MustCompile(`\\[bBdw]`)

// Expressions in the sources of Go.
func TestExpressionsInSourcesAgainstRipgrep(t *testing.T) {
	dir, err := goSources()
	must(t, err)
	s := serve(t, dir, map[string]string{"CONDUIT_MAX_RECURSIVE_DEPTH": "100"})
	r := because(t, "columns")
	for _, c := range []struct{ base, js, rg string }{
		{"net", `Deprecated: .* instead\.$`, ""}, {"net/http", `^func (\(\w+ \*?[A-Z]\w*\) )?[A-Z]\w*\(`, ""}, {"net/http", `\b[a-z]+Err\b`, ""}, {"strings", `/\bunicode\b/i`, `(?i)\bunicode\b`},
		{"fmt", `"[^"\n]*%[+#]?v[^"\n]*"`, ""}, {"sort", `(\w+) < \w+ && `, ""}, {"regexp", `^\t{4}\S`, ""}, {"unicode/utf8", `0x[0-9A-F]{2,}`, ""}, {"go/scanner", `[^\x00-\x7f]+`, ""},
	} {
		list := s.content(t, object{"pattern": c.js, "is_regex": true}, object{"base_path": c.base})
		theirs := firsts(based(c.base, rg(t, r, filepath.Join(dir, c.base), "--multiline", "-e", cmp.Or(c.rg, c.js))))
		if len(theirs) == 0 {
			t.Errorf("%s is not in %s", c.js, c.base)
		}
		same(t, c.base+": "+c.js, hitsOf(list), theirs)
	}
}
