package page

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const sentence = "<p>The bridge was closed for repairs, and the town, as towns do, found another way across the river.</p>\n"

// hostile are pages made to cost time or memory, smaller ones where tests are
// short.
func hostile() map[string]string {
	repeat := func(s string, n int) string {
		if n >= 1000 {
			n /= scale * longtest.Count(3, 1)
		}
		return strings.Repeat(s, n)
	}
	numbered := func(n int, form func(string) string) string {
		var b strings.Builder
		if n >= 1000 {
			n /= scale * longtest.Count(3, 1)
		}
		for i := range n {
			b.WriteString(form(strconv.Itoa(i)))
		}
		return b.String()
	}
	return map[string]string{
		"nested div":                 repeat("<div>", 200_000) + sentence + repeat("</div>", 200_000),
		"nested b":                   repeat("<b>", 200_000) + sentence,
		"nested a":                   repeat("<a href=x>", 200_000) + sentence,
		"nested span":                repeat("<span>", 200_000) + sentence,
		"nested below the limit":     repeat("<div>", 500) + repeat(sentence, 500) + repeat("</div>", 500),
		"nested and wide":            repeat(repeat("<div>", 400)+sentence+repeat("</div>", 400), 2_800),
		"nested lists":               repeat("<ul><li>item", 20_000) + sentence,
		"nested quotations":          repeat("<blockquote>", 200_000) + sentence,
		"nested tables":              repeat("<table><tr><td>", 60_000) + sentence,
		"nested tables, shallow":     repeat("<table><tr><td>x", 100) + sentence,
		"lists in lists":             repeat(repeat("<ul><li>item", 100)+repeat("</ul>", 100), 1000) + sentence,
		"attributes":                 "<p " + numbered(1_000_000, func(i string) string { return "a" + i + "=" + i + " " }) + ">" + repeat(sentence, 9),
		"equal attributes":           "<p " + repeat("a=b ", 2_000_000) + ">" + repeat(sentence, 9),
		"formatting left open":       numbered(400, func(i string) string { return "<b a=" + i + "></p><p>" }) + repeat("<p>x", 500_000),
		"formatting, few kinds":      numbered(20, func(i string) string { return repeat("<b a="+i+"><i a="+i+">", 3) }) + repeat("<p>x", 20_000),
		"formatting hidden ends":     numbered(400, func(i string) string { return "<b a=" + i + "><!--</b>--><p>" }) + repeat("<p>x", 100_000),
		"formatting, at the limit":   numbered(99, func(i string) string { return "<b a=" + i + "><!--</b>--><p>" }) + repeat("<p>x", 3_300*scale),
		"formatting, plain":          repeat("<b><i><u><s><tt><em><big><code><small><strike><strong><font><p>", 3) + repeat("<p>x", 27_000*scale),
		"formatting, plain and long": repeat("<b><i><u><s><tt><em><big><code><small><strike><strong><font><p>", 3) + repeat("<p>x", 400_000) + sentence,
		"misnested":                  repeat("<b><i><a href=x><p>text</b></i></a>", 50_000) + sentence,
		"table rows":                 "<table><tr><th>a<th>b</tr>" + repeat("<tr><td>1<td>2</tr>", 100_000) + "</table>" + sentence,
		"table columns":              "<table><tr>" + repeat("<td>1", 100_000) + "</tr><tr><td>x</table>" + sentence,
		"table spans":                "<table><tr><th>a</th></tr>" + repeat("<tr><td colspan=100000000 rowspan=100000000>x</td></tr>", 20_000) + "</table>" + sentence,
		"ragged table":               "<table><tr>" + repeat("<th>1", 10_000) + "</tr>" + repeat("<tr><td>1<td>2</tr>", 30_000) + "</table>" + sentence,
		"table text":                 "<table>" + repeat("<p>foster", 100_000) + "</table>" + sentence,
		"unclosed tags":              repeat("<p><li><td><option><dt>", 40_000) + sentence,
		"comments":                   repeat("<!-- -->", 500_000) + sentence,
		"open comment":               sentence + "<!--" + repeat("-", 10_000_000),
		"open tag":                   repeat(sentence, 9) + "<a href=\"" + repeat("x", 10_000_000),
		"less-than signs":            repeat("<", 20_000_000),
		"entities":                   "<p>" + repeat("&amp;&lt;&#x41;&nbsp", 900_000),
		"one text":                   "<p>" + repeat("many words, ", 1_700_000),
		"one word":                   "<p>" + repeat("x", 20_000_000),
		"stars":                      "<p>" + repeat("*_`[](<>", 1_000_000),
		"backticks":                  "<pre>" + repeat("`", 5_000_000) + "</pre>" + sentence,
		"backticks in code":          sentence + "<p><code>" + repeat("` `` ", 500_000) + "</code></p>",
		"breaks":                     "<div>x" + repeat("<br>", 300_000) + "y</div>" + repeat(sentence, 20),
		"breaks between words":       "<div>" + repeat("x<br>", 200_000) + "y</div>" + repeat(sentence, 20),
		"breaks and blank spans":     "<p>" + repeat("<br><span> </span>", 100_000) + "</p>" + repeat(sentence, 20),
		"siblings":                   "<div>" + repeat("<p>a</p>", 250_000) + "</div>",
		"inline siblings":            "<div>" + repeat("<i>a</i> ", 150_000) + "</div>",
		"blank inline siblings":      "<div>" + repeat("<i> </i> ", 100_000) + "</div>" + repeat(sentence, 9),
		"sections":                   repeat("<div>"+sentence+"</div>", 150_000),
		"links":                      repeat("<p><a href=/a>one link after another</a>", 150_000),
		"images":                     repeat(sentence, 20) + repeat("<img src=a.png alt=b>", 300_000),
		"noscripts":                  repeat(sentence, 20) + repeat("<img src=a.png><noscript><img src=b.png></noscript>", 50_000),
		"definitions":                repeat(sentence, 20) + "<dl>" + repeat("<dt>term<dd>meaning", 100_000) + "</dl>",
		"definition groups":          repeat(sentence, 20) + "<dl>" + repeat("<div><dt>term<dd>meaning</div>", 50_000) + "</dl>",
		"formulas":                   repeat(sentence, 20) + repeat("<script type='math/tex'>x</script>", 100_000),
		"code":                       repeat(sentence, 20) + repeat("<pre><code>x</code></pre>", 100_000),
		"superscripts":               repeat(sentence, 20) + "<p>" + repeat("x<sup>2</sup>", 150_000),
		"joiners":                    "<p>" + repeat("\u200d\u200c", 3_000_000) + repeat(sentence, 9),
		"variation selectors":        "<p>" + repeat("x\ufe0f\U000e0101", 1_000_000) + repeat(sentence, 9),
		"svg":                        repeat("<svg><title><b>", 100_000) + sentence,
		"metadata":                   "<head>" + repeat("<meta property='og:title og:title og:title' content='"+repeat("x - ", 100)+"'>", 20_000) + "</head>" + repeat(sentence, 9),
		"title":                      "<title>" + repeat("a - b | ", 1_000_000) + "</title>" + repeat(sentence, 9),
		"JSON-LD":                    "<script type='application/ld+json'>" + repeat("[", 5_000_000) + "</script>" + repeat(sentence, 9),
		"ids":                        repeat(sentence, 20) + numbered(100_000, func(i string) string { return "<p id=share-" + i + " class='share comment'>text, text" }),
		"headings":                   "<title>a title of several words</title>" + repeat("<h1>other words of a heading</h1>", 100_000) + repeat(sentence, 20),
		"links without addresses":    repeat(sentence, 20) + "<p>" + repeat("<a>word</a> ", 100_000),
		"list of one-letter links":   "<ul>" + repeat("<li><a href=/>a</a>", 100_000) + "</ul>" + repeat(sentence, 20),
	}
}

// What grows with the square of a page takes longer than this on any machine.
const patience = 10 * time.Minute

func TestHostilePages(t *testing.T) {
	base, _ := url.Parse("https://example.org/a/")
	for name, page := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			a, err := FromHTML(t.Context(), []byte(page), base)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			t.Logf("%.1f MB in %v, %d MB allocated, %d bytes out, %v", float64(len(page))/1e6, took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, len(a.Markdown), err)
			if took > patience {
				t.Errorf("took %v", took)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<30 {
				t.Errorf("allocated %d MB", allocated>>20)
			}
			check(t, a, err)
			// The one page whose rest is the title of a drawing cannot be saved.
			if strings.Contains(page, sentence) && name != "svg" && !strings.Contains(a.Markdown, "found another way across the river") {
				t.Errorf("the text is lost: %.80q, %v", a.Markdown, err)
			}
		})
	}
}

// check fails where the answer is none that FromHTML may give.
func check(t *testing.T, a Article, err error) {
	t.Helper()
	if err != nil {
		code, message := fault.Of(err)
		if code != fault.MarkdownExtraction && code != fault.MarkdownConversion {
			t.Errorf("code = %s", code)
		}
		if !strings.Contains(message, `"text"`) || strings.Contains(message, "goroutine") {
			t.Errorf("message = %s", message)
		}
		if a != (Article{}) {
			t.Error("an article beside an error")
		}
		return
	}
	for _, s := range []string{a.Markdown, a.Title, a.Byline, a.Excerpt, a.SiteName, a.Published} {
		if !utf8.ValidString(s) {
			t.Errorf("%.80q is not UTF-8", s)
		}
	}
	md := a.Markdown
	if !strings.HasSuffix(md, "\n") || strings.HasSuffix(md, "\n\n") || strings.HasPrefix(md, "\n") {
		t.Errorf("begins %.20q, ends %.20q", md, md[max(0, len(md)-20):])
	}
	if strings.ContainsAny(md, string([]rune{less, more, ampersand, lineEnd, underscore, 0xF002, 7})) {
		t.Error("a character of the conversion is left")
	}
	for line := range strings.Lines(md) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimRight(line, " \t") != line {
			t.Errorf("space at the end of %.80q", line)
		}
	}
	if strings.Contains(strings.ToLower(md), "](javascript:") {
		t.Error("a link runs a script")
	}
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := FromHTML(ctx, []byte(strings.Repeat(sentence, 9)), nil)
	if _, coded := errors.AsType[*fault.Error](err); coded || !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

// The tree of a page is not much larger than its source says, whatever was left
// open.
func TestTreesAreBounded(t *testing.T) {
	for name, page := range hostile() {
		if !strings.HasPrefix(name, "formatting") {
			continue
		}
		doc, err := parse([]byte(page))
		if err != nil {
			t.Fatal(err)
		}
		nodes := 0
		for range doc.Descendants() {
			nodes++
		}
		if limit := maxClones + 2*strings.Count(page, "<"); nodes > limit {
			t.Errorf("%s: %d nodes, more than %d", name, nodes, limit)
		}
	}
}
