package page

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/collapse"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// newConversion returns a converter for one page. Pages do not share one, for
// every look at what is registered takes its lock.
func newConversion() *converter.Converter {
	c := converter.NewConverter(converter.WithPlugins(
		basis{},
		commonmark.NewCommonmarkPlugin(commonmark.WithHorizontalRule("---"), commonmark.WithListEndComment(false)),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			table.WithHeaderPromotion(false),
		),
	))
	for _, tag := range [...]string{lineBreak, cellBreak, nextLine, itemMark, "a", "code", "img", "sup", "sub"} {
		c.Register.TagType(tag, converter.TagTypeInline, converter.PriorityEarly)
	}
	for _, tag := range [...]string{paragraphBreak, "pre", "ul", "ol", "blockquote"} {
		c.Register.TagType(tag, converter.TagTypeBlock, converter.PriorityEarly)
	}
	c.Register.Renderer(render, converter.PriorityEarly)
	return c
}

// A basis does for a tidied page what the converter's plugin of that name does
// for any, in fewer passes.
type basis struct{}

func (basis) Name() string { return "base" }

func (basis) Init(c *converter.Converter) error {
	c.Register.PreRenderer(func(_ converter.Context, n *html.Node) { joinTexts(n) }, converter.PriorityEarly)
	c.Register.PreRenderer(func(ctx converter.Context, n *html.Node) {
		collapse.Collapse(n, &collapse.DomFuncs{IsBlockNode: func(n *html.Node) bool {
			kind, _ := ctx.GetTagType(n.Data)
			return kind == converter.TagTypeBlock
		}})
	}, converter.PriorityLate)
	c.Register.TextTransformer(escaped, converter.PriorityStandard)
	c.Register.PostRenderer(func(ctx converter.Context, content []byte) []byte {
		return unescaped(ctx, blankLines(bytes.TrimSpace(content)))
	}, converter.PriorityStandard)
	return nil
}

// joinTexts makes texts beside each other in n one.
func joinTexts(n *html.Node) {
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		if child.Type != html.TextNode {
			joinTexts(child)
			continue
		}
		if beside := child.NextSibling; beside == nil || beside.Type != html.TextNode {
			continue
		}
		var b strings.Builder
		b.WriteString(child.Data)
		for beside := child.NextSibling; beside != nil && beside.Type == html.TextNode; beside = child.NextSibling {
			b.WriteString(beside.Data)
			n.RemoveChild(beside)
		}
		child.Data = b.String()
	}
}

// render writes the elements that stand for something else in Markdown here than
// the plugins have it, and by a shorter way those that only hold others.
func render(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	if n.Type != html.ElementNode {
		return converter.RenderTryNext
	}
	switch n.Data {
	case "span", "td", "th":
		children(ctx, w, n)
	case "p", "div", "li", "section", "article":
		w.WriteString("\n\n")
		children(ctx, w, n)
		w.WriteString("\n\n")
	case lineBreak:
		w.WriteString(string(lineEnd) + "\n")
	case cellBreak:
		w.WriteString("<br>")
	case nextLine:
		w.WriteString("\n")
	case paragraphBreak:
		w.WriteString("\n\n")
	case itemMark:
		w.WriteString(attr(n, "text"))
	case "a":
		return link(ctx, w, n)
	case "code":
		return inlineCode(ctx, w, n)
	case "img":
		return picture(ctx, w, n)
	case "sup", "sub":
		return inHTML(ctx, w, n)
	case "pre":
		return fenced(ctx, w, n)
	case "ul", "ol":
		return list(ctx, w, n)
	case "blockquote":
		return quotation(ctx, w, n)
	default:
		return converter.RenderTryNext
	}
	return converter.RenderSuccess
}

// children writes what is in n.
func children(ctx converter.Context, w converter.Writer, n *html.Node) {
	for child := range n.ChildNodes() {
		if child.Type == html.TextNode {
			w.WriteString(escaped(ctx, child.Data))
		} else if render(ctx, w, child) != converter.RenderSuccess {
			ctx.RenderNodes(ctx, w, child)
		}
	}
}

// How the converter is told of a character that may need a backslash.
const (
	surely  = 1 + iota // wherever it stands
	atStart            // unless a letter is before it
	inALink            // in links alone
)

// escapes has the characters that may need a backslash. Not all that the
// plugins name are here, for they put one before fewer; those of HTML, protect
// has hidden.
var escapes = [utf8.RuneSelf]byte{
	'\\': surely, '`': surely, '~': surely, '*': surely, '_': surely, '#': surely, '!': surely, '[': surely, '|': surely,
	'.': atStart, ')': atStart, '-': atStart, '+': atStart, '=': atStart,
	']': inALink,
}

// escaped returns s with a mark before each character that may need a backslash
// where it will stand.
func escaped(ctx converter.Context, s string) string {
	var b strings.Builder
	done := 0
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || escapes[c] == 0 {
			continue
		}
		sign := string(marker.MarkerEscaping) + string(rune(c))
		switch {
		case escapes[c] == atStart && i > 0 && isLetter(s[i-1]):
			continue
		case escapes[c] == inALink:
			if inside, _ := ctx.Value(insideLink).(bool); !inside {
				continue
			}
			sign = `\]`
		}
		b.WriteString(s[done:i])
		b.WriteString(sign)
		done = i + 1
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// unescaped returns content with backslashes in the places of marks that turned
// out to need one, and none in those of others.
func unescaped(ctx converter.Context, content []byte) []byte {
	if !bytes.Contains(content, marker.BytesMarkerEscaping) {
		return content
	}
	return ctx.UnEscapeContent(content)
}

// insideLink is set in the context of what is in a link.
const insideLink = "is_inside_link"

// blankLines leaves one blank line of several, and none of its spaces where a
// line before one ends in two.
func blankLines(s []byte) []byte {
	kept := make([]byte, 0, len(s))
	for {
		i := bytes.IndexByte(s, '\n') + 1
		if i == 0 {
			break
		}
		kept, s = append(kept, s[:i]...), s[i:]
		for blanks := 0; ; blanks++ {
			rest := bytes.TrimLeft(s, " ")
			if len(rest) == 0 || rest[0] != '\n' {
				break
			}
			rest = rest[1:]
			if blanks == 0 {
				kept = append(kept, s[:len(s)-len(rest)]...)
			}
			s = rest
		}
	}
	kept = append(kept, s...)
	for _, spaces := range [...]string{"  \n\n", "  \n  \n", "  \n \n"} {
		if bytes.Contains(kept, []byte(spaces)) {
			kept = bytes.ReplaceAll(kept, []byte(spaces), []byte("\n\n"))
		}
	}
	return kept
}

// markdown returns the tidied n as Markdown.
func markdown(ctx context.Context, n *html.Node) (string, error) {
	b, err := newConversion().ConvertNode(n, converter.WithContext(ctx))
	if err != nil {
		return "", err
	}
	return finish(string(b)), nil
}

// inLine returns what is in n as one line, and whether spaces were round it.
func inLine(ctx converter.Context, n *html.Node) (content string, before, after bool) {
	var b bytes.Buffer
	children(ctx, &b, n)
	s := b.String()
	content = strings.Join(strings.Fields(strings.ReplaceAll(s, string(lineEnd), " ")), " ")
	return content, strings.TrimLeft(s, " \n") != s, strings.TrimRight(s, " \n") != s
}

func link(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	content, before, after := inLine(ctx.WithValue(insideLink, true), n)
	if before {
		w.WriteString(" ")
	}
	if content != "" {
		w.WriteString("[" + content + "](" + attr(n, "href") + ")")
	}
	if after {
		w.WriteString(" ")
	}
	return converter.RenderSuccess
}

func picture(_ converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	w.WriteString("![" + brackets.Replace(attr(n, "alt")) + "](" + attr(n, "src"))
	if title := attr(n, "title"); title != "" {
		w.WriteString(` "` + quotes.Replace(title) + `"`)
	}
	w.WriteString(")")
	return converter.RenderSuccess
}

var (
	brackets = strings.NewReplacer("[", `\[`, "]", `\]`, `\`, `\\`, "|", `\|`, "<", `\<`)
	quotes   = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "|", `\|`)
)

func inHTML(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	if content, _, _ := inLine(ctx, n); content != "" {
		w.WriteString("<" + n.Data + ">" + content + "</" + n.Data + ">")
	}
	return converter.RenderSuccess
}

// inlineCode writes formulas as they are and leaves code to others.
func inlineCode(_ converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	switch fence := attr(n, "data-tex"); fence {
	case "":
		return converter.RenderTryNext
	case "$$":
		if n.Parent.Data == "td" || n.Parent.Data == "th" {
			w.WriteString(strings.Join(strings.Fields(inner(n)), " "))
			break
		}
		tex := strings.TrimSpace(strings.Trim(inner(n), "$"))
		var lines []string
		for line := range strings.Lines(tex) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		w.WriteString("\n\n$$\n" + strings.Join(lines, "\n") + "\n$$\n\n")
	default:
		w.WriteString(strings.Join(strings.Fields(inner(n)), " "))
	}
	return converter.RenderSuccess
}

func fenced(_ converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	content := inner(n)
	longest, run := 2, 0
	for i := range len(content) {
		if run++; content[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	w.WriteString("\n\n" + fence + attr(n, languageKey) + "\n")
	w.WriteString(strings.ReplaceAll(content, "\n", string(marker.BytesMarkerCodeBlockNewline)))
	w.WriteString("\n" + fence + "\n\n")
	return converter.RenderSuccess
}

// list writes items whose further lines stand under the first.
func list(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	number, err := strconv.Atoi(attr(n, "start"))
	if err != nil || number < 0 {
		number = 1
	}
	var items []string
	for child := range n.ChildNodes() {
		var b bytes.Buffer
		item(ctx, &b, child)
		content := string(bytes.TrimSpace(unescaped(ctx, bytes.TrimSpace(b.Bytes()))))
		if content == "" {
			continue
		}
		if box, ok := strings.CutPrefix(content, `\[`); ok && (strings.HasPrefix(box, " ] ") || strings.HasPrefix(box, "x] ")) {
			content = "[" + box // a task
		}
		mark := "- "
		if n.Data == "ol" {
			if value, err := strconv.Atoi(attr(child, "value")); err == nil && value >= 0 {
				number = value
			}
			mark = strconv.Itoa(number) + ". "
			number++
		}
		items = append(items, mark+indent(squeeze(content), strings.Repeat(" ", len(mark))))
	}
	if len(items) > 0 {
		w.WriteString("\n\n" + strings.Join(items, "\n") + "\n\n")
	}
	return converter.RenderSuccess
}

func quotation(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var b bytes.Buffer
	children(ctx, &b, n)
	if content := strings.TrimSpace(b.String()); content != "" {
		w.WriteString("\n\n> " + indent(squeeze(content), "> ") + "\n\n")
	}
	return converter.RenderSuccess
}

// indent puts prefix before every line of s, those of code too, but the first.
func indent(s, prefix string) string {
	newline := string(marker.BytesMarkerCodeBlockNewline)
	return strings.ReplaceAll(strings.ReplaceAll(s, "\n", "\n"+prefix), newline, newline+prefix)
}

// item writes a list below a line of text without a blank line between.
func item(ctx converter.Context, w *bytes.Buffer, li *html.Node) {
	tight := true
	for child := range li.ChildNodes() {
		tight = tight && (child.Type == html.TextNode || !isBlock(child.Data) || isList(child))
	}
	for child := range li.ChildNodes() {
		if tight && isList(child) {
			var b bytes.Buffer
			ctx.RenderNodes(ctx, &b, child)
			w.WriteString("\n")
			w.Write(bytes.TrimSpace(b.Bytes()))
			w.WriteString("\n")
			continue
		}
		ctx.RenderNodes(ctx, w, child)
	}
}

func isList(n *html.Node) bool {
	return n.Type == html.ElementNode && (n.Data == "ul" || n.Data == "ol")
}

// squeeze leaves one blank line of several.
func squeeze(s string) string {
	if !strings.Contains(s, "\n\n\n") {
		return s
	}
	var b strings.Builder
	newlines := 0
	for i := range len(s) {
		if s[i] == '\n' {
			newlines++
		} else {
			newlines = 0
		}
		if newlines <= 2 {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// finish sets line ends, and backslashes where a character would be taken for
// HTML or a quotation, and leaves no space at the end of a line.
func finish(s string) string {
	lines := strings.Split(s, "\n")
	var b strings.Builder
	b.Grow(len(s) + 1)
	for i, line := range lines {
		if strings.ContainsRune(line, lineEnd) {
			line = strings.TrimRight(strings.ReplaceAll(line, string(lineEnd), ""), " ")
			if i+1 < len(lines) && strings.Trim(lines[i+1], "> ") != "" {
				line += "\\"
			}
		}
		b.WriteString(strings.TrimRight(plainAngles(line), " \t"))
		b.WriteByte('\n')
	}
	text := strings.TrimLeft(b.String(), "\n")
	if text == "" {
		return "\n"
	}
	return text[:len(strings.TrimRight(text, "\n"))+1]
}

// plainAngles puts the characters of HTML back into a line, with a backslash
// where they would be taken for markup.
func plainAngles(line string) string {
	if strings.IndexByte(line, string(less)[0]) < 0 { // which they all begin with
		return line
	}
	var b strings.Builder
	for i, r := range line {
		switch r {
		case less:
			if rest := line[i+len(string(less)):]; rest != "" && (isLetter(rest[0]) || strings.IndexByte("/!?", rest[0]) >= 0) {
				b.WriteByte('\\')
			}
			b.WriteByte('<')
		case underscore:
			b.WriteByte('_')
		case more:
			if strings.Trim(line[:i], "> -0123456789.") == "" {
				b.WriteByte('\\')
			}
			b.WriteByte('>')
		case ampersand:
			rest := line[i+len(string(ampersand)):]
			if end := strings.IndexByte(rest[:min(len(rest), 32)], ';'); end > 0 && strings.IndexFunc(rest[:end], func(r rune) bool {
				return r != '#' && (r >= 0x80 || !isLetter(byte(r)) && (r < '0' || r > '9'))
			}) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte('&')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
