package page

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// code makes a block of code one text, in lines without spaces at their ends.
func code(pre *html.Node) *html.Node {
	var b strings.Builder
	newline := func() {
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			b.WriteByte('\n')
		}
	}
	pictures := false
	var write func(n *html.Node)
	write = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
			return
		case n.Type != html.ElementNode || aside(n):
			return
		case n.Data == "br":
			b.WriteByte('\n')
			return
		case n.Data == "img":
			pictures = true
		}
		own := n != pre && (isBlock(n.Data) && n.Data != "td" && n.Data != "th")
		if own {
			newline()
		}
		for child := range n.ChildNodes() {
			write(child)
		}
		if own {
			newline()
		}
	}
	write(pre)
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRightFunc(lines[i], unicode.IsSpace)
	}
	content := strings.TrimRight(strings.Join(lines, "\n"), "\n")
	for strings.HasPrefix(content, "\n") {
		content = content[1:]
	}
	if content == "" {
		if pictures {
			pre.Data = "div"
			return next(pre)
		}
		return drop(pre)
	}
	empty(pre)
	pre.AppendChild(text(content))
	for up := range pre.Ancestors() { // Markdown has no code in these
		if isCode(up) || isHeading(up.Data) {
			up.Data = "div"
		}
	}
	return after(pre)
}

// aside reports whether n, in code, is not code but line numbers or a button.
func aside(n *html.Node) bool {
	if n.Data == "button" || n.Data == "script" || n.Data == "style" {
		return true
	}
	for class := range strings.FieldsSeq(strings.ToLower(attr(n, "class"))) {
		switch class {
		case "lineno", "linenos", "linenumber", "line-number", "line-numbers-rows", "gutter", "gl", "ln", "lnt", "lntd-num",
			"hljs-ln-numbers", "hljs-ln-n", "blob-num", "copy-button", "copybutton", "copy", "copy-code-button", "react-syntax-highlighter-line-number":
			return true
		}
	}
	return false
}
