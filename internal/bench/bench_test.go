package main

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.00234567: "0.00235", 1: "1", 12.345: "12.3", 999.4: "999", 999.6: "1,000", 1234567: "1,234,567", 0.00009724: "0.0000972"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
	for v, want := range map[int64]string{12: "12 B", 64_000: "64 kB", 1_000_000: "1 MB", 4_000_000_000: "4 GB"} {
		if got := bytesText(v); got != want {
			t.Errorf("bytesText(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestParseBenchmarks(t *testing.T) {
	got, failed, err := parseBenchmarks(strings.NewReader(`goos: linux
pkg: example.org/owner/name/internal/walk
cpu: some
BenchmarkTree-2         	      50	  22334455 ns/op	   99.5 MB/s	 1000 B/op	      12 allocs/op
BenchmarkSub/a-b/x-16   	      50	  2.5 ns/op
--- BENCH: BenchmarkTree-2
    tree_test.go:1: said something
BenchmarkStarted
PASS
pkg: example.org/owner/name/cmd
BenchmarkRead 	 100	 3 ns/op	 4 page/op	 5 word/op
ok  	example.org/owner/name/cmd	1.2s
--- FAIL: BenchmarkBad
FAIL
exit status 1
FAIL	example.org/owner/name/ops/edit	24.003s
FAIL	example.org/owner/name/ops/list [build failed]
FAIL
`))
	want := []benchmark{
		{"internal/walk", "Tree", 22334455, 1000, 12, "99.5 MB/s"},
		{"internal/walk", "Sub/a-b/x", 2.5, 0, 0, ""},
		{"cmd", "Read", 3, 0, 0, "4 page/op, 5 word/op"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if want := []string{"ops/edit", "ops/list"}; !slices.Equal(failed, want) {
		t.Errorf("failed: %q, want %q", failed, want)
	}
	text := results{plan: plan{parts: []string{"go"}}, benchmarks: got, failed: failed}.markdown()
	for _, want := range []string{"| internal/walk | Tree | 22,334,455 | 1,000 | 12 | 99.5 MB/s |\n", "not wholly shown: ops/edit, ops/list.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if _, _, err := parseBenchmarks(strings.NewReader("BenchmarkX 1 many ns/op\n")); err == nil {
		t.Error("a figure that is no number is taken")
	}
}

const measurements = `{"servers": ["conduit", "other", "third", "cli", "cli2"], "rounds": 3, "cpus": 2, "results": {
 "zeta": {"what": "first", "metrics": {
   "": {"unit": "ms", "peers": {
     "conduit": {"samples": {"0": 2, "1": 3, "2": 8}, "median": 3},
     "other": {"samples": {"0": 4, "2": 4}, "median": 4},
     "third": {"samples": {"0": 40, "1": 40, "2": 40}, "median": 40},
     "cli": {"samples": {"0": 9, "1": 9, "2": 9}, "median": 9},
     "cli2": {"samples": {"0": 1, "1": 1, "2": 1}, "median": 1}}},
   "peak RSS": {"unit": "kB", "peers": {
     "conduit": {"samples": {"0": 10000, "1": 10000, "2": 10000}, "median": 10000},
     "other": {"samples": {"0": 20000, "2": 40000}, "median": 30000}}}},
  "failed": {"third": "cannot, in /somewhere/secret"}},
 "alpha": {"what": "second", "metrics": {"p50": {"unit": "B", "peers": {"conduit": {"samples": {"0": 5}, "median": 5}}}}, "failed": {}},
 "beta": {"what": "third", "metrics": {"": {"unit": "ms", "peers": {"other": {"samples": {"0": 5}, "median": 5}}}}, "failed": {}}}}`

func TestComparison(t *testing.T) {
	c, err := parseComparison([]byte(measurements))
	if err != nil {
		t.Fatal(err)
	}
	m := c.Results[0].Metrics[0]
	if best := m.best(func(name string) bool { return !isTool(name) }); best != "other" {
		t.Errorf("best server: %q", best)
	}
	if best := m.best(isTool); best != "cli2" {
		t.Errorf("best tool: %q", best)
	}
	if r, ok := m.against("other"); !ok || r != (ratio{1.25, 0.5, 2}) {
		t.Errorf("against other: %v, %v", r, ok)
	}
	if r, ok := m.against("cli2"); !ok || r != (ratio{3, 2, 8}) {
		t.Errorf("against cli2: %v, %v", r, ok)
	}
	text := results{plan: plan{parts: []string{"side"}}, beside: c}.markdown()
	for _, want := range []string{
		"Rounds: 3. ",
		"| zeta | first | 3 ms | other, 4 ms | **1.25** (0.50–2.00) | 1 ms | **3.00** (2.00–8.00) |\n| alpha p50 | second | 5 B | – | – | – | – |\n\n",
		"| zeta | first | 10,000 | other, 30,000 | **0.38** (0.25–0.50) |\n",
		"not counted: zeta (third).",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret") || strings.Contains(text, "beta") {
		t.Errorf("there is more than there should be in\n%s", text)
	}
	for _, bad := range []string{`[]`, `{"servers": ["other"], "results": {}}`, `{"servers": ["conduit"], "results": 1}`} {
		if _, err := parseComparison([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		first, last int64
		want        []int64
	}{{1000, 1_000_000, []int64{1000, 10_000, 100_000, 1_000_000}}, {1, 40, []int64{1, 10, 40}}, {1000, 1000, []int64{1000}}} {
		if got := upTo(c.first, c.last); !slices.Equal(got, c.want) {
			t.Errorf("from %d to %d: %v", c.first, c.last, got)
		}
	}
}

// TestTrees checks that a tree of any size has as many files as asked for, and
// as many to be found.
func TestTrees(t *testing.T) {
	for _, count := range []int64{1000, 1500, 10_000} {
		dir := t.TempDir()
		if err := makeTree(dir, count); err != nil {
			t.Fatal(err)
		}
		files, named, holding, sum := int64(0), 0, 0, int64(0)
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			files, sum = files+1, sum+int64(len(content))
			if strings.HasPrefix(e.Name(), "hit_") {
				named++
			}
			if strings.Contains(string(content), needle) {
				holding++
			}
			return err
		})
		if err != nil || files != count || named != hits || holding != hits || sum != treeBytes(count) {
			t.Errorf("of %d: %d files, %d by name, %d by text, %d bytes, %v", count, files, named, holding, sum, err)
		}
	}
}

func TestLog(t *testing.T) {
	for _, size := range []int64{100_000, 3_000_000} {
		var b strings.Builder
		if err := writeLog(&b, size); err != nil {
			t.Fatal(err)
		}
		if int64(b.Len()) != size || strings.Count(b.String(), needle) != 1 || strings.Index(b.String(), needle) < b.Len()-100 {
			t.Errorf("%d: %d bytes, the end is %q", size, b.Len(), b.String()[b.Len()-100:])
		}
	}
}

// TestPicture checks that a picture is XML, has all names, and that nothing lies
// outside of the plots or on another name.
func TestPicture(t *testing.T) {
	curves := func(names ...string) (all []curve) {
		for i, name := range names {
			c := curve{name: name}
			for n := int64(1000); n <= 1_000_000; n *= 10 {
				c.points = append(c.points, point{n, time.Duration(n) * time.Duration(1000+i), 30e6})
			}
			all = append(all, c)
		}
		return all
	}
	trees, files := curves("by <name>", "by text", "sizes"), curves("a", "b", "c", "d")
	trees[2].points = append(trees[2].points, point{size: 10_000_000, median: time.Second}) // no memory known
	text := draw(trees, files)
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, want := range []string{">by &lt;name&gt;<", ">sizes<", ">d<", ">Files: peak memory<", ">1 s<", ">1,000,000<", ">1 MB<"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "%!") {
		t.Errorf("not all are numbers in\n%s", text)
	}
	if one := draw(curves("x"), []curve{{"y", []point{{1e6, time.Millisecond, 0}}}}); strings.Contains(one, "NaN") || strings.Contains(one, "Inf") {
		t.Errorf("not all are numbers in\n%s", one)
	}
	for i := range trees {
		for j := range trees[i].points {
			trees[i].points[j].peak = 0
		}
	}
	if strings.Contains(draw(trees, files), "memory<") {
		t.Error("memory that is not known is shown")
	}
	if s := (scale{2, 4, 100}); s.at(1000) != 50 || !slices.Equal(s.decades(), []float64{100, 1000, 10000}) || math.Abs(s.at(100)) > 1e-9 {
		t.Errorf("%v, %v", s.at(1000), s.decades())
	}
}

func TestLabelsKeepTheirDistance(t *testing.T) {
	for _, at := range [][]float64{{10, 11, 12}, {210, 211, 212}, {0, 100, 101}, {100}} {
		got := apart(at, lineHeight, plotHeight)
		for i := range got {
			if got[i] < 0 || got[i] > plotHeight || i > 0 && got[i]-got[i-1] < lineHeight-1e-9 {
				t.Errorf("%v becomes %v", at, got)
			}
		}
	}
}
