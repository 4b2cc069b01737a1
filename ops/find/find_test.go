package find

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func op() *registry.Op { return registry.New(desc, build) }

func TestGolden(t *testing.T) { optest.Golden(t, op()) }

func TestConform(t *testing.T) {
	set, err := registry.NewSet(nil, []*registry.Op{op()})
	if err != nil {
		t.Fatal(err)
	}
	optest.Conform(t, set)
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lean returns the lines of the lean view of a search.
func lean(t testing.TB, b *optest.Bench, args map[string]any) []string {
	t.Helper()
	lines, _ := ask(t, b, args)
	return lines
}

// ask returns the lines of the lean view and the remarks.
func ask(t testing.TB, b *optest.Bench, args map[string]any) ([]string, string) {
	t.Helper()
	args["base_path"], args["view"] = ".", "lean"
	if args["match_criteria"] == nil {
		args["match_criteria"] = []any{}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.Call(t.Context(), string(raw))
	if err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i, c := range res.Content {
		texts[i] = c.(*mcp.TextContent).Text
	}
	if res.IsError {
		t.Fatal(texts[0])
	}
	if texts[0] == "" {
		return nil, texts[1]
	}
	return strings.Split(texts[0], "\n"), texts[1]
}

// grow fills dir with files of a few words each.
func grow(t testing.TB, dir string, seed uint64, count int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 3))
	dirs := []string{""}
	words := []string{"needle", "Needle", "NEEDLE 12", "hay", "straw 7", "na\u00efve", "\u017fun", "sun", "x\x00y"}
	extensions := []string{".txt", ".md", ".Go", ""}
	for i := range count {
		if rnd.IntN(6) == 0 {
			dirs = append(dirs, fmt.Sprintf("%s/d%d", dirs[rnd.IntN(len(dirs))], rnd.IntN(count)))
		}
		name := fmt.Sprintf("%s/f%d%s", dirs[rnd.IntN(len(dirs))], i, extensions[rnd.IntN(len(extensions))])
		var text strings.Builder
		for range rnd.IntN(30) {
			// Binary files are rare.
			text.WriteString(words[rnd.IntN(len(words)-min(1, rnd.IntN(20)))])
			text.WriteString([]string{" ", "\n", "\r\n"}[rnd.IntN(3)])
		}
		write(t, filepath.Join(dir, name), text.String())
	}
}

// TestAgainstNaive compares with a search that reads everything with the
// standard library.
func TestAgainstNaive(t *testing.T) {
	for seed := range uint64(3) {
		b := optest.New(t, op(), nil)
		grow(t, b.Dir, seed, 300)
		for _, test := range []struct {
			name     string
			criteria []map[string]any
			want     func(rel string, info fs.FileInfo, content []byte) bool
		}{
			{"everything", nil, func(string, fs.FileInfo, []byte) bool { return true }},
			{"glob", []map[string]any{{"type": "name_pattern", "pattern": "*1*.txt"}}, func(rel string, _ fs.FileInfo, _ []byte) bool {
				return strings.HasSuffix(rel, ".txt") && strings.Contains(filepath.Base(strings.TrimSuffix(rel, ".txt")), "1")
			}},
			{"literal", []map[string]any{{"type": "content_pattern", "pattern": "needle 12"}}, textual(`(?i)needle 12`)},
			{"unicode", []map[string]any{{"type": "content_pattern", "pattern": "SUN NA\u00cfVE"}}, textual("(?i)sun na\u00efve")},
			{"expression", []map[string]any{{"type": "content_pattern", "pattern": `^[a-z]+ \d$`, "is_regex": true}}, textual(`(?m)^[a-z]+ \d\r?$`)},
			{"all", []map[string]any{
				{"type": "content_pattern", "pattern": "hay", "case_sensitive": true, "file_types_to_search": []string{"go", "md"}},
				{"type": "metadata_filter", "attribute": "size_bytes", "operator": "gt", "value": 100},
			}, func(rel string, info fs.FileInfo, content []byte) bool {
				return (strings.HasSuffix(rel, ".Go") || strings.HasSuffix(rel, ".md")) && info.Size() > 100 && textual("hay")(rel, info, content)
			}},
		} {
			var want []string
			err := filepath.WalkDir(b.Dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || path == b.Dir {
					return err
				}
				rel, _ := filepath.Rel(b.Dir, path)
				rel = filepath.ToSlash(rel)
				info, err := d.Info()
				if err != nil {
					return err
				}
				var content []byte
				if !d.IsDir() {
					if content, err = os.ReadFile(path); err != nil {
						return err
					}
				}
				if test.want(rel, info, content) {
					want = append(want, rel)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(want, walk.ComparePaths)
			args := map[string]any{}
			if test.criteria != nil {
				args["match_criteria"] = test.criteria
			}
			got := lean(t, b, args)
			for i, name := range got {
				got[i] = strings.TrimSuffix(name, "/")
			}
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("seed %d, %s: %d results, want %d", seed, test.name, len(got), len(want))
			}
			var paged []string
			args["max_results"] = 17
			for {
				page, remarks := ask(t, b, args)
				paged = append(paged, page...)
				var told []struct {
					Details registry.More `json:"details"`
				}
				if remarks == "" {
					break
				}
				if err := json.Unmarshal([]byte(remarks), &told); err != nil || len(page) != 17 {
					t.Fatal(len(page), remarks, err)
				}
				args["cursor"] = told[0].Details.NextCursor
			}
			for i, name := range paged {
				paged[i] = strings.TrimSuffix(name, "/")
			}
			if !slices.Equal(paged, want) {
				t.Errorf("seed %d, %s: the pages are not the whole list", seed, test.name)
			}
		}
	}
}

func textual(pattern string) func(string, fs.FileInfo, []byte) bool {
	re := regexp.MustCompile(pattern)
	return func(_ string, info fs.FileInfo, content []byte) bool {
		return !info.IsDir() && bytes.IndexByte(content, 0) < 0 && re.Match(content)
	}
}

func TestOperators(t *testing.T) {
	b := optest.New(t, op(), nil)
	write(t, filepath.Join(b.Dir, "Report.TXT"), "12345")
	when := time.Date(2024, 5, 1, 23, 30, 0, 123_456_789, time.UTC)
	if err := os.Chtimes(filepath.Join(b.Dir, "Report.TXT"), when, when); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		attribute, operator string
		value               any
		sensitive, want     bool
	}{
		{"name", "equals", "report.txt", false, true},
		{"name", "equals", "report.txt", true, false},
		{"name", "not_equals", "report.txt", false, false},
		{"name", "not_equals", "report.txt", true, true},
		{"name", "contains", "PORT", false, true},
		{"name", "contains", "PORT", true, false},
		{"name", "starts_with", "rep", false, true},
		{"name", "starts_with", "eport", false, false},
		{"name", "ends_with", ".txt", false, true},
		{"name", "ends_with", ".txt", true, false},
		{"name", "matches_regex", "^Report", false, true},
		{"name", "matches_regex", "^report", false, false},
		{"name", "matches_regex", "/^report/i", false, true},
		{"name", "matches_regex", `(?<=R)eport\.(?!txt)`, false, true},
		{"entry_type", "equals", "file", false, true},
		{"entry_type", "not_equals", "file", false, false},
		{"entry_type", "equals", "directory", false, false},
		{"entry_type", "starts_with", "f", false, true},
		{"mime_type", "equals", "TEXT/plain", false, true},
		{"mime_type", "contains", "image", false, false},
		{"mime_type", "not_equals", "image/png", false, true},
		{"mime_type", "matches_regex", "^text/", false, true},
		{"size_bytes", "eq", 5, false, true},
		{"size_bytes", "eq", 6, false, false},
		{"size_bytes", "neq", 6, false, true},
		{"size_bytes", "gt", 5, false, false},
		{"size_bytes", "gte", 5, false, true},
		{"size_bytes", "lt", 5, false, false},
		{"size_bytes", "lte", 5, false, true},
		{"modified_at_iso", "before", "2024-05-01T23:30:00.123Z", false, false},
		{"modified_at_iso", "after", "2024-05-01T23:30:00.123Z", false, false},
		{"modified_at_iso", "before", "2024-05-01T23:30:00.124Z", false, true},
		{"modified_at_iso", "after", "2024-05-02T01:29:59+02:00", false, true},
		{"modified_at_iso", "before", "2024-05-02", false, true},
		{"modified_at_iso", "after", "2024-05-01", false, true},
		{"modified_at_iso", "on_date", "2024-05-01", false, true},
		{"modified_at_iso", "on_date", "2024-05-02T00:00:00+02:00", false, true},
		{"modified_at_iso", "on_date", "2024-05-02", false, false},
		{"created_at_iso", "after", "2024-05-02", false, true},
	} {
		got := lean(t, b, map[string]any{"match_criteria": []any{map[string]any{"type": "metadata_filter", "attribute": test.attribute,
			"operator": test.operator, "value": test.value, "case_sensitive": test.sensitive}}})
		if (len(got) == 1) != test.want {
			t.Errorf("%s %s %v (case sensitive: %v) gave %q", test.attribute, test.operator, test.value, test.sensitive, got)
		}
	}
}

func TestDirectoriesHaveNoSizeOrMIMEType(t *testing.T) {
	b := optest.New(t, op(), nil)
	write(t, filepath.Join(b.Dir, "d/f"), "x")
	for _, filter := range []map[string]any{
		{"type": "metadata_filter", "attribute": "size_bytes", "operator": "gte", "value": 0},
		{"type": "metadata_filter", "attribute": "mime_type", "operator": "not_equals", "value": "x"},
	} {
		if got := lean(t, b, map[string]any{"match_criteria": []any{filter}}); !slices.Equal(got, []string{"d/f"}) {
			t.Errorf("%v gave %q", filter, got)
		}
	}
}

func TestParseTime(t *testing.T) {
	noon := time.Date(2023, 10, 26, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{"2023-10-26T12:00:00Z", "2023-10-26T12:00:00.000Z", "2023-10-26T14:00:00+02:00", "2023-10-26T14:00:00+0200", "2023-10-26T14:00+02",
		"2023-10-26T12:00", "2023-10-26 12:00:00", "2023-10-26t12:00:00z", "20231026T120000Z", " 2023-10-26T12 ", "2023-10-26T12:00:00,000"} {
		if got, ok := parseTime(s); !ok || !got.Equal(noon) {
			t.Errorf("parseTime(%q) = %v, %v", s, got, ok)
		}
	}
	for s, want := range map[string]string{"2023-10-26": "2023-10-26", "2023-10": "2023-10-01", "2023": "2023-01-01"} {
		if got, ok := parseTime(s); !ok || got.Format(time.DateOnly) != want {
			t.Errorf("parseTime(%q) = %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "today", "26.10.2023", "2023-13-01", "2023-10-26T25:00:00Z", "2023-10-26Z"} {
		if got, ok := parseTime(s); ok {
			t.Errorf("parseTime(%q) = %v", s, got)
		}
	}
}

func TestExpansions(t *testing.T) {
	for glob, want := range map[string]int{"a": 1, "{a,b}": 2, "{a,b}{c,d,e}": 6, "{a,{b,c}}x{d,e}": 6, "{a,b{c,d}{e,f}}": 5, `\{a,b}`: 1, "[{,]a": 1,
		strings.Repeat("{a,b}", 60): maxExpansions + 1} {
		if got := expansions(glob); got != want {
			t.Errorf("expansions(%q) = %d, want %d", glob, got, want)
		}
	}
}

func TestTimeout(t *testing.T) {
	b := optest.New(t, op(), map[string]string{"CONDUIT_FIND_TIMEOUT_MS": "1"})
	grow(t, b.Dir, 1, 600)
	got, remarks := ask(t, b, map[string]any{"match_criteria": []any{map[string]any{"type": "content_pattern", "pattern": "(?!x)(.|..)+zz$", "is_regex": true}}})
	if got != nil || !strings.Contains(remarks, `"timed_out":true`) || !strings.Contains(remarks, "CONDUIT_FIND_TIMEOUT_MS (1)") {
		t.Errorf("%q, %s", got, remarks)
	}
}

func TestNamesThatAreNotUTF8(t *testing.T) {
	b := optest.New(t, op(), nil)
	name := filepath.Join(b.Dir, "bad\xff")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Log("this file system takes only UTF-8:", err)
		if _, err := decodeCursor(encodeCursor("bad\xff")); err != nil {
			t.Error(err)
		}
		return
	}
	write(t, filepath.Join(b.Dir, "bbb"), "")
	write(t, filepath.Join(b.Dir, `"q`), "")
	args := map[string]any{"max_results": 1}
	var all []string
	for range 3 {
		page, remarks := ask(t, b, args)
		all = append(all, page...)
		var told []struct {
			Details registry.More `json:"details"`
		}
		if json.Unmarshal([]byte(remarks), &told) == nil && len(told) == 1 {
			args["cursor"] = told[0].Details.NextCursor
		}
	}
	if want := []string{`"q`, "bad\uFFFD", "bbb"}; !slices.Equal(all, want) {
		t.Errorf("paged: %q, want %q", all, want)
	}
}

func BenchmarkFind20000(b *testing.B) {
	bench := optest.New(b, op(), map[string]string{"CONDUIT_MAX_RECURSIVE_DEPTH": "50"})
	rnd := rand.New(rand.NewPCG(1, 1))
	line := "The quick brown fox jumps over the lazy dog, once and again, 2024-05-01T10:00 or so.\n"
	for i := range 20000 {
		text := strings.Repeat(line, 10+rnd.IntN(80))
		if i%1000 == 0 {
			text += "A Needle in the hay\n"
		}
		write(b, fmt.Sprintf("%s/d%d/e%d/f%d.txt", bench.Dir, i%20, i%200, i), text)
	}
	for _, test := range []struct {
		name      string
		criterion map[string]any
		want      int
	}{
		{"glob", map[string]any{"type": "name_pattern", "pattern": "f*77.txt"}, 200},
		{"literal", map[string]any{"type": "content_pattern", "pattern": "needle IN"}, 20},
		{"exact", map[string]any{"type": "content_pattern", "pattern": "Needle in", "case_sensitive": true}, 20},
		{"regex", map[string]any{"type": "content_pattern", "pattern": `Needle\s+in`, "is_regex": true}, 20},
		{"regex without text", map[string]any{"type": "content_pattern", "pattern": `[A-Z]\w+\s[a-z]{2}\s[a-z]{3}\s[a-z]{3}$`, "is_regex": true}, 20},
	} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				if got := lean(b, bench, map[string]any{"match_criteria": []any{test.criterion}}); len(got) != test.want {
					b.Fatalf("%d results, want %d", len(got), test.want)
				}
			}
		})
	}
}
