package page

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// maxIndents is how deep lists and quotations may stand in each other; deeper
// ones keep their text alone.
const maxIndents = 12

// Elements of our own that the conversion writes as they are meant.
const (
	lineBreak      = "br"              // a line end that the author set
	paragraphBreak = "paragraph-break" // several of them
	cellBreak      = "cell-break"      // one in a cell of a table
	itemMark       = "item-mark"       // what an item of a list in a cell begins with
	nextLine       = "next-line"       // a line end for the eye alone
)

// tidy brings the main content of a page into the few shapes that the
// conversion to Markdown knows, with absolute links. It takes root out of the
// tree that it is in.
func tidy(root *html.Node, base *url.URL, title string) {
	if root.Parent != nil {
		root.Parent.RemoveChild(root)
	}
	dropTitle(root, title)
	for n := root.FirstChild; n != nil; {
		n = shape(n, base)
	}
	for n := root.FirstChild; n != nil; {
		n = structure(n)
	}
	for n := root.FirstChild; n != nil; n = next(n) {
		if n.Type == html.TextNode && attr(n.Parent, "data-tex") == "" && !isCode(n.Parent) {
			n.Data = protect(n.Data)
		}
	}
}

// dropTitle removes a heading at the start that says no more than the title,
// which stands by itself.
func dropTitle(root *html.Node, title string) {
	for n := range root.Descendants() {
		switch {
		case n.Type == html.ElementNode && isHeading(n.Data):
			heading := line(inner(n))
			rest, ok := strings.CutPrefix(title, heading)
			if ok && heading != "" && (rest == "" || strings.HasPrefix(rest, " ") && strings.ContainsAny(rest, "|-–—·»:/")) {
				n.Parent.RemoveChild(n)
			}
			return
		case n.Type == html.TextNode && strings.TrimSpace(n.Data) != "":
			return
		}
	}
}

// advertises reports whether n only names what a blocked or late advertisement
// would be.
func advertises(n *html.Node) bool {
	child := n.FirstChild
	if child == nil || child.NextSibling != nil || child.Type != html.TextNode {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(child.Data)) {
	case "advertisement", "advertising", "anzeige", "werbung", "publicité", "publicidad", "anuncio", "реклама", "广告", "広告":
		return true
	}
	return false
}

// listsHeadings reports whether n is the table of contents of its own page.
func listsHeadings(n *html.Node) bool {
	if attr(n, "id") != "toc" && !hasClass(n, "toc") {
		return false
	}
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && (d.Data == "p" || d.Data == "pre") {
			return false
		}
	}
	return true
}

// note returns the mark of a link to a note, without the brackets round it.
func note(a *html.Node) string {
	mark := strings.TrimSpace(inner(a))
	if len(mark) < 3 || len(mark) > 20 || mark[0] != '[' || strings.IndexByte(mark, ']') != len(mark)-1 {
		return ""
	}
	return strings.TrimSpace(mark[1 : len(mark)-1])
}

// shape sets right one element by itself and returns the node to go on with.
func shape(n *html.Node, base *url.URL) *html.Node {
	if n.Type == html.CommentNode {
		return drop(n)
	}
	if n.Type != html.ElementNode {
		return next(n)
	}
	switch n.Data {
	case "script", "style", "noscript", "svg", "canvas", "map", "button", "input", "select", "textarea", "object", "embed", "link", "meta", "wbr", "rp", "colgroup", "col":
		return drop(n)
	case "iframe", "video", "audio":
		return embedded(n, base)
	case "img":
		return image(n, base)
	case "a":
		href, ok := resolve(attr(n, "href"), base)
		if hasClass(n, "headerlink") || hasClass(n, "hash-link") || hasClass(n, "header-anchor") || hasClass(n, "anchorjs-link") || permalink(n) {
			return drop(n)
		}
		if !ok {
			return unwrap(n)
		}
		n.Attr = []html.Attribute{{Key: "href", Val: href}}
		if mark := note(n); mark != "" {
			empty(n)
			n.AppendChild(text(mark))
		}
	case "div", "p", "nav":
		if listsHeadings(n) || advertises(n) {
			return drop(n)
		}
	case "span":
		if hasClass(n, "mw-editsection") {
			return drop(n)
		}
	case "var", "cite", "dfn":
		n.Data = "em"
	case "center", "font", "u", "ins", "big", "small", "mark", "abbr", "time", "label":
		n.Data = "span"
		if n.Attr = nil; n.FirstChild == nil {
			return drop(n)
		}
	case "q":
		n.InsertBefore(text("“"), n.FirstChild)
		n.AppendChild(text("”"))
		n.Data = "span"
	case "rt":
		n.InsertBefore(text("("), n.FirstChild)
		n.AppendChild(text(")"))
	case "summary":
		n.Data = "p"
		wrapChildren(n, "strong")
	case "msup", "msub", "mfrac":
		if second := secondElement(n); second != nil {
			sign := map[string]string{"msup": "^", "msub": "_", "mfrac": "/"}[n.Data]
			n.InsertBefore(text(sign), second)
		}
	case "sup", "sub":
		raise(n)
	case "pre":
		return code(n)
	}
	return next(n)
}

// structure sets right what depends on the shape of what is inside, so runs
// after shape.
func structure(n *html.Node) *html.Node {
	if n.Type != html.ElementNode {
		return next(n)
	}
	switch n.Data {
	case "table":
		return tabulate(n)
	case "dl":
		return definitions(n)
	case "a":
		if blank(n) {
			return drop(n)
		}
		if hasBlock(n) {
			return lower(n)
		}
	case "strong", "b", "em", "i", "del", "s", "strike":
		if hasBlock(n) {
			n.Data = "span"
			n.Attr = nil
		}
	case "p":
		if blank(n) {
			return drop(n)
		}
	case "br":
		return breaks(n)
	case "ul", "ol", "blockquote":
		level := 0
		for up := range n.Ancestors() {
			if up.Data == "ul" || up.Data == "ol" || up.Data == "blockquote" {
				level++
			}
		}
		if level >= maxIndents {
			n.Data = "div"
		}
	case "li":
		if p := n.Parent.Data; p != "ul" && p != "ol" {
			n.Data = "div"
		}
	}
	return next(n)
}
