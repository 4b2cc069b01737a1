package page

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the goldens by what the pages become")

// TestGoldens compares each testdata/<shape>.html with <shape>.md: a line for
// each thing that the page says of itself, then the Markdown.
func TestGoldens(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.html")
	if err != nil || len(pages) < 14 {
		t.Fatalf("%d pages (%v)", len(pages), err)
	}
	base, _ := url.Parse("https://example.org/docs/page.html")
	for _, name := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".html"), func(t *testing.T) {
			page, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			a, err := FromHTML(t.Context(), page, base)
			if err != nil {
				t.Fatal(err)
			}
			check(t, a, err)
			got := "title: " + a.Title + "\nbyline: " + a.Byline + "\nexcerpt: " + a.Excerpt +
				"\nsite: " + a.SiteName + "\npublished: " + a.Published + "\n\n" + a.Markdown
			golden := strings.TrimSuffix(name, ".html") + ".md"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
