package content

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/page"
	"github.com/conduit-mcp/conduit-mcp/internal/picture"
	"github.com/conduit-mcp/conduit-mcp/internal/textfile"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// compressionFailed is the note of the specification's section 2.
const compressionFailed = "Image compression attempt failed; original image data used."

// image returns an image in base64, in fewer bytes where that can be had, and
// says what became of it.
func (c reading) image(ctx context.Context, in *input, r result) (result, error) {
	data, err := c.whole(in)
	if err != nil {
		return result{}, err
	}
	if r, err = c.tag(ctx, in, r, true); err != nil {
		return result{}, err
	}
	done, err := c.atEasel(ctx)
	if err != nil {
		return result{}, err
	}
	defer done()
	small, why, err := picture.Compress(ctx, data, r.MIMEType, c.quality)
	switch {
	case ctx.Err() != nil:
		return result{}, ctx.Err()
	case err != nil:
		c.log.WarnContext(ctx, "image compression failed; the original is returned", "source", in.name, "err", err)
		r.CompressionNote = compressionFailed
	case small == nil:
		r.CompressionNote = why
	default:
		*r.Compressed = true
		r.OriginalSize, data = in.size, small
	}
	if len(data) <= inMemory {
		r.hold(base64.StdEncoding.EncodeToString(data))
	} else {
		r.stream(textfile.NewBase64(bytes.NewReader(data), 0, int64(len(data)), in.name))
	}
	return r, nil
}

// atEasel waits until no other picture is worked on: one at a time uses all
// processors, and so few of them are in memory at once.
func (c reading) atEasel(ctx context.Context) (done func(), err error) {
	select {
	case c.easel <- struct{}{}:
		return func() { <-c.easel }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// media returns an image or audio as a content block.
func (c reading) media(ctx context.Context, in *input, r result) (result, error) {
	r.Format = "media"
	if strings.HasPrefix(r.MIMEType, "audio/") {
		if in.size > c.MaxBytes {
			return result{}, fault.New(fault.LimitExceeded, "%s takes %d bytes, more than max_bytes (%d), and audio is not made smaller; raise max_bytes", in.name, in.size, c.MaxBytes)
		}
		data, err := c.whole(in)
		if err != nil {
			return result{}, err
		}
		r.block = &registry.Block{Kind: "audio", MIME: r.MIMEType, Data: data}
		r.MediaType, r.Size = r.MIMEType, new(in.size)
		return c.tag(ctx, in, r, true)
	}
	if !strings.HasPrefix(r.MIMEType, "image/") {
		return result{}, fault.New(fault.UnsupportedImage, `%s is %s; format "media" is for images and audio, so leave format out`, in.name, r.MIMEType)
	}
	data, err := c.whole(in)
	if err != nil {
		return result{}, err
	}
	done, err := c.atEasel(ctx)
	if err != nil {
		return result{}, err
	}
	defer done()
	fit, err := picture.Fit(ctx, data, r.MIMEType, picture.Limits{MaxSide: int(c.MaxSide), MaxBytes: c.MaxBytes})
	if err != nil {
		return result{}, err
	}
	r.block = &registry.Block{Kind: "image", MIME: fit.MIME, Data: fit.Data}
	r.MediaType, r.Size, r.Note = fit.MIME, new(int64(len(fit.Data))), fit.Note
	r.Width, r.Height, r.OriginalWidth, r.OriginalHeight = fit.Width, fit.Height, fit.OriginalWidth, fit.OriginalHeight
	if int64(len(fit.Data)) != in.size {
		r.OriginalSize = in.size
	}
	return c.tag(ctx, in, r, true)
}

// markdown returns the main content of a page, UTF-8, of which offset and length
// select bytes. base makes its links absolute; it is nil for local files.
func (c reading) markdown(ctx context.Context, name string, html []byte, base *url.URL, r result) (result, error) {
	a, err := page.FromHTML(ctx, html, base)
	if err != nil {
		return result{}, err
	}
	r.Format, r.MarkdownStatus = "markdown", "success"
	r.Title, r.Byline, r.Excerpt, r.SiteName, r.Published = a.Title, a.Byline, a.Excerpt, a.SiteName, a.Published
	told := r.Charset
	r, err = c.text(ctx, memory([]byte(a.Markdown), name), r)
	r.Charset = told
	return r, err
}

// skipMarkdown says that content of that type is returned as it is.
func (r *result) skipMarkdown(mime string) {
	r.MarkdownStatus = "skipped_unsupported_content_type"
	r.MarkdownSkipped = "Original Content-Type '" + mime + "' is not suitable for Markdown conversion; returning raw content."
}
