package content

import (
	"context"
	"encoding/hex"
	"io"
	"math"
	"net/url"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/charset"
	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/page"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// around is how many bytes before and after a range of text are fetched with
// it, since a character may begin before or end after it.
const around = 3

// url reads what u leads to; name is the source as the caller wrote it.
func (c reading) url(ctx context.Context, u *url.URL, name string) (result, error) {
	r, err := c.remote(ctx, u, name)
	if err != nil {
		return result{HTTPStatus: fetch.StatusOf(err), Range: fetch.RangeOf(err)}, err
	}
	return r, nil
}

func (c reading) remote(ctx context.Context, u *url.URL, name string) (result, error) {
	if c.Format == "checksum" {
		return c.urlChecksum(ctx, u, name)
	}
	d, skip, err := c.download(ctx, u)
	if err != nil {
		return result{}, err
	}
	r := told(d)
	in := memory(d.Body, name)
	text := isText(d, r.MIMEType)
	format := c.Format
	if format == "" {
		format = "text"
		if strings.HasPrefix(r.MIMEType, "image/") && !mediatype.IsText(r.MIMEType) {
			format = "base64"
			if c.textual() {
				return r, notText(name, r.MIMEType)
			}
		}
	}
	switch format {
	case "media":
		return c.media(ctx, in, r)
	case "base64":
		r.Format = format
		c.Offset = skip
		r.Range = c.rangeStatus(r.Range, skip, c.Length, in.size)
		return c.base64(ctx, in, r)
	case "markdown":
		if page.IsHTML(r.MIMEType) {
			r.Range = c.rangeStatus("", 0, -1, 0)
			body, declared, _ := charset.Decode(d.Body, d.Header.Get("Content-Type"))
			r.Charset = declared
			return c.markdown(ctx, in.name, body, d.URL, r)
		}
		kind := d.Header.Get("Content-Type")
		if kind == "" {
			kind = r.MIMEType
		}
		r.skipMarkdown(kind)
	}
	r.Format = "text"
	r.Range = c.rangeStatus(r.Range, skip, c.Length, in.size)
	if !text {
		r.hold(placeholder)
		return r, nil
	}
	c.Offset = skip
	return c.urlText(ctx, in, d, r)
}

// download fetches u: all of it, or where that suffices just the bytes asked for
// and a few around them. skip is where in the body those asked for begin.
func (c reading) download(ctx context.Context, u *url.URL) (d *fetch.Document, skip int64, err error) {
	if c.ranged() && !c.textual() && c.Format != "markdown" && c.Format != "media" {
		skip = min(c.Offset, around)
		n := c.Length
		if n >= 0 {
			n = min(n, math.MaxInt64-2*around) + skip + around
		}
		d, err = c.web.GetRange(ctx, u, c.Offset-skip, n)
		if err != nil || c.Format == "base64" || standsAlone(d, c.Offset-skip) {
			return d, skip, err
		}
	}
	if c.Offset > 0 || c.StartLine > 1 {
		d, err = c.web.Resume(ctx, u)
	} else {
		d, err = c.web.Get(ctx, u)
	}
	return d, c.Offset, err
}

// ranged reports whether part of the bytes is asked for.
func (c reading) ranged() bool { return c.Offset > 0 || c.Length >= 0 }

// standsAlone reports whether the bytes of d, which begin at offset from of the
// source, can be told as text without those before them.
func standsAlone(d *fetch.Document, from int64) bool {
	kind := d.Header.Get("Content-Type")
	mime := mimeType(d)
	if !isText(d, mime) {
		return true
	}
	if name := charset.Declared(kind); name != "" {
		return name == "utf-8"
	}
	return from == 0 || !page.IsHTML(mime) && !strings.HasSuffix(mime, "xml")
}

// rangeStatus corrects what fetching told of a range for the part of n bytes
// from skip on that is taken of size bytes.
func (c reading) rangeStatus(s fetch.RangeStatus, skip, n, size int64) fetch.RangeStatus {
	switch {
	case !c.ranged() || s == fetch.RangeNative:
		return s
	case skip == 0 && (n < 0 || n >= size) && s != fetch.RangeSimulated && c.Format != "markdown":
		return fetch.RangeFull
	}
	return fetch.RangeSimulated
}

// told is what every result says of a document.
func told(d *fetch.Document) result {
	r := result{MIMEType: mimeType(d), HTTPStatus: d.Status, Range: d.Range}
	if d.Redirected() {
		r.FinalURL = d.URL.String()
	}
	return r
}

// mimeType is the type in the Content-Type header, or where there is none what
// the content looks like.
func mimeType(d *fetch.Document) string {
	if mime, _, _ := strings.Cut(d.Header.Get("Content-Type"), ";"); strings.Contains(mime, "/") {
		return strings.ToLower(strings.TrimSpace(mime))
	}
	return mediatype.Detect(d.Body[:min(len(d.Body), mediatype.HeadSize)], d.URL.Path)
}

// isText reports whether the body of d is text: its content has to look like it,
// whatever the header says of it, and a header that names another type is
// believed.
func isText(d *fetch.Document, mime string) bool {
	if !mediatype.IsText(mime) && mime != "application/octet-stream" && mime != "binary/octet-stream" {
		return false
	}
	head, _, _ := charset.Decode(d.Body[:min(len(d.Body), mediatype.HeadSize)], d.Header.Get("Content-Type"))
	return mediatype.IsText(mediatype.Detect(head, ""))
}

// urlText returns text in the charset that the header, the document itself or a
// byte order mark tells. Offsets count bytes of the source in any charset.
func (c reading) urlText(ctx context.Context, in *input, d *fetch.Document, r result) (result, error) {
	text, name, lossy := charset.Decode(d.Body, d.Header.Get("Content-Type"))
	r.Charset = name
	if name == "" || name == "utf-8" || charset.Marked(d.Body) {
		return c.text(ctx, in, r)
	}
	at := func(offset int64) int64 { return int64(charset.TextOffset(d.Body, name, int(min(offset, in.size)))) }
	if c.Length >= 0 && c.Length < in.size {
		c.Length = at(c.Offset+c.Length) - at(c.Offset)
	}
	c.Offset = at(c.Offset)
	r, err := c.text(ctx, memory(text, in.name), r)
	if r.Truncated {
		r.NextOffset, r.TotalBytes = int64(charset.SourceOffset(d.Body, name, int(r.NextOffset))), in.size
	}
	r.Lossy = r.Lossy || lossy
	return r, err
}

func (c reading) urlChecksum(ctx context.Context, u *url.URL, name string) (result, error) {
	h := c.algorithm.New()
	var size counter
	d, err := c.web.Copy(ctx, u, io.MultiWriter(h, &size))
	if err != nil {
		return result{}, err
	}
	r := told(d)
	if c.Offset > int64(size) {
		return r, pastEnd(c.Offset, name, int64(size))
	}
	r.Format, r.Size, r.Algorithm = "checksum", new(int64(size)), c.algorithm
	r.Checksum = hex.EncodeToString(h.Sum(nil))
	return r, nil
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// pastEnd refuses an offset beside format checksum.
func pastEnd(offset int64, name string, size int64) error {
	return fault.New(fault.InvalidParameter, "offset %d lies past the end of %s (%d bytes); a checksum is of the whole content, so leave offset out", offset, name, size)
}
