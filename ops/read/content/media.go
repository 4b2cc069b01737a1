package content

import (
	"context"
	"net/url"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/page"
	"github.com/conduit-mcp/conduit-mcp/internal/picture"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// compressionFailed is the note of the specification's section 2.
const compressionFailed = "Image compression attempt failed; original image data used."

// compress makes an image smaller and says in r what became of it; it returns
// nil where the original is to be returned.
func (c reading) compress(ctx context.Context, in *input, r *result) ([]byte, error) {
	small, why, err := picture.Compress(ctx, in.ReaderAt, in.size, r.MIMEType, c.quality)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		c.log.WarnContext(ctx, "image compression failed; the original is returned", "source", in.name, "err", err)
		r.CompressionNote = compressionFailed
		return nil, nil
	}
	r.CompressionNote = why
	*r.Compressed = small != nil
	return small, nil
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
	if err := c.fits(in, in.size); err != nil {
		return result{}, err
	}
	fit, err := picture.Fit(ctx, in.ReaderAt, in.size, r.MIMEType, picture.Limits{MaxSide: int(c.MaxSide), MaxBytes: c.MaxBytes})
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
