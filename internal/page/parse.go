package page

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const (
	maxTags   = 600_000   // start and end tags of one page
	maxClones = 1_000_000 // formatting elements that a parser might have to repeat
	maxNested = 100       // levels of elements in a page that had to be flattened
)

// parse returns the tree of a page. By the rule that formatting left open is
// opened anew in every block, the tree of a small page can be very large. Where
// that may be so, formatting loses its attributes, since a parser keeps no more
// than three equal ones open; where that is not enough, or where the tree would
// be too deep, the page is read without formatting and its deepest levels.
func parse(page []byte) (*html.Node, error) {
	tags := bytes.Count(page, []byte{'<'})
	if tags > maxTags {
		return nil, fault.New(fault.MarkdownExtraction, `this page has more than %d tags, too many to look for its main content; format "text" gives the raw page`, maxTags)
	}
	bounded := func(page []byte) bool { return tags*min(3*formattings(page), 512) <= maxClones }
	source := page
	if !bounded(source) {
		source = withoutAttributes(source)
	}
	if bounded(source) {
		if doc, err := html.Parse(bytes.NewReader(source)); err == nil {
			return doc, nil
		}
	}
	doc, err := html.Parse(bytes.NewReader(flatten(page, false)))
	if err != nil {
		doc, err = html.Parse(bytes.NewReader(flatten(page, true)))
	}
	return doc, err
}

// withoutAttributes returns page with its formatting start tags bare.
func withoutAttributes(page []byte) []byte {
	bare := make([]byte, 0, len(page))
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		kind := z.Next()
		raw := z.Raw()
		switch kind {
		case html.ErrorToken:
			return bare
		case html.StartTagToken, html.SelfClosingTagToken:
			if tag, _ := z.TagName(); isFormatting(string(tag)) {
				bare = append(append(append(bare, '<'), tag...), '>')
				continue
			}
		}
		bare = append(bare, raw...)
	}
}

// formattings returns how many different formatting start tags there may be in
// page, wherever they stand.
func formattings(page []byte) int {
	seen := map[string]bool{}
	more := 0
	for {
		i := bytes.IndexByte(page, '<')
		if i < 0 {
			return len(seen) + more
		}
		page = page[i+1:]
		n := 0
		for n < min(len(page), 7) && (page[n]|0x20 >= 'a' && page[n]|0x20 <= 'z') {
			n++
		}
		if n == 0 || !isFormatting(strings.ToLower(string(page[:n]))) {
			continue
		}
		end := bytes.IndexByte(page[:min(len(page), 300)], '>')
		if end < 0 || bytes.Count(page[:end], []byte{'"'})%2 > 0 || bytes.Count(page[:end], []byte{'\''})%2 > 0 {
			more++
			continue
		}
		if !seen[string(page[:end])] {
			seen[string(page[:end])] = true
		}
	}
}

// isFormatting names the elements that a parser opens anew when they were left
// open, but for links, of which there is one.
func isFormatting(tag string) bool {
	switch tag {
	case "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u":
		return true
	}
	return false
}

// flatten returns page without formatting, without drawings and formulas, whose
// inside follows rules of its own, and without the tags of elements below
// maxNested levels. Elements that mostly end by themselves count as nested only
// where strict is set.
func flatten(page []byte, strict bool) []byte {
	flat := make([]byte, 0, len(page))
	open, dropped := map[string]int{}, map[string]int{}
	depth := 0
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		kind := z.Next()
		raw := z.Raw()
		if kind == html.ErrorToken {
			return flat
		}
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken || kind == html.EndTagToken {
			tag, _ := z.TagName()
			name := string(tag)
			switch {
			case isFormatting(name) || name == "svg" || name == "math":
				continue
			case isVoid(name) || !strict && closesItself(name):
			case kind != html.EndTagToken:
				if depth >= maxNested {
					dropped[name]++
					continue
				}
				open[name]++
				depth++
			case dropped[name] > 0:
				dropped[name]--
				continue
			case open[name] > 0:
				open[name]--
				depth--
			}
		}
		flat = append(flat, raw...)
	}
}

func isVoid(tag string) bool {
	switch tag {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// closesItself names the elements that end where the next of their kind begins.
func closesItself(tag string) bool {
	switch tag {
	case "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "option", "optgroup", "rb", "rp", "rt", "rtc",
		"html", "head", "body":
		return true
	}
	return false
}
