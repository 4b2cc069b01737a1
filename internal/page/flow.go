package page

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// raise keeps the height of digits, and of others by HTML, but not of ordinals
// and of notes, which are links.
func raise(n *html.Node) {
	content := strings.TrimSpace(inner(n))
	signs, ok := superscripts, true
	if n.Data == "sub" {
		signs = subscripts
	}
	for up := n.Parent; up != nil && !isBlock(up.Data); up = up.Parent {
		ok = ok && up.Data != "a"
	}
	for d := range n.Descendants() {
		ok = ok && (d.Type == html.TextNode || d.Data == "span" || d.Data == "em" || d.Data == "i")
	}
	n.Attr = nil
	raised := strings.Map(func(r rune) rune {
		if i := strings.IndexRune(plainSigns, r); i >= 0 {
			return []rune(signs)[len([]rune(plainSigns[:i]))]
		}
		return -1
	}, content)
	ordinal := len(content) <= 3 && n.Data == "sup" && n.PrevSibling != nil && n.PrevSibling.Type == html.TextNode &&
		strings.IndexFunc(content, func(r rune) bool { return !unicode.IsLower(r) }) < 0 && endsInDigit(n.PrevSibling.Data)
	switch {
	case content == "" || !ok || ordinal:
		n.Data = "span"
	case len([]rune(raised)) == len([]rune(content)):
		empty(n)
		n.AppendChild(text(raised))
		n.Data = "span"
	}
}

const (
	plainSigns   = "0123456789+-−=()"
	superscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾"
	subscripts   = "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎"
)

func endsInDigit(s string) bool {
	return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9'
}

// breaks keeps a line end that stands between words, and makes several of them
// the end of a paragraph.
func breaks(n *html.Node) *html.Node {
	count := 1
	last := n
	for s := n.NextSibling; s != nil; s = s.NextSibling {
		if s.Type == html.ElementNode && s.Data == "br" {
			count++
			last = s
		} else if s.Type != html.TextNode || strings.TrimSpace(s.Data) != "" {
			break
		}
	}
	for n.NextSibling != nil && n != last {
		gone := n.NextSibling
		n.Parent.RemoveChild(gone)
		if gone == last {
			break
		}
	}
	inline := false
	for up := range n.Ancestors() {
		if up.Data == "a" || isHeading(up.Data) {
			inline = true
		}
		if isBlock(up.Data) {
			break
		}
	}
	switch {
	case inline:
		return replace(n, text(" "))
	case !beside(n, false) || !beside(n, true):
		return drop(n)
	case count > 1:
		return replace(n, element(paragraphBreak))
	}
	return after(n)
}

// beside reports whether there is something to read in the line before or after
// n, within the same block.
func beside(n *html.Node, after bool) bool {
	for {
		sibling := n.PrevSibling
		if after {
			sibling = n.NextSibling
		}
		switch {
		case sibling == nil:
			if n = n.Parent; n == nil || n.Type != html.ElementNode || isBlock(n.Data) {
				return false
			}
			continue
		case sibling.Type == html.ElementNode && (isBlock(sibling.Data) || hasBlock(sibling)):
			return false
		case sibling.Type == html.TextNode && strings.TrimSpace(sibling.Data) != "", sibling.Type == html.ElementNode && (sibling.Data == "img" || !blank(sibling)):
			return true
		}
		n = sibling
	}
}

// definitions turns a list of terms into paragraphs, "**term**" and on the next
// line ": what it means"; a meaning of several blocks follows as they are.
func definitions(dl *html.Node) *html.Node {
	dl.Data = "div"
	var items []*html.Node
	for d := dl.FirstChild; d != nil; {
		if d.Type == html.ElementNode && (d.Data == "dt" || d.Data == "dd") {
			items = append(items, d)
		} else if d.Type == html.ElementNode && d.Data == "div" {
			d = unwrap(d)
			if d == nil || d.Parent != dl {
				break
			}
			continue
		}
		d = d.NextSibling
	}
	var paragraph *html.Node
	for _, d := range items {
		only := d
		for inside := onlyChild(only); inside != nil && (inside.Data == "p" || inside.Data == "div"); inside = onlyChild(only) {
			only = inside
		}
		switch {
		case blank(d):
			d.Parent.RemoveChild(d)
		case hasBlock(only):
			d.Data, paragraph = "div", nil
		case d.Data == "dt":
			d.Data, paragraph = "p", d
			term := element("strong")
			moveChildren(term, only)
			empty(d)
			d.AppendChild(term)
		case paragraph == nil:
			d.Data = "p"
		default:
			paragraph.AppendChild(element(nextLine))
			paragraph.AppendChild(text(": "))
			trimLeft(only)
			moveChildren(paragraph, only)
			d.Parent.RemoveChild(d)
		}
	}
	return next(dl)
}
