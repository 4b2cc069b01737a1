package page

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
)

// A sample is one page of the collection that Mozilla's Readability is tested
// with, and the main content that is expected of it.
type sample struct {
	name         string
	page, wanted []byte
}

// corpus reads the samples that the readability module carries.
func corpus(t testing.TB) []sample {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "codeberg.org/readeck/go-readability").Output()
	if err != nil {
		t.Fatalf("where is the readability module: %v", err)
	}
	sources, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "test-pages", "*", "source.html"))
	if err != nil || len(sources) < 100 {
		t.Fatalf("%d pages found (%v)", len(sources), err)
	}
	var all []sample
	for _, source := range sources {
		dir := filepath.Dir(source)
		s := sample{name: filepath.Base(dir)}
		if s.page, err = os.ReadFile(source); err != nil {
			t.Fatal(err)
		}
		if s.wanted, err = os.ReadFile(filepath.Join(dir, "expected.html")); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// words returns what is to read below n, by word and with all spaces left out.
func words(n *html.Node) (tokens []string, squeezed string) {
	var b strings.Builder
	for n := range n.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
			b.WriteByte(' ')
		}
	}
	text := visible(b.String())
	tokens = strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return tokens, strings.Join(strings.Fields(text), "")
}

// f1 is the harmonic mean of how much of want is in got and the reverse.
func f1(got, want []string) float64 {
	count := map[string]int{}
	for _, w := range want {
		count[w]++
	}
	shared := 0
	for _, w := range got {
		if count[w] > 0 {
			count[w]--
			shared++
		}
	}
	if len(got)+len(want) == 0 {
		return 1
	}
	return 2 * float64(shared) / float64(len(got)+len(want))
}

// compare extracts every sample and reports how many have exactly the expected
// text but for spaces, how many nearly, and a line for each that has not.
func compare(t testing.TB, all []sample) (exact, near int, report []string) {
	t.Helper()
	base, _ := url.Parse("http://fakehost/test/page.html")
	for _, s := range all {
		_, content, _, err := extract(t.Context(), s.page, base)
		if err != nil || content == nil {
			report = append(report, fmt.Sprintf("%-40s no content (%v)", s.name, err))
			continue
		}
		wanted, err := html.Parse(strings.NewReader(string(s.wanted)))
		if err != nil {
			t.Fatal(err)
		}
		got, gotText := words(content)
		want, wantText := words(wanted)
		score := f1(got, want)
		if score >= 0.99 {
			near++
		}
		if gotText == wantText {
			exact++
		} else {
			i := 0
			for i < min(len(gotText), len(wantText)) && gotText[i] == wantText[i] {
				i++
			}
			report = append(report, fmt.Sprintf("%-40s F1 %.3f, differs at %d of %d: %.40q, want %.40q", s.name, score, i, len(wantText), gotText[i:], wantText[i:]))
		}
	}
	return exact, near, report
}

func TestCorpus(t *testing.T) {
	all := corpus(t)
	exact, near, report := compare(t, all)
	t.Logf("%d pages, %d exact, %d with F1 of 0.99 or more\n%s", len(all), exact, near, strings.Join(report, "\n"))
	if exact < 126 || near < 129 {
		t.Errorf("%d exact and %d near, want at least 126 and 129", exact, near)
	}
}

func BenchmarkCorpus(b *testing.B) {
	all := corpus(b)
	exact, near, report := compare(b, all)
	for _, line := range report {
		b.Log(line)
	}
	base, _ := url.Parse("http://fakehost/test/page.html")
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range all {
			if _, err := FromHTML(context.Background(), s.page, base); err != nil {
				b.Log(s.name, err)
			}
		}
	}
	pages := float64(len(all))
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1e3/float64(b.N)/pages, "ms/page")
	b.ReportMetric(pages, "pages")
	b.ReportMetric(float64(exact), "exact")
	b.ReportMetric(float64(near), "near")
}
