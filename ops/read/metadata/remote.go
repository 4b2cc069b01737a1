package metadata

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

func describeURL(ctx context.Context, web *fetch.Fetcher, u *url.URL) (result, error) {
	d, err := web.Head(ctx, u)
	if err != nil {
		return result{HTTPStatus: fetch.StatusOf(err)}, err
	}
	m := &metadata{Name: nameOf(u), EntryType: "url", Headers: map[string]string{}}
	for name, values := range d.Header {
		m.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	if n, err := strconv.ParseInt(d.Header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		m.Size = &n
	}
	mime, _, _ := strings.Cut(d.Header.Get("Content-Type"), ";")
	m.MIMEType = strings.ToLower(strings.TrimSpace(mime))
	if t, err := http.ParseTime(d.Header.Get("Last-Modified")); err == nil {
		m.Modified = fileinfo.ISO(t)
	}
	if d.Redirected() {
		m.FinalURL = d.URL.String()
	}
	return result{HTTPStatus: d.Status, Metadata: m}, nil
}

// nameOf is the last segment of a URL's path, or its host where the path has
// none.
func nameOf(u *url.URL) string {
	if name := path.Base(u.Path); name != "." && name != "/" {
		return name
	}
	return u.Host
}
