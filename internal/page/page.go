// Package page turns a web page into its main content as Markdown.
package page

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"
	"unicode"

	readability "codeberg.org/readeck/go-readability"
	"golang.org/x/net/html"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An Article is the main content of a page and what the page says of it. Fields
// that the page leaves open are empty; all but Markdown are one line of about
// 1000 bytes at most.
type Article struct {
	Markdown  string // ends with one newline
	Title     string
	Byline    string
	Excerpt   string
	SiteName  string
	Published string // ISO 8601, UTC
}

// minContent is how many characters other than spaces main content has.
const minContent = 25

// IsHTML reports whether mime, parameters ignored, is a type that FromHTML
// takes.
func IsHTML(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	return mime == "text/html" || mime == "application/xhtml+xml"
}

// FromHTML extracts the main content of a page, given as UTF-8, and converts it
// to Markdown. Links and images become absolute by base and the page's own base
// element; where base is nil, relative ones stay as they are. What a reader of
// the page would not see is left out.
//
// Where a page has no main content, or the stages that look for it fail, the
// error is fault.MarkdownExtraction; where the conversion fails it is
// fault.MarkdownConversion. The end of ctx is noticed between the stages, each
// of which takes bounded time.
func FromHTML(ctx context.Context, page []byte, base *url.URL) (Article, error) {
	var (
		a       Article
		content *html.Node
	)
	err := panics.Try(func() (err error) {
		a, content, base, err = extract(ctx, page, base)
		return err
	})
	if err != nil {
		return Article{}, failure(ctx, fault.MarkdownExtraction, err, "this page could not be taken apart to find its main content")
	}
	if content == nil || !substantial(content) {
		return Article{}, fault.New(fault.MarkdownExtraction, `this page has no main content to speak of (it may be built by scripts in a browser); format "text" gives the raw page`)
	}
	err = panics.Try(func() (err error) {
		tidy(content, base, a.Title)
		if err = ctx.Err(); err != nil {
			return err
		}
		a.Markdown, err = markdown(ctx, content)
		return err
	})
	if err != nil {
		return Article{}, failure(ctx, fault.MarkdownConversion, err, "the main content of this page could not be converted to Markdown")
	}
	return a, nil
}

func failure(ctx context.Context, code fault.Code, err error, message string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known
	}
	return fault.Hide(code, err, `%s; format "text" gives the raw page`, message)
}

// extract returns what the page says of itself, its main content, nil where
// there is none, and the URL that its links are relative to.
func extract(ctx context.Context, page []byte, base *url.URL) (Article, *html.Node, *url.URL, error) {
	if err := ctx.Err(); err != nil {
		return Article{}, nil, nil, err
	}
	doc, err := parse(page)
	if err != nil {
		return Article{}, nil, nil, err
	}
	base = baseOf(doc, base)
	sweep(doc)
	if err := ctx.Err(); err != nil {
		return Article{}, nil, nil, err
	}
	reader := readability.NewParser()
	reader.KeepClasses = true
	found, err := reader.ParseAndMutate(doc, nil)
	if err != nil {
		return Article{}, nil, nil, err
	}
	a := Article{
		Title:    line(found.Title),
		Byline:   line(found.Byline),
		Excerpt:  line(found.Excerpt),
		SiteName: line(found.SiteName),
	}
	if t := found.PublishedTime; t != nil && t.Year() > 0 && t.Year() < 10_000 {
		a.Published = t.UTC().Format(time.RFC3339)
	}
	return a, found.Node, base, ctx.Err()
}

// maxLine is how many bytes of what a page says of itself are kept.
const maxLine = 1000

// line returns s as one line without what cannot be seen.
func line(s string) string {
	return fault.ClipTo(strings.Join(strings.Fields(visible(s)), " "), maxLine)
}

func substantial(n *html.Node) bool {
	count := 0
	for n := range n.Descendants() {
		if n.Type != html.TextNode {
			continue
		}
		for _, r := range n.Data {
			if !unicode.IsSpace(r) {
				if count++; count >= minContent {
					return true
				}
			}
		}
	}
	return false
}
