package page

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestIsHTML(t *testing.T) {
	for mime, want := range map[string]bool{
		"text/html": true, "Text/HTML; charset=x": true, "application/xhtml+xml": true, " text/html ;a": true,
		"": false, "text/plain": false, "text/htmlx": false, "application/xml": false,
	} {
		if IsHTML(mime) != want {
			t.Errorf("IsHTML(%q) = %v", mime, !want)
		}
	}
}

func TestNoContent(t *testing.T) {
	for _, page := range []string{
		"", "   ", "<html>", "<p>too short", "<p>" + strings.Repeat("&nbsp; \u200b", 200),
		"<div id=app></div><script>render('" + strings.Repeat("text ", 100) + "')</script>",
		"<p style='display:none'>" + strings.Repeat("text ", 100),
		"<p>" + strings.Repeat("x", minContent-1),
		strings.Repeat("<", maxTags+1),
	} {
		a, err := FromHTML(t.Context(), []byte(page), nil)
		if code, message := fault.Of(err); err == nil || code != fault.MarkdownExtraction || !strings.Contains(message, `format "text"`) {
			t.Errorf("%.40q: %q, %v", page, a.Markdown, err)
		}
	}
	if a, err := FromHTML(t.Context(), []byte("<p>"+strings.Repeat("x", minContent)), nil); err != nil || a.Markdown != strings.Repeat("x", minContent)+"\n" {
		t.Errorf("%q, %v", a.Markdown, err)
	}
}

func TestBlankLines(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"a":                               "a",
		"a\nb\n\nc":                       "a\nb\n\nc",
		"a\n\n\nb\n\n\n\n\nc":             "a\n\nb\n\nc",
		"a\n \n   \n  b":                  "a\n \n  b",
		"a  \n\nb  \n  \nc  \n \nd \n\ne": "a\n\nb\n\nc\n\nd \n\ne",
		"a\n\n  ":                         "a\n\n  ",
		"a\n\n\t\n\nb":                    "a\n\n\t\n\nb",
	} {
		if got := string(blankLines([]byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// convert returns the Markdown of a fragment, taken for the main content.
func convert(t *testing.T, fragment, base string) string {
	t.Helper()
	var u *url.URL
	if base != "" {
		u, _ = url.Parse(base)
	}
	doc, err := parse([]byte(fragment))
	if err != nil {
		t.Fatal(err)
	}
	sweep(doc)
	var body *html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "body" {
			body = n
		}
	}
	u = baseOf(doc, u)
	tidy(body, u, "")
	md, err := markdown(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	return md
}

func TestShapes(t *testing.T) {
	for _, c := range []struct{ about, in, want string }{
		{"emphasis in a word", "un<em>be</em>lievable", "un*be*lievable"},
		{"spaces in emphasis", "a<b> bold </b>b", "a **bold** b"},
		{"no emphasis round blocks", "<b><p>one</p><p>two</p></b>", "one\n\ntwo"},
		{"starts of lines", "<p>1. a</p><p>2) b</p><p>- c</p><p>+ d</p><p># e</p><p>* f</p>", "1\\. a\n\n2\\) b\n\n\\- c\n\n\\+ d\n\n\\# e\n\n\\* f"},
		{"no starts of lines", "<p>a. b) c- d+ e= f# 1.2 3. 4) x=y</p><p>é. 5é. ٣. x</p>", "a. b) c- d+ e= f# 1.2 3. 4) x=y\n\né. 5é. ٣. x"},
		{"numbers in parts", "<p>1<b>. x</b></p><p>1<span>. x</span></p>", "1**. x**\n\n1\\. x"},
		{"lines that would underline or divide", "<p>a<br>---<br>===</p><p>- - -</p><p>~~~</p>", "a\\\n\\---\\\n\\===\n\n\\- - -\n\n\\~~~"},
		{"hash at the end of a heading", "<h2>C#</h2>", "## C\\#"},
		{"signs that mean nothing", "a | b \"f\" 'g' $h$ (i) ] j", "a | b \"f\" 'g' $h$ (i) ] j"},
		{"signs in a line", "a ![b](c) `c` ~~d~~ \\e", "a !\\[b](c) \\`c\\` \\~\\~d\\~~ \\\\e"},
		{"exclamation before a link", "<p>a!<a href=/x>b</a></p>", "a\\![b](/x)"},
		{"signs in cells and items", "<table><tr><th>a|b<th>c<tr><td>1. x|y<td>-</table><ul><li>- a<li>1. b</ul>", "| a\\|b | c |\n|---|---|\n| 1\\. x\\|y | \\- |\n\n- \\- a\n- 1\\. b"},
		{"stars", "2 * 3 * 4 and *this*", "2 * 3 * 4 and \\*this*"},
		{"underscores", "a_b_c and _d_", "a_b_c and \\_d_"},
		{"angles", "a &lt; b &gt; c, &lt;b&gt;, &amp;amp; R&amp;D", "a < b > c, \\<b>, \\&amp; R&D"},
		{"no quotation", "&gt; not quoted", "\\> not quoted"},
		{"line breaks", "<p><br>a<br>b<br><br><br>c<br></p>", "a\\\nb\n\nc"},
		{"break in bold", "<b>a<br>b</b>", "**a**\\\n**b**"},
		{"break in a heading", "<h3>a<br>b</h3>", "### a b"},
		{"break in a link", "<a href=/x>a<br>b</a>", "[a b](/x)"},
		{"break at the end of an item", "<ul><li>a<br></li><li>b</li></ul>", "- a\n- b"},
		{"link addresses", `<a href="/a b(c)[d]|e">x</a>`, "[x](/a%20b%28c%29%5Bd%5D%7Ce)"},
		{"brackets in a link", `<a href=/x>a [b] c</a>`, `[a \[b\] c](/x)`},
		{"note", `a<a href=#1>[1]</a>`, "a[1](#1)"},
		{"note in parts", `a<a href=#1><span>[</span>n 1<span>]</span></a>`, "a[n 1](#1)"},
		{"empty link", `a <a href=/x> </a> b`, "a b"},
		{"link without address", `<a name=x>a</a> <a href="">b</a>`, "a b"},
		{"link round blocks", "<a href=/x><div>a</div><h2>b</h2><div>c</div></a>", "a\n\n## [b](/x)\n\nc"},
		{"scripts", "<a href=' java\nscript:x'>a</a> <a href='JAVASCRIPT&colon;x'>b</a> <a href=vbscript:x>c</a> <a href='&#1;javascript:x'>d</a> <a href='\u200bjavascript:x'>e</a>", "a b c d e"},
		{"permalink", "<h2>Title<a href=#t>¶</a></h2>", "## Title"},
		{"code in a line", "<code>a`b</code> <code>`</code> <code> </code>", "``a`b`` `` ` `` ` `"},
		{"code with markup", "<code>&lt;a href=\"x\"&gt; *b* &amp;amp;</code>", "`<a href=\"x\"> *b* &amp;`"},
		{"pre without code", "<pre>a\n  b  \n\n\nc\n</pre>", "```\na\n  b\n\n\nc\n```"},
		{"pre with lines as blocks", "<pre><div>a</div><div></div><div> b</div></pre>", "```\na\n b\n```"},
		{"pre with line numbers", "<pre><span class=lineno>1 </span>a\n<span class=lineno>2 </span>b</pre>", "```\na\nb\n```"},
		{"pre in an item", "<ul><li>x<pre>a\n\nb</pre></li></ul>", "- x\n\n  ```\n  a\n\n  b\n  ```"},
		{"pre in a quotation", "<blockquote><pre>a\n\nb</pre></blockquote>", "> ```\n> a\n>\n> b\n> ```"},
		{"code round pre", "<code><pre>a\nb</pre></code>", "```\na\nb\n```"},
		{"hljs", "<pre><code class='hljs rust'>x</code></pre>", "```rust\nx\n```"},
		{"Prism", "<pre class=language-css><code>x</code></pre>", "```css\nx\n```"},
		{"pandoc", "<div class=sourceCode><pre class='sourceCode haskell'><code>x</code></pre></div>", "```haskell\nx\n```"},
		{"Hugo", "<div class=highlight><pre tabindex=0 class=chroma><code class=language-toml data-lang=toml>x</code></pre></div>", "```toml\nx\n```"},
		{"SyntaxHighlighter", "<pre class='brush: java; gutter: true'>x</pre>", "```java\nx\n```"},
		{"no language", "<pre><code class=language-plaintext>x</code></pre>", "```\nx\n```"},
		{"forged language", "<pre><code class=\"language-a`b\">x</code></pre>", "```\nx\n```"},
		{"numbers from 9", "<ol start=9><li>a<li>b<p>c</ol>", "9. a\n10. b\n\n    c"},
		{"nested list", "<ul><li>a<ol><li>b</ol><li>c</ul>", "- a\n  1. b\n- c"},
		{"tasks", "<ul><li><input type=checkbox> a<li><label><input type=checkbox checked> b</label></ul>", "- [ ] a\n- [x] b"},
		{"item outside a list", "<div><li>a</div>", "a"},
		{"table without rows", "a<table></table>b", "a\n\nb"},
		{"one cell", "<table><tr><td>a<td></table>", "a"},
		{"one row with heading", "<table><tr><th>a<td>b</table>", "|  |  |\n|---|---|\n| a | b |"},
		{"blocks in a cell", "<table><tr><th>a<th>b<tr><td><p>1<p>2<h3>3</h3><td>x<br><br>y<hr>z</table>", "| a | b |\n|---|---|\n| 1<br>2<br>**3** | x<br>y<br>z |"},
		{"code in a cell", "<table><tr><th>a<th>b<tr><td><code>x|y</code><td><pre>1\n2</pre></table>", "| a | b |\n|---|---|\n| `x\\|y` | `1`<br>`2` |"},
		{"list in a cell", "<table><tr><th>a<th>b<tr><td><ul> <li> x <li><p>y </ul><td>z</table>", "| a | b |\n|---|---|\n| • x<br>• y | z |"},
		{"emphasis after a break in a cell", "<table><tr><th>a<th>b<tr><td>x <i><br>y</i><br> z<td></table>", "| a | b |\n|---|---|\n| x<br>*y*<br>z |  |"},
		{"picture in a cell", "<table><tr><th>a<th>b<tr><td><img src=/i.png alt='p|q'><td><a href=/x><img src=/i.png></a></table>", "| a | b |\n|---|---|\n| ![p\\|q](/i.png) | [![](/i.png)](/x) |"},
		{"table in a link", "<a href=/x><table><tr><th>a<th>b<tr><td>c<td>d</table></a>", "| a | b |\n|---|---|\n| c | d |"},
		{"table in an item", "<ul><li>x<table><tr><th>a<th>b<tr><td>c<td>d</table></ul>", "- x\n\n  | a | b |\n  |---|---|\n  | c | d |"},
		{"layout", "<table><tr><td><table><tr><th>a<th>b<tr><td>c<td>d</table><td>e</table>", "| a | b |\n|---|---|\n| c | d |\n\ne"},
		{"empty rows", "<table><tr><th>a<th>b<tr><td> <td><tr><td>c<td>d</table>", "| a | b |\n|---|---|\n| c | d |"},
		{"span over rows and columns", "<table><tr><th>a<th>b<th>c<tr><td rowspan=2 colspan=2>x<td>1<tr><td>2</table>", "| a | b | c |\n|---|---|---|\n| x |  | 1 |\n| x |  | 2 |"},
		{"definitions in groups", "<dl><div><dt>a</dt><dd>b</dd><dd>c</dd></div></dl>", "**a**\n: b\n: c"},
		{"definition in blocks", "<dl><dt>a<dd><p>b<p>c</dl>", "**a**\n\nb\n\nc"},
		{"quotation marks", "<q>a</q>", "“a”"},
		{"quotation", "<blockquote>a<blockquote>b</blockquote></blockquote>", "> a\n>\n> > b"},
		{"raised", "x<sup>2</sup> y<sub>10</sub> 1<sup>st</sup> e<sup>iπ</sup> ™<sup>TM</sup>", "x² y₁₀ 1st e<sup>iπ</sup> ™<sup>TM</sup>"},
		{"ruby", "<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "漢(kan)"},
		{"MathJax 2", `<span class="MathJax_Preview">p</span><span class="MathJax">x</span><script type="math/tex">x_1</script>`, "$x_1$"},
		{"display formula", `<p>a<script type="math/tex; mode=display">x

= y</script>b</p>`, "a\n\n$$\nx\n= y\n$$\n\nb"},
		{"MathML alone", "<math><msub><mi>x</mi><mi>i</mi></msub></math>", "x\\_i"},
		{"late picture", "<img src='data:image/gif;base64,R0lGOD' data-src=/a.jpg alt=b>", "![b](/a.jpg)"},
		{"picture sets", "<img srcset='/a.jpg 400w, /b.jpg 1600w,/c.jpg 4000w'>", "![](/b.jpg)"},
		{"picture by density", "<img srcset='/a,1.jpg 1x, /b.jpg 2x'>", "![](/a,1.jpg)"},
		{"counting picture", "a<img src=/p.gif width=1 height=1>b", "ab"},
		{"data picture", "a<img src=data:image/png;base64,x alt=b>c", "a b c"},
		{"picture with brackets", "<img src='/a b.png' alt='[x] \"y\"' title='say \"z\"'>", `![\[x\] "y"](/a%20b.png "say \"z\"")`},
		{"figure", "<figure><img src=/a.png alt=b><figcaption>c</figcaption></figure>", "![b](/a.png)\n\nc"},
		{"rule", "a<hr>b", "a\n\n---\n\nb"},
		{"struck", "<del>a</del> <s>b</s>", "~~a~~ ~~b~~"},
		{"player", "<video src=/a.mp4></video><audio><source src=/b.mp3></audio>", "[Video](/a.mp4)\n\n[Audio](/b.mp3)"},
		{"private characters", "a\uf002b\ue0f0c\ue0f3d\ae", "abcde"},
		{"advertisement", "<p>a</p><div>Advertisement</div><p>b</p>", "a\n\nb"},
		{"contents", "<div class=toc><ul><li><a href=#a>A</a></ul></div><p>b</p>", "b"},
		{"text like tags", "<ul><li>ul</li><li>p</li></ul>", "- ul\n- p"},
	} {
		t.Run(c.about, func(t *testing.T) {
			if got := convert(t, c.in, ""); got != c.want+"\n" {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", c.in, got, c.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	const base = "https://example.org/a/b.html?c"
	for _, c := range []struct{ in, base, want string }{
		{"d.html", base, "https://example.org/a/d.html"},
		{"/d", base, "https://example.org/d"},
		{"//e.org/d", base, "https://e.org/d"},
		{"?x=1&y=a+b%2Bc", base, "https://example.org/a/b.html?x=1&y=a+b%2Bc"},
		{"#f", base, "https://example.org/a/b.html?c#f"},
		{" HTTP://E.org/ö ", base, "HTTP://E.org/ö"},
		{"mailto:a@b.c", base, "mailto:a@b.c"},
		{"d.html", "", "d.html"},
		{"#f", "", "#f"},
		{"http://[bad", base, "http://%5Bbad"},
		{"a\n b", base, "https://example.org/a/a%20b"},
	} {
		if got := convert(t, `<a href="`+c.in+`">x</a> <img src="`+c.in+`">`, c.base); got != "[x]("+c.want+") ![]("+c.want+")\n" {
			t.Errorf("%q: %s", c.in, got)
		}
	}
	for _, c := range []struct{ element, base, want string }{
		{"<base href=/z/>", base, "https://example.org/z/d"},
		{"<base href=//cdn.org/>", base, "https://cdn.org/d"},
		{"<base target=_top><base href=https://first.org><base href=https://second.org>", base, "https://first.org/d"},
		{"<base href=https://first.org/x/y>", "", "https://first.org/x/d"},
		{"<base href=javascript:x>", base, "https://example.org/a/d"},
		{"<base href=z/>", "", "d"},
	} {
		if got := convert(t, c.element+"<a href=d>x</a>", c.base); got != "[x]("+c.want+")\n" {
			t.Errorf("%q: %s", c.element, got)
		}
	}
}

func TestVisible(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain, ünïcödé – “quotes” … 漢字 \t\n", "plain, ünïcödé – “quotes” … 漢字 \t\n"},
		{"a\u200bb\u2060c\ufeffd\u00ade\u180ef\u034fg", "abcdefg"},
		{"a\x00b\x07c\x1bd\x7fe\u0085f", "abcdef"},
		{"a\x7fb", "ab"},
		{"tag\U000E0001\U000E0069\U000E006E\U000E007F", "tag"},
		{"می\u200cخواهم", "می\u200cخواهم"},
		{"क्\u200dष", "क्\u200dष"},
		{"👩\u200d🔬 ❤️\u200d🔥 👩🏽\u200d🚒", "👩\u200d🔬 ❤️\u200d🔥 👩🏽\u200d🚒"},
		{"ig\u200cno\u200dre", "ignore"},
		{"س\u200c\u200d\u200c\u200dم", "س\u200dم"},
		{"س\u200c و", "س و"},
		{"\u200dم", "\u200dم"},
		{"س\u200c", "س\u200c"},
		{"a\u200c", "a"},
		{"🏴\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F!", "🏴\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F!"},
		{"🏴\U000E0067\U000E0062\U000E0068\U000E0061\U000E0078\U000E007F!", "🏴!"},
		{"🏴\U000E0067", "🏴"},
		{"\u202eevil\u202c \u202dx", "evil x"},
		{"\u202aab\u202c \u202c\u2067c\u2069 \u200ed", "\u202aab\u202c \u2067c\u2069 \u200ed"},
		{"\u202a\u202eab\u202cc\u202c", "\u202aabc\u202c"},
		{"1\ufe0f\u20e3 ✔\ufe0e x\ufe0f ❤\ufe0f\ufe01 葛\U000E0100 é\U000E0100", "1\ufe0f\u20e3 ✔\ufe0e x ❤\ufe0f 葛\U000E0100 é"},
		{"a\uf002b\ue0f1c", "abc"},
		{"\xffa\u200b\xff", "\xffa\xff"},
	} {
		if got := visible(c.in); got != c.want {
			t.Errorf("visible(%+q) = %+q, want %+q", c.in, got, c.want)
		}
	}
	// What is plain is what no rule looks at.
	for r := rune(1); r < 0x30000; r++ {
		if r >= 0xD800 && r < 0xE000 {
			continue
		}
		s := "x" + string(r)
		if got := visible(s + "\u200b"); got != visible(s) {
			t.Errorf("%U: %+q beside %+q", r, got, visible(s))
		}
	}
}

func TestMetadata(t *testing.T) {
	body := strings.Repeat(sentence, 9)
	for _, c := range []struct {
		about, head string
		want        Article
	}{
		{"nothing", "", Article{Excerpt: strings.TrimSuffix(strings.TrimPrefix(sentence, "<p>"), "</p>\n")}},
		{"meta", `<title>A longer title of a page</title><meta name=author content="A&nbsp;B"><meta name=description content="c
			d"><meta property=og:site_name content=E><meta property=article:published_time content=2024-02-29T23:30:00-05:00>`,
			Article{Title: "A longer title of a page", Byline: "A B", Excerpt: "c d", SiteName: "E", Published: "2024-03-01T04:30:00Z"}},
		{"no date", `<meta property=article:published_time content=yesterday><meta name=description content=d>`, Article{Excerpt: "d"}},
		{"long", `<meta name=description content="` + strings.Repeat("é", 900) + `">`, Article{Excerpt: strings.Repeat("é", 500) + "…"}},
	} {
		a, err := FromHTML(t.Context(), []byte("<head>"+c.head+"</head>"+body), nil)
		if err != nil {
			t.Fatal(err)
		}
		a.Markdown = ""
		if a != c.want {
			t.Errorf("%s: %+v, want %+v", c.about, a, c.want)
		}
	}
}

func TestPageThatHidesItself(t *testing.T) {
	for _, root := range []string{"<html style='display:none'>", "<body hidden>", "<body aria-hidden=true style='visibility:hidden'>"} {
		a, err := FromHTML(t.Context(), []byte(root+strings.Repeat(sentence, 9)), nil)
		if err != nil || !strings.Contains(a.Markdown, "The bridge") {
			t.Errorf("%s: %v", root, err)
		}
	}
}

func TestAtTheSameTime(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.html")
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := FromHTML(t.Context(), page, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			wg.Go(func() {
				if a, err := FromHTML(t.Context(), page, nil); err != nil || a != alone {
					t.Errorf("%s differs among others (%v)", name, err)
				}
			})
		}
	}
	wg.Wait()
}

func FuzzFromHTML(f *testing.F) {
	pages, err := filepath.Glob("testdata/*.html")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(page)
	}
	for _, seed := range []string{"<table><tr><td rowspan=9>", "<dl><div><dt><dd><p>", "<a href=x><table><a><b><p>", "<pre><table><tr><td>x<img>", "<math><annotation encoding=tex>", "<ul><br><li><br><br>"} {
		f.Add([]byte(seed + strings.Repeat(sentence, 3)))
	}
	base, _ := url.Parse("https://example.org/a/b")
	f.Fuzz(func(t *testing.T, page []byte) {
		text := []byte(strings.ToValidUTF8(string(page), "\uFFFD"))
		a, err := FromHTML(t.Context(), text, base)
		check(t, a, err)
		if code, _ := fault.Of(err); err != nil && code == fault.MarkdownConversion {
			t.Errorf("conversion: %v", err)
		}
	})
}
