package page

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// conversion is made once, at first use: it keeps no state of a page.
var conversion = sync.OnceValue(func() *converter.Converter {
	c := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithHorizontalRule("---"), commonmark.WithListEndComment(false)),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			table.WithHeaderPromotion(false),
		),
	))
	write := func(s string) converter.HandleRenderFunc {
		return func(_ converter.Context, w converter.Writer, _ *html.Node) converter.RenderStatus {
			w.WriteString(s)
			return converter.RenderSuccess
		}
	}
	inline, block := converter.TagTypeInline, converter.TagTypeBlock
	for _, r := range []struct {
		tag    string
		render converter.HandleRenderFunc
	}{
		{lineBreak, write(string(lineEnd) + "\n")},
		{cellBreak, write("<br>")},
		{nextLine, write("\n")},
		{itemMark, func(_ converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
			w.WriteString(attr(n, "text"))
			return converter.RenderSuccess
		}},
		{"a", link},
		{"code", inlineCode},
		{"img", picture},
		{"sup", inHTML},
		{"sub", inHTML},
	} {
		c.Register.RendererFor(r.tag, inline, r.render, converter.PriorityEarly)
	}
	c.Register.RendererFor(paragraphBreak, block, write("\n\n"), converter.PriorityEarly)
	c.Register.RendererFor("pre", block, fenced, converter.PriorityEarly)
	c.Register.RendererFor("ul", block, list, converter.PriorityEarly)
	c.Register.RendererFor("ol", block, list, converter.PriorityEarly)
	c.Register.RendererFor("blockquote", block, quotation, converter.PriorityEarly)
	return c
})

// markdown returns the tidied n as Markdown.
func markdown(ctx context.Context, n *html.Node) (string, error) {
	b, err := conversion().ConvertNode(n, converter.WithContext(ctx))
	if err != nil {
		return "", err
	}
	return finish(string(b)), nil
}

// inLine returns what is in n as one line, and whether spaces were round it.
func inLine(ctx converter.Context, n *html.Node) (content string, before, after bool) {
	var b bytes.Buffer
	ctx.RenderChildNodes(ctx, &b, n)
	s := b.String()
	content = strings.Join(strings.Fields(strings.ReplaceAll(s, string(lineEnd), " ")), " ")
	return content, strings.TrimLeft(s, " \n") != s, strings.TrimRight(s, " \n") != s
}

func link(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	content, before, after := inLine(ctx.WithValue("is_inside_link", true), n)
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
		content := strings.TrimSpace(string(ctx.UnEscapeContent(bytes.TrimSpace(b.Bytes()))))
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
	ctx.RenderChildNodes(ctx, &b, n)
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
	return strings.Trim(b.String(), "\n") + "\n"
}

// plainAngles puts the characters of HTML back into a line, with a backslash
// where they would be taken for markup.
func plainAngles(line string) string {
	if !strings.ContainsAny(line, string([]rune{less, more, ampersand, underscore})) {
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
