package page

import (
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// permalink reports whether a link in a heading only points to that heading.
func permalink(n *html.Node) bool {
	if !strings.Contains(attr(n, "href"), "#") || !isHeading(n.Parent.Data) && (n.Parent.Parent == nil || !isHeading(n.Parent.Parent.Data)) {
		return false
	}
	switch strings.TrimSpace(inner(n)) {
	case "", "#", "¶", "§", "🔗", "Permalink", "Anchor", "Link":
		return true
	}
	return false
}

// resolve returns where ref leads to from base, and whether that is a place.
func resolve(ref string, base *url.URL) (string, bool) {
	ref = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, strings.TrimFunc(visible(ref), func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) }))
	if scheme, _, ok := strings.Cut(ref, ":"); ok {
		switch strings.ToLower(scheme) {
		case "javascript", "vbscript", "data", "blob", "about":
			return "", false
		}
	}
	if ref == "" {
		return "", false
	}
	if u, err := url.Parse(ref); err == nil && base != nil && u.Scheme == "" {
		ref = base.ResolveReference(u).String()
	}
	return address.Replace(ref), true
}

// address spells the characters that end or upset a link in Markdown.
var address = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "[", "%5B", "]", "%5D", "\\", "%5C", "|", "%7C", "\"", "%22", "`", "%60", "\u00a0", "%C2%A0")

// image keeps an image that can be addressed, else what is said in its place.
func image(n *html.Node, base *url.URL) *html.Node {
	if w, h := attr(n, "width"), attr(n, "height"); (w == "1" || w == "0") && (h == "1" || h == "0") {
		return drop(n)
	}
	alt := line(attr(n, "alt"))
	src, ok := resolve(attr(n, "src"), base)
	if !ok {
		src, ok = resolve(largest(attr(n, "srcset")), base)
	}
	if !ok {
		if alt == "" {
			return drop(n)
		}
		return replace(n, text(" "+alt+" "))
	}
	title := line(attr(n, "title"))
	n.Attr = []html.Attribute{{Key: "src", Val: src}, {Key: "alt", Val: alt}}
	if title != "" && title != alt {
		set(n, "title", title)
	}
	return after(n)
}

// embedded turns a player into a link to what it plays.
func embedded(n *html.Node, base *url.URL) *html.Node {
	src := attr(n, "src")
	for child := range n.ChildNodes() {
		if src == "" && child.Data == "source" {
			src = attr(child, "src")
		}
	}
	href, ok := resolve(src, base)
	if !ok {
		return drop(n)
	}
	label := line(attr(n, "title"))
	if label == "" && n.Data == "audio" {
		label = "Audio"
	} else if label == "" {
		label = "Video"
	}
	link := element("a", text(label))
	link.Attr = []html.Attribute{{Key: "href", Val: href}}
	return replace(n, element("p", link))
}

// lower puts a link that holds whole blocks into the one that speaks for it, a
// heading or else the first with text.
func lower(a *html.Node) *html.Node {
	var best *html.Node
	for d := range a.Descendants() {
		if d.Type != html.ElementNode || !isBlock(d.Data) || d.Data == "pre" || blank(d) || hasBlock(d) || inTable(d, a) {
			continue
		}
		if best == nil || isHeading(d.Data) && !isHeading(best.Data) {
			best = d
		}
	}
	if best != nil {
		link := element("a")
		link.Attr = a.Attr
		moveChildren(link, best)
		best.AppendChild(link)
	}
	a.Data, a.Attr = "div", nil
	return next(a)
}
