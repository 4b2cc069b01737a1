package page

import (
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// sweep prepares a page for the search for its main content: it drops what a
// reader does not see and puts what the search would lose where it is kept,
// formulas as text, boxes of task lists as text, the language of code and the
// source of late images as attributes.
func sweep(doc *html.Node) {
	for n := doc.FirstChild; n != nil; {
		switch n.Type {
		case html.CommentNode:
			n = drop(n)
			continue
		case html.TextNode:
			n.Data = visible(n.Data)
		case html.ElementNode:
			if formula(n) {
				n = after(n)
				continue
			}
			if n.Data == "template" || hidden(n) {
				n = drop(n)
				continue
			}
			switch n.Data {
			case "script", "style":
				n = after(n)
				continue
			case "pre":
				setLanguage(n)
			case "table":
				if then := numbered(n); then != nil {
					n = then
					continue
				}
			case "footer": // who is quoted; the search takes it for the page's
				if n.Parent.Data == "blockquote" {
					n.Data, n.DataAtom = "p", 0
				}
			case "input":
				checkbox(n)
			case "img":
				wakeUp(n)
			}
		}
		n = next(n)
	}
}

// next returns the node that follows n in the document, after the one that
// follows all that is in n; drop removes n and returns that.
func next(n *html.Node) *html.Node {
	if n.FirstChild != nil {
		return n.FirstChild
	}
	return after(n)
}

func after(n *html.Node) *html.Node {
	for n != nil && n.NextSibling == nil {
		n = n.Parent
	}
	if n == nil {
		return nil
	}
	return n.NextSibling
}

func drop(n *html.Node) *html.Node {
	then := after(n)
	n.Parent.RemoveChild(n)
	return then
}

// hidden reports whether an element is marked as not to be seen. The page as a
// whole never is: those that hide themselves show themselves by a script.
func hidden(n *html.Node) bool {
	if n.Data == "html" || n.Data == "body" {
		remove(n, "hidden", "aria-hidden", "style")
		return false
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") && !strings.Contains(attr(n, "class"), "fallback-image") {
				return true
			}
		case "style":
			for declaration := range strings.SplitSeq(a.Val, ";") {
				property, value, _ := strings.Cut(declaration, ":")
				property, value = strings.ToLower(strings.TrimSpace(property)), strings.ToLower(strings.TrimSpace(value))
				if property == "display" && strings.HasPrefix(value, "none") ||
					property == "visibility" && (strings.HasPrefix(value, "hidden") || strings.HasPrefix(value, "collapse")) {
					return true
				}
			}
		}
	}
	return false
}

// formula puts the TeX of a formula, where the page has it, in the place of the
// formula, and reports whether n was one.
func formula(n *html.Node) bool {
	var tex string
	block := false
	switch {
	case n.Data == "math":
		tex = annotation(n)
		if tex == "" {
			return false
		}
		block = attr(n, "display") == "block"
	case n.Data == "script":
		kind, mode, _ := strings.Cut(attr(n, "type"), ";")
		if strings.TrimSpace(kind) != "math/tex" {
			return false
		}
		tex, block = inner(n), strings.Contains(mode, "display")
		for before := n.PrevSibling; before != nil; {
			rendering := before
			before = before.PrevSibling
			if rendering.Type == html.ElementNode && strings.HasPrefix(attr(rendering, "class"), "MathJax") {
				rendering.Parent.RemoveChild(rendering)
			} else if rendering.Type != html.TextNode || strings.TrimSpace(rendering.Data) != "" {
				break
			}
		}
	case hasClass(n, "katex"), hasClass(n, "mwe-math-element"), n.Data == "mjx-container":
		for child := range n.Descendants() {
			if child.Type == html.ElementNode && child.Data == "math" {
				tex = annotation(child)
				block = attr(child, "display") == "block" || attr(n, "display") == "true"
				break
			}
		}
		if n.Parent != nil && hasClass(n.Parent, "katex-display") {
			block = true
		}
	default:
		return false
	}
	tex = strings.TrimSpace(visible(tex))
	if display, ok := strings.CutPrefix(tex, `{\displaystyle`); ok && strings.HasSuffix(display, "}") {
		tex = strings.TrimSpace(strings.TrimSuffix(display, "}"))
	}
	if tex == "" {
		return false
	}
	fence := "$"
	if block {
		fence = "$$"
	}
	empty(n)
	n.Data, n.DataAtom, n.Namespace = "code", 0, ""
	n.Attr = []html.Attribute{{Key: "data-tex", Val: fence}}
	n.AppendChild(&html.Node{Type: html.TextNode, Data: fence + tex + fence})
	return true
}

// annotation returns the TeX that a MathML formula carries.
func annotation(math *html.Node) string {
	for n := range math.Descendants() {
		if n.Type == html.ElementNode && n.Data == "annotation" && strings.Contains(strings.ToLower(attr(n, "encoding")), "tex") {
			return inner(n)
		}
	}
	return attr(math, "alttext")
}

// setLanguage notes the language of a block of code in its own element, by the
// usual marks on it, on the code in it or on what is round it.
func setLanguage(pre *html.Node) {
	if attr(pre, languageKey) != "" {
		return
	}
	name := languageOf(pre)
	for child := pre.FirstChild; child != nil && name == ""; child = child.NextSibling {
		if child.Type == html.ElementNode && child.Data == "code" {
			name = languageOf(child)
		}
	}
	for up, level := pre.Parent, 0; up != nil && name == "" && level < 6; up, level = up.Parent, level+1 {
		name = languageOf(up)
	}
	if name != "" && name != "text" && name != "none" && name != "plaintext" && name != "default" {
		set(pre, languageKey, name)
	}
}

const languageKey = "data-language"

func languageOf(n *html.Node) string {
	name := ""
	for _, a := range n.Attr {
		switch a.Key {
		case "data-lang", "data-language", "lang-name", "data-code-lang":
			name = a.Val
		case "class":
			classes := strings.Fields(a.Val)
			for i, class := range classes {
				for _, prefix := range [...]string{"language-", "lang-", "highlight-source-", "highlight-text-", "highlight-", "brush:"} {
					if after, ok := strings.CutPrefix(class, prefix); ok && name == "" {
						if after == "" && prefix == "brush:" && i+1 < len(classes) {
							after = strings.TrimRight(classes[i+1], ";")
						}
						name = strings.TrimSuffix(after, ";")
					}
				}
				if (class == "sourceCode" || class == "hljs") && i+1 < len(classes) && name == "" {
					name = classes[i+1]
				}
			}
		}
		if name != "" {
			break
		}
	}
	name = strings.ToLower(name)
	switch name {
	case "notranslate", "wrapper", "container", "source", "block", "code", "copy":
		return ""
	case "html-basic":
		return "html"
	case "python3", "ipython3", "ipython":
		return "python"
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("+#-_.", r) {
			return ""
		}
	}
	if len(name) > 20 {
		return ""
	}
	return name
}

// numbered puts the code in the place of a table that only sets numbers beside
// its lines, and returns it.
func numbered(table *html.Node) *html.Node {
	var blocks []*html.Node
	rows := 0
	for d := range table.Descendants() {
		if d.Type != html.ElementNode {
			continue
		}
		switch d.Data {
		case "pre":
			blocks = append(blocks, d)
		case "tr":
			rows++
		case "table":
			return nil
		}
	}
	if rows != 1 || len(blocks) == 0 || len(blocks) > 2 {
		return nil
	}
	first := strings.TrimSpace(inner(table))
	code := blocks[len(blocks)-1]
	numbers := strings.TrimSuffix(first, strings.TrimSpace(inner(code)))
	if numbers == "" || strings.Trim(numbers, "0123456789 \t\r\n") != "" {
		return nil
	}
	setLanguage(code)
	code.Parent.RemoveChild(code)
	table.Parent.InsertBefore(code, table)
	table.Parent.RemoveChild(table)
	return code
}

// checkbox turns the box of a task into text.
func checkbox(n *html.Node) {
	if !strings.EqualFold(attr(n, "type"), "checkbox") {
		return
	}
	inItem := n.Parent != nil && (n.Parent.Data == "li" || n.Parent.Parent != nil && n.Parent.Parent.Data == "li")
	if !inItem {
		return
	}
	box := "[ ] "
	if has(n, "checked") {
		box = "[x] "
	}
	n.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: box}, n)
}

// wakeUp gives an image that a script would load later its source.
func wakeUp(img *html.Node) {
	src := strings.TrimSpace(attr(img, "src"))
	for _, key := range [...]string{"data-src", "data-lazy-src", "data-original", "data-lazy", "data-url"} {
		if late := strings.TrimSpace(attr(img, key)); late != "" && !strings.HasPrefix(late, "data:") && !strings.ContainsAny(late, " {") {
			set(img, "src", late)
			return
		}
	}
	if src != "" && !strings.HasPrefix(src, "data:") {
		return
	}
	for _, key := range [...]string{"data-srcset", "data-lazy-srcset", "srcset"} {
		if late := largest(attr(img, key)); late != "" {
			set(img, "src", late)
			return
		}
	}
}

// largest returns the widest candidate of a srcset that is at most 2000 pixels
// wide, else the first.
func largest(srcset string) string {
	best, width := "", 0
	for rest := srcset; ; {
		rest = strings.TrimLeft(rest, ", \t\r\n\f")
		if rest == "" {
			return best
		}
		end := strings.IndexAny(rest, " \t\r\n\f")
		if end < 0 {
			end = len(rest)
		}
		source, descriptor := strings.TrimRight(rest[:end], ","), ""
		if rest = rest[end:]; len(source) == end {
			descriptor, rest, _ = strings.Cut(rest, ",")
		}
		pixels, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(descriptor), "w"))
		if !strings.HasPrefix(source, "data:") && (best == "" || pixels > width && pixels <= 2000) {
			best, width = source, pixels
		}
	}
}

// baseOf returns the URL that links of doc are relative to.
func baseOf(doc *html.Node, page *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "base" || !has(n, "href") {
			continue
		}
		u, err := url.Parse(strings.TrimSpace(attr(n, "href")))
		if err != nil {
			break
		}
		if page != nil {
			u = page.ResolveReference(u)
		}
		if u.Scheme == "http" || u.Scheme == "https" {
			return u
		}
		break
	}
	return page
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, key string) bool {
	for _, a := range n.Attr {
		if a.Key == key {
			return true
		}
	}
	return false
}

func set(n *html.Node, key, value string) {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			n.Attr[i].Val = value
			return
		}
	}
	n.Attr = append(n.Attr, html.Attribute{Key: key, Val: value})
}

func remove(n *html.Node, keys ...string) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		gone := false
		for _, key := range keys {
			gone = gone || a.Key == key
		}
		if !gone {
			kept = append(kept, a)
		}
	}
	n.Attr = kept
}

func hasClass(n *html.Node, class string) bool {
	for c := range strings.FieldsSeq(attr(n, "class")) {
		if c == class {
			return true
		}
	}
	return false
}

// inner returns the text in n.
func inner(n *html.Node) string {
	var b strings.Builder
	for n := range n.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}
