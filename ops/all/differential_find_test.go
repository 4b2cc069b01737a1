//go:build interop && linux

package all_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A found is a result of find, as far as it is compared.
type found struct {
	Path    string
	Type    string
	Lossy   bool `json:"name_lossy"`
	Matches []struct {
		Line, Column int
		Text         string
	}
}

// find calls our find and returns the paths below base, and the remarks. Results
// must be in the order of paths.
func (s *server) find(t *testing.T, args object) ([]found, string) {
	t.Helper()
	if args["base_path"] == nil {
		args["base_path"] = "."
	}
	if args["match_criteria"] == nil {
		args["match_criteria"] = []object{}
	}
	var list []found
	remarks := s.call(t, "find", args, &list)
	for i := range list {
		list[i].Path = strings.TrimPrefix(list[i].Path, s.dir+"/")
	}
	if !slices.IsSortedFunc(list, func(a, b found) int {
		if a.Lossy || b.Lossy {
			return 0 // they are in the order of their bytes
		}
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	}) {
		t.Errorf("find %v: not in the order of paths", args)
	}
	if strings.Contains(remarks, "files_given_up") || strings.Contains(remarks, "timed_out") {
		t.Errorf("find %v: %s", args, remarks)
	}
	return list, remarks
}

func pathsOf(list []found) []string {
	var names []string
	for _, f := range list {
		names = append(names, f.Path)
	}
	return names
}

// hitsOf are the matching lines of results.
func hitsOf(list []found) []hit {
	var hits []hit
	for _, f := range list {
		for _, m := range f.Matches {
			hits = append(hits, hit{f.Path, m.Line, m.Column})
		}
	}
	return hits
}

// unseen are the reasons of what every search of the tree of oddities leaves out.
var unseen = []string{"depth", "denied", "temporary"}

// visible applies unseen to names of the tree.
func visible[E any](r *reasons, theirs []E, name func(E) string) []E {
	theirs = without(r, "depth", theirs, func(e E) bool { return strings.Count(name(e), "/") > maxDepth })
	theirs = without(r, "denied", theirs, func(e E) bool { return name(e) == "secret" || strings.HasPrefix(name(e), "secret/") })
	return without(r, "temporary", theirs, func(e E) bool { return path.Base(name(e)) == temporaryName })
}

func itself(s string) string { return s }

// shown is a name as JSON has it.
func shown(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func odd(t *testing.T, env map[string]string) *server {
	t.Helper()
	dir := grow(t)
	return serve(t, dir, env, filepath.Join(dir, "secret"))
}

// Names: every glob chooses what find(1) chooses.
func TestNamesAgainstFind(t *testing.T) {
	dir, err := goSources()
	must(t, err)
	deep := serve(t, dir, map[string]string{"CONDUIT_MAX_RECURSIVE_DEPTH": "100"})
	for _, c := range []struct{ glob, theirs string }{
		{"*", "-true"}, {"*.go", "-name *.go"}, {"*_test.go", "-name *_test.go"}, {"[a-c]*[0-9].s", "-name [a-c]*[0-9].s"}, {"z?????.go", "-name z?????.go"},
		{"net/http/*.go", "-path ./net/http/*.go ! -path ./net/http/*/*.go"}, {"**/testdata/*", "-regex .*/testdata/[^/]*"}, {"{fmt,os}", "( -name fmt -o -name os )"},
		{"nothing-like-this", "-name nothing-like-this"},
	} {
		list, remarks := deep.find(t, object{"match_criteria": []object{{"type": "name_pattern", "pattern": c.glob}}})
		theirs := paths(t, deep.dir, nil, "find", append([]string{".", "-mindepth", "1"}, append(strings.Fields(c.theirs), "-print0")...)...)
		same(t, c.glob, pathsOf(list), theirs)
		if remarks != "" {
			t.Errorf("%s: %s", c.glob, remarks)
		}
	}

	s := odd(t, nil)
	r := because(t, append(unseen, "lossy names", "characters")...)
	for _, c := range []struct{ glob, theirs string }{
		{"*", "-true"}, {"*.txt", "-name *.txt"}, {".*", "-name .*"}, {"*\n*", "-name *\n*"}, {"[[]*", "-name [[]*"}, {`\[a-c].txt`, `-name \[a-c].txt`}, {"[a-c].txt", "-name [a-c].txt"},
		{"[!a-c].txt", "-name [!a-c].txt"}, {"[^a-c].txt", "-name [^a-c].txt"}, {"*'*", "-name *'*"}, {`*\**`, `-name *\**`}, {`*\\*`, `-name *\\*`}, {"* *", "-name *\x01*"},
		{"-*", "-name -*"}, {"é.txt", "-name é.txt"}, {"?.txt", "-name ?.txt"}, {"??.txt", "-name ??.txt"}, {`\{*`, "-name {*"}, {"{brace,b}.txt", "( -name brace.txt -o -name b.txt )"},
		{"*.{md,TXT}", "( -name *.md -o -name *.TXT )"}, {"texts/*", "-path ./texts/*"}, {"**/d0[1-3]/**", "-regex .*/d0[1-3]\\(/.*\\)?"}, {"**/file.txt", "-name file.txt"}, {"dee*/*", "-path ./deep/* ! -path ./deep/*/*"},
	} {
		list, remarks := s.find(t, object{"match_criteria": []object{{"type": "name_pattern", "pattern": c.glob}}})
		args := append([]string{"LC_ALL=C", "find", ".", "-mindepth", "1"}, strings.Split(c.theirs, " ")...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\x01", " ")
		}
		theirs := visible(r, paths(t, s.dir, nil, "env", append(args, "-print0")...), itself)
		switch c.glob {
		case "?.txt", "[!a-c].txt", "[^a-c].txt":
			theirs = with(r, "characters", theirs, "names/é.txt", "names/😀.txt", "names/\ufffd.txt")
		case "??.txt":
			theirs = without(r, "characters", theirs, func(s string) bool { return s == "names/é.txt" })
			theirs = with(r, "characters", theirs, "names/e\u0301.txt")
		}
		same(t, c.glob, pathsOf(list), exchanged(r, "lossy names", theirs, shown))
		if !strings.Contains(remarks, "DEPTH_LIMIT_REACHED") || strings.Contains(remarks, `"directories_unreadable":1`) != (os.Geteuid() != 0) {
			t.Errorf("%s: %s", c.glob, remarks)
		}
	}
}

// Kinds: files and directories.
func TestTypesAgainstFind(t *testing.T) {
	s := odd(t, nil)
	r := because(t, append(unseen, "lossy names", "links", "dead links", "specials")...)
	for _, kind := range []string{"file", "directory"} {
		theirs := paths(t, s.dir, nil, "find", ".", "-mindepth", "1", "-type", kind[:1], "-print0")
		toFile, toDir, dead := linkKinds(t, s.dir)
		if kind == "file" {
			theirs = with(r, "specials", theirs, paths(t, s.dir, nil, "find", ".", "!", "-type", "f", "!", "-type", "d", "!", "-type", "l", "-print0")...)
			theirs = with(r, "links", theirs, toFile...)
			theirs = with(r, "dead links", theirs, dead...)
		} else {
			theirs = with(r, "links", theirs, toDir...)
		}
		theirs = exchanged(r, "lossy names", visible(r, theirs, itself), shown)
		list, _ := s.find(t, object{"entry_type_filter": kind})
		same(t, kind, pathsOf(list), theirs)
		list, _ = s.find(t, object{"match_criteria": []object{{"type": "metadata_filter", "attribute": "entry_type", "operator": "equals", "value": kind}}})
		same(t, kind+" as a filter", pathsOf(list), theirs)
	}
	for _, c := range []struct {
		operator, value string
		sensitive       bool
		theirs          []string
	}{
		{"contains", "DOT", false, []string{"-iname", "*dot*"}}, {"contains", "é", false, []string{"-iname", "*é*"}}, {"starts_with", "UP", true, []string{"-name", "UP*"}},
		{"ends_with", ".txt", false, []string{"-iname", "*.txt"}}, {"equals", "NOEXTENSION", false, []string{"-iname", "noextension"}}, {"matches_regex", `^[a-z]+\.(txt|md)$`, false, []string{"-regextype", "posix-extended", "-regex", `.*/[a-z]+\.(txt|md)`}},
	} {
		list, _ := s.find(t, object{"match_criteria": []object{func() object {
			o := object{"type": "metadata_filter", "attribute": "name", "operator": c.operator, "value": c.value}
			if c.sensitive {
				o["case_sensitive"] = true
			}
			return o
		}()}})
		theirs := paths(t, s.dir, nil, "find", append([]string{".", "-mindepth", "1"}, append(c.theirs, "-print0")...)...)
		same(t, c.operator+" "+c.value, pathsOf(list), exchanged(r, "lossy names", visible(r, theirs, itself), shown))
	}
}

// linkKinds sorts the links of the tree by what they lead to.
func linkKinds(t *testing.T, dir string) (toFile, toDir, dead []string) {
	t.Helper()
	for name := range links {
		switch fi, err := os.Stat(filepath.Join(dir, name)); {
		case slices.Contains(dull, name) || !utf8.ValidString(name) || err != nil:
			dead = append(dead, name)
		case fi.IsDir():
			toDir = append(toDir, name)
		default:
			toFile = append(toFile, name)
		}
	}
	return toFile, toDir, dead
}

// Sizes and times.
func TestMetadataAgainstFind(t *testing.T) {
	s := odd(t, nil)
	r := because(t, append(unseen, "lossy names", "links", "dead links", "directories", "milliseconds", "midnight")...)
	toFile, toDir, dead := linkKinds(t, s.dir)
	isLink := func(name string) bool { _, ok := links[name]; return ok }
	for _, c := range []struct {
		operator string
		value    int64
		theirs   []string
	}{
		{"eq", 10, []string{"-size", "10c"}}, {"neq", 10, []string{"!", "-size", "10c"}}, {"gt", 10, []string{"-size", "+10c"}}, {"gte", 10, []string{"-size", "+9c"}}, {"lt", 11, []string{"-size", "-11c"}},
		{"lte", 11, []string{"-size", "-12c"}}, {"eq", 0, []string{"-size", "0"}}, {"gt", 1 << 20, []string{"-size", "+1048576c"}}, {"eq", 2_000_000, []string{"-size", "2000000c"}}, {"lt", 0, []string{"-false"}},
	} {
		what := fmt.Sprintf("size %s %d", c.operator, c.value)
		ask := func(more ...string) []string {
			return paths(t, s.dir, nil, "find", slices.Concat([]string{"."}, more, c.theirs, []string{"-print0"})...)
		}
		theirs := without(r, "directories", ask("-mindepth", "1"), func(name string) bool {
			fi, err := os.Lstat(filepath.Join(s.dir, name))
			return err == nil && fi.IsDir()
		})
		theirs = without(r, "dead links", theirs, func(name string) bool { return slices.Contains(dead, name) })
		theirs = without(r, "links", theirs, isLink)
		for _, name := range toFile { // of what it leads to
			theirs = with(r, "links", theirs, paths(t, s.dir, nil, "find", slices.Concat([]string{"-H", "./" + name}, c.theirs, []string{"-print0"})...)...)
		}
		list, _ := s.find(t, object{"match_criteria": []object{{"type": "metadata_filter", "attribute": "size_bytes", "operator": c.operator, "value": c.value}}})
		same(t, what, pathsOf(list), exchanged(r, "lossy names", visible(r, theirs, itself), shown))
	}

	// -newermt is true of what is later than the moment.
	earlier := func(at time.Time) string { return at.Add(-time.Nanosecond).Format("2006-01-02 15:04:05.999999999") }
	exactly := func(at time.Time) string { return at.Format("2006-01-02 15:04:05.999999999") }
	for _, c := range []struct {
		operator, value string
		theirs          []string
		fit             func(r *reasons, theirs []string) []string
	}{
		{"after", "2024-02-29T12:00:00Z", []string{"-newermt", exactly(noon)}, func(r *reasons, theirs []string) []string {
			return without(r, "milliseconds", theirs, func(name string) bool { return name == "texts/code.go" })
		}},
		{"after", "2024-02-29T12:00:00.001Z", []string{"-newermt", exactly(noon.Add(time.Millisecond))}, nil},
		{"before", "2024-02-29T12:00:00Z", []string{"!", "-newermt", earlier(noon)}, nil},
		{"before", "2024-02-29", []string{"!", "-newermt", earlier(day)}, nil},
		{"after", "2024-03-01", []string{"-newermt", exactly(day.Add(24 * time.Hour))}, nil},
		{"before", "1970-01-01", []string{"!", "-newermt", earlier(time.Unix(0, 0).UTC())}, nil},
		{"after", "2100-01-01", []string{"-newermt", "2100-01-01"}, func(r *reasons, theirs []string) []string {
			return without(r, "milliseconds", theirs, func(name string) bool { return name == "texts/blank.txt" })
		}},
		{"on_date", "2024-02-29", []string{"-newermt", "2024-02-29", "!", "-newermt", "2024-03-01"}, func(r *reasons, theirs []string) []string {
			theirs = without(r, "midnight", theirs, func(name string) bool { return name == "src/eleven.txt" })
			return with(r, "midnight", theirs, "src/Makefile")
		}},
	} {
		theirs := paths(t, s.dir, nil, "find", slices.Concat([]string{".", "-mindepth", "1"}, c.theirs, []string{"-print0"})...)
		theirs = without(r, "links", theirs, func(name string) bool { return isLink(name) && !slices.Contains(dead, name) })
		for _, name := range slices.Concat(toFile, toDir) {
			theirs = with(r, "links", theirs, paths(t, s.dir, nil, "find", slices.Concat([]string{"-H", "./" + name, "-maxdepth", "0"}, c.theirs, []string{"-print0"})...)...)
		}
		if c.fit != nil {
			theirs = c.fit(r, theirs)
		}
		list, _ := s.find(t, object{"match_criteria": []object{{"type": "metadata_filter", "attribute": "modified_at_iso", "operator": c.operator, "value": c.value}}})
		same(t, "time "+c.operator+" "+c.value, pathsOf(list), exchanged(r, "lossy names", visible(r, theirs, itself), shown))
	}
}
