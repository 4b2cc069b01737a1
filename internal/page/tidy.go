package page

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

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

// inTable reports whether n is part of a table in top.
func inTable(n, top *html.Node) bool {
	for ; n != top; n = n.Parent {
		if n.Data == "table" {
			return true
		}
	}
	return false
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

// Characters that stand, in text, for those that HTML in Markdown is made of,
// until it is known whether they need a backslash.
const (
	less, more, ampersand = '\uE0F0', '\uE0F1', '\uE0F2'
	lineEnd               = '\uE0F3' // a line end that the author set
	underscore            = '\uE0F4'
)

// protect hides from the converter the characters of HTML, which it would spell
// as entities, and underscores within words, which mean nothing there.
func protect(s string) string {
	if strings.ContainsAny(s, "<>&") {
		s = angles.Replace(s)
	}
	if strings.IndexByte(s, '_') < 0 {
		return s
	}
	var b strings.Builder
	before := ' '
	for i, r := range s {
		if r == '_' && isWord(before) {
			if after, _ := utf8.DecodeRuneInString(s[i+1:]); isWord(after) {
				r = underscore
			}
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

var angles = strings.NewReplacer("<", string(less), ">", string(more), "&", string(ampersand))
