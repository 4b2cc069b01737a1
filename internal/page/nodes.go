package page

import (
	"strings"

	"golang.org/x/net/html"
)

func text(s string) *html.Node { return &html.Node{Type: html.TextNode, Data: s} }

func element(name string, children ...*html.Node) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: name}
	for _, c := range children {
		n.AppendChild(c)
	}
	return n
}

// unwrap puts the children of n in its place and returns the node that follows
// n's start.
func unwrap(n *html.Node) *html.Node {
	first := n.FirstChild
	if first == nil {
		return drop(n)
	}
	for n.FirstChild != nil {
		child := n.FirstChild
		n.RemoveChild(child)
		n.Parent.InsertBefore(child, n)
	}
	n.Parent.RemoveChild(n)
	return first
}

func empty(n *html.Node) {
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
}

func moveChildren(to, from *html.Node) {
	for from.FirstChild != nil {
		child := from.FirstChild
		from.RemoveChild(child)
		to.AppendChild(child)
	}
}

func wrapChildren(n *html.Node, name string) {
	inside := element(name)
	moveChildren(inside, n)
	n.AppendChild(inside)
}

func replace(n, by *html.Node) *html.Node {
	then := after(n)
	n.Parent.InsertBefore(by, n)
	n.Parent.RemoveChild(n)
	return then
}

func secondElement(n *html.Node) *html.Node {
	count := 0
	for child := range n.ChildNodes() {
		if child.Type == html.ElementNode {
			if count++; count == 2 {
				return child
			}
		}
	}
	return nil
}

func isBlock(name string) bool {
	switch name {
	case "address", "article", "aside", "blockquote", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "footer", "form",
		"h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tbody", "td",
		"tfoot", "th", "thead", "tr", "ul", "caption", "fieldset", "legend", paragraphBreak:
		return true
	}
	return false
}

func isHeading(name string) bool {
	return len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6'
}

func isCode(n *html.Node) bool {
	switch n.Data {
	case "code", "kbd", "samp", "tt", "pre":
		return true
	}
	return false
}

func hasBlock(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && isBlock(d.Data) {
			return true
		}
	}
	return false
}

// blank reports whether there is nothing to read or look at in n.
func blank(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.Type == html.TextNode && strings.TrimSpace(d.Data) != "" || d.Type == html.ElementNode && d.Data == "img" {
			return false
		}
	}
	return true
}

// inTable reports whether n is part of a table in top.
func inTable(n, top *html.Node) bool {
	for ; n != top; n = n.Parent {
		if n.Data == "table" {
			return true
		}
	}
	return false
}

// onlyChild returns the one element in n that has no text beside it.
func onlyChild(n *html.Node) *html.Node {
	var only *html.Node
	for child := range n.ChildNodes() {
		switch {
		case child.Type == html.TextNode && strings.TrimSpace(child.Data) == "":
		case child.Type == html.ElementNode && only == nil:
			only = child
		default:
			return nil
		}
	}
	return only
}

func trimLeft(n *html.Node) {
	if n.FirstChild != nil && n.FirstChild.Type == html.TextNode {
		n.FirstChild.Data = strings.TrimLeft(n.FirstChild.Data, " \t\r\n\f")
	}
}
