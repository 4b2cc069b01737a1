package page

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

const (
	maxSpan    = 100 // columns or rows that one cell may cover
	manyEmpty  = 4   // places that a grid may have for each cell of a table,
	maxArea    = 1e4 // and beyond
	longRepeat = 100 // bytes of a cell that is repeated in the rows it covers
)

// A grid is a table with each cell in its place.
type grid struct {
	caption *html.Node
	rows    [][]*html.Node // nil where a cell is empty
	header  bool           // the first row names the columns
	columns int
}

// tabulate turns a table into a rectangle of cells without blocks in them or, where
// it only lays out a page, into blocks.
func tabulate(t *html.Node) *html.Node {
	g := read(t)
	if g == nil {
		return layOut(t)
	}
	for up := range t.Ancestors() { // a table cannot stand in a line
		switch up.Data {
		case "a", "strong", "b", "em", "i", "del", "s", "strike":
			up.Data, up.Attr = "span", nil
		}
	}
	body := element("tbody")
	result := element("table", body)
	for i, row := range g.rows {
		tr := element("tr")
		for column := range g.columns {
			name := "td"
			if i == 0 && g.header {
				name = "th"
			}
			cell := element(name)
			if column < len(row) && row[column] != nil {
				new(flattener).children(row[column], cell)
			}
			tr.AppendChild(cell)
		}
		if i == 0 && g.header {
			result.InsertBefore(element("thead", tr), body)
		} else {
			body.AppendChild(tr)
		}
	}
	if g.caption != nil && !blank(g.caption) {
		g.caption.Parent.RemoveChild(g.caption)
		g.caption.Data = "p"
		t.Parent.InsertBefore(g.caption, t)
	}
	return replace(t, result)
}

// read returns the grid of a table, nil where it is none of data or mostly holes.
func read(t *html.Node) *grid {
	g := &grid{}
	role := attr(t, "role")
	headed, nested, blocks := false, false, false
	cells, taken, area := 0, 0, 0
	var below []int           // rows that the cell above a column still covers
	var repeated []*html.Node // that cell, where it is short
	firstIsHead := false
	each(t, func(row *html.Node) {
		if area > manyEmpty*cells+maxArea {
			return
		}
		var line []*html.Node
		column, heads, count := 0, 0, 0
		place := func(cell *html.Node) {
			for column < len(below) && below[column] > 0 {
				below[column]--
				line = append(line, repeated[column])
				column++
			}
			if cell == nil {
				return
			}
			wide, high := span(cell, "colspan"), span(cell, "rowspan")
			for i := range wide {
				for column+i >= len(below) {
					below, repeated = append(below, 0), append(repeated, nil)
				}
				below[column+i], repeated[column+i] = high-1, nil
				if i > 0 {
					line = append(line, nil)
					continue
				}
				line = append(line, cell)
				if high > 1 && len(inner(cell)) <= longRepeat {
					repeated[column] = cell
				}
			}
			column += wide
		}
		for cell := range row.ChildNodes() {
			if cell.Type != html.ElementNode || cell.Data != "td" && cell.Data != "th" {
				continue
			}
			cells++
			count++
			if cell.Data == "th" {
				heads++
			}
			for d := range cell.Descendants() {
				if d.Type != html.ElementNode {
					continue
				}
				nested = nested || d.Data == "table"
				blocks = blocks || isHeading(d.Data) || d.Data == "pre" || d.Data == "hr" || d.Data == "blockquote"
			}
			place(cell)
		}
		place(nil)
		area += len(line)
		if count == 0 {
			return
		}
		empty := true
		for _, cell := range line {
			empty = empty && (cell == nil || blank(cell))
		}
		if empty {
			return
		}
		if len(g.rows) == 0 {
			firstIsHead = row.Parent.Data == "thead" || heads == count
		}
		headed = headed || heads > 0 || row.Parent.Data == "thead"
		g.rows = append(g.rows, line)
		g.columns = max(g.columns, len(line))
		taken = max(taken, count)
	}, func(caption *html.Node) { g.caption = caption })
	// A table without a heading cell has its first row as the heading; in one
	// with headings at the side, the columns have no names.
	g.header = firstIsHead || !headed
	data := headed || g.caption != nil
	if len(g.rows) == 0 || taken < 2 || max(area, g.columns*len(g.rows)) > manyEmpty*cells+maxArea || role == "presentation" || role == "none" ||
		!data && (nested || blocks || len(g.rows) < 2) {
		return nil
	}
	return g
}

// each calls row for the rows of t itself and caption for its caption.
func each(t *html.Node, row, caption func(*html.Node)) {
	for part := range t.ChildNodes() {
		switch part.Data {
		case "caption":
			caption(part)
		case "tr":
			row(part)
		case "thead", "tbody", "tfoot":
			for tr := range part.ChildNodes() {
				if tr.Data == "tr" {
					row(tr)
				}
			}
		}
	}
}

func span(cell *html.Node, key string) int {
	value := strings.TrimSpace(attr(cell, key))
	if value == "" {
		return 1
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return 1
	}
	return min(max(n, 1), maxSpan)
}

// layOut makes the cells of a table blocks.
func layOut(t *html.Node) *html.Node {
	t.Data, t.Attr = "div", nil
	for part := range t.ChildNodes() {
		switch part.Data {
		case "caption":
			part.Data = "p"
		case "thead", "tbody", "tfoot", "tr":
			part.Data = "div"
			for inside := range part.ChildNodes() {
				switch inside.Data {
				case "td", "th":
					inside.Data = "div"
				case "tr":
					inside.Data = "div"
					for cell := range inside.ChildNodes() {
						if cell.Data == "td" || cell.Data == "th" {
							cell.Data = "div"
						}
					}
				}
			}
		}
	}
	return next(t)
}

// A flattener copies what is in a cell of a table so that it stands in one line,
// with a break where a block began or ended.
type flattener struct {
	written bool // there is something before
	due     bool // a break comes before what follows
	trim    bool // spaces that follow are left out
}

func (f *flattener) children(from, to *html.Node) {
	number := span(from, "start")
	for child := range from.ChildNodes() {
		switch {
		case child.Type == html.TextNode:
			f.text(child.Data, to)
		case child.Type != html.ElementNode:
		case child.Data == "br", child.Data == paragraphBreak, child.Data == "hr":
			f.due = true
		case child.Data == "pre":
			f.due = true
			for line := range strings.SplitSeq(inner(child), "\n") {
				if line != "" {
					f.flush(to)
					to.AppendChild(element("code", text(pipes(line))))
				}
				f.due = true
			}
		case child.Data == "table":
			f.nested(child, to)
		case child.Data == "li":
			f.due = true
			mark := element(itemMark)
			set(mark, "text", "• ")
			if from.Data == "ol" {
				set(mark, "text", strconv.Itoa(number)+". ")
				number++
			}
			f.flush(to)
			to.AppendChild(mark)
			f.trim = true
			f.children(child, to)
			f.due = true
		case isHeading(child.Data):
			f.due = true
			f.flush(to)
			strong := element("strong")
			f.children(child, strong)
			to.AppendChild(strong)
			f.due = true
		case isBlock(child.Data):
			f.due = true
			f.children(child, to)
			f.due = true
		case child.Data == "img":
			f.flush(to)
			picture := element("img")
			picture.Attr = child.Attr
			to.AppendChild(picture)
		case isCode(child):
			f.flush(to)
			copied := element(child.Data, text(pipes(strings.ReplaceAll(inner(child), "\n", " "))))
			copied.Attr = child.Attr
			to.AppendChild(copied)
		default:
			if child.Data == "a" {
				f.flush(to)
			}
			copied := element(child.Data)
			copied.Attr = child.Attr
			to.AppendChild(copied)
			f.children(child, copied)
		}
	}
}

// nested writes a table in a cell a line a row, its cells with dashes between.
func (f *flattener) nested(t, to *html.Node) {
	each(t, func(row *html.Node) {
		f.due = true
		first := true
		for cell := range row.ChildNodes() {
			if cell.Data != "td" && cell.Data != "th" || blank(cell) {
				continue
			}
			if !first {
				to.AppendChild(text(" – "))
			}
			first = false
			f.children(cell, to)
		}
	}, func(caption *html.Node) {
		f.due = true
		f.children(caption, to)
	})
	f.due = true
}

func (f *flattener) text(s string, to *html.Node) {
	if strings.TrimSpace(s) == "" {
		if f.written && !f.due && !f.trim {
			to.AppendChild(text(" "))
		}
		return
	}
	if f.trim || f.due || !f.written {
		s = strings.TrimLeft(s, " \t\r\n\f")
	}
	f.flush(to)
	to.AppendChild(text(s))
}

// flush writes the break that is due and notes that something follows.
func (f *flattener) flush(to *html.Node) {
	if f.due && f.written && !f.trim {
		// Not as the first thing in emphasis, which then would be none.
		before := (*html.Node)(nil)
		for to.FirstChild == nil && to.Parent != nil && to.Data != "td" && to.Data != "th" {
			to, before = to.Parent, to
		}
		last := to.LastChild
		if before != nil {
			last = before.PrevSibling
		}
		if last != nil && last.Type == html.TextNode {
			last.Data = strings.TrimRight(last.Data, " \t\r\n\f")
		}
		to.InsertBefore(element(cellBreak), before)
	}
	f.due, f.trim, f.written = false, false, true
}

// pipes escapes, in code in a cell, what would end the cell.
func pipes(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
