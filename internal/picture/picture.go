// Package picture makes images smaller: the same image in fewer bytes, or one
// that fits what clients of vision models accept.
//
// What an image is, its content says; a MIME type given beside it only helps
// to name what could not be recognized. The size of an image is asked of its
// decoder before anything is decoded, and one of more than 100 megapixels never
// is. Images of 25 megapixels in all are worked on at a time, a larger one alone.
package picture

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"runtime"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/sync/semaphore"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const (
	maxPixels       = 100_000_000 // of the largest image that is decoded
	pixelsAtATime   = 25_000_000  // of all images that are worked on
	worthCollecting = 2_000_000   // of an image whose memory is not left to the next collection
)

var working = semaphore.NewWeighted(pixelsAtATime)

// Compressible reports whether this build can compress images of the given
// MIME type: JPEG, PNG, GIF, TIFF, BMP, and WebP where it was built with cgo.
func Compressible(mime string) bool {
	switch kindOf(mime) {
	case kindJPEG, kindPNG, kindGIF, kindTIFF, kindBMP:
		return true
	case kindWebP:
		return canWriteWebP
	}
	return false
}

// Compress encodes an image anew in its own format, in fewer bytes. Quality, 1
// to 100, is that of JPEG and lossy WebP; the other formats lose nothing. An
// orientation recorded in the file is applied to the pixels, a colour profile
// is kept, other metadata is not.
//
// It returns nil without an error where the image is better left as it is; why
// then says the reason, or nothing where the result would not be smaller. Errors
// are ERR_UNSUPPORTED_IMAGE_TYPE, ERR_IMAGE_PROCESSING_FAILED for a damaged
// image, and that of ctx, with which it returns at once.
func Compress(ctx context.Context, file io.ReaderAt, size int64, mime string, quality int) (out []byte, why string, err error) {
	type result struct {
		out []byte
		why string
	}
	src := newSource(file, size)
	r, err := run(ctx, src, mime, func(h *header) (r result, err error) {
		if r.why = h.untouchable(); r.why == "" {
			r.out, r.why, err = h.compress(ctx, src, min(max(quality, 1), 100))
		}
		if errors.Is(err, errTooLong) {
			err = nil
		}
		return r, err
	})
	if err != nil || int64(len(r.out)) >= size {
		return nil, r.why, err
	}
	return r.out, r.why, nil
}

// untouchable says why an image is not to be compressed, or nothing.
func (h *header) untouchable() string {
	switch {
	case h.tooLarge():
		return fmt.Sprintf("%d x %d pixels are more than the 100 megapixels that are decoded", h.width, h.height)
	case h.frames > 1 && h.kind == kindTIFF:
		return "a TIFF of several pages is left as it is"
	case h.frames > 1:
		return "an animated image is left as it is"
	case h.cmyk:
		return "a CMYK JPEG is left as it is"
	case h.deep && h.orientation != 1:
		return "an image of 16 bits a sample that would have to be turned is left as it is"
	case h.kind == kindBMP && h.embedded:
		return "a BMP with a colour profile is left as it is"
	case h.kind == kindWebP && !canWriteWebP:
		return "this build cannot write WebP"
	case h.kind == kindWebP && h.lossless:
		return "a lossless WebP is left as it is"
	}
	return ""
}

// compress is Compress for what is not untouchable; the error is errTooLong as
// soon as the result would be longer than the source.
func (h *header) compress(ctx context.Context, src source, quality int) (out []byte, why string, err error) {
	m, err := h.decode(ctx, src)
	if err != nil {
		return nil, "", err
	}
	most := int(src.size)
	if h.kind == kindGIF { // whose frame may be smaller than the image
		out, err = encodeGIF(ctx, m, h, most)
		return out, "", err
	}
	m = turn(m, h.orientation)
	switch h.kind {
	case kindJPEG:
		out, err = encodeJPEG(ctx, m, settled(quality), h.profile, most)
	case kindPNG:
		if !isGray(m) && profileOf(h.profile, "GRAY") != nil {
			return nil, "a gray PNG with transparency and a colour profile is left as it is", nil
		}
		out, err = encodePNG(ctx, m, h.colours, most)
	case kindTIFF:
		out, err = encodeTIFF(ctx, m, h.profile, most)
	case kindBMP:
		if !opaque(m) {
			return nil, "a BMP with alpha is left as it is", nil
		}
		b := output{ctx: ctx, most: most}
		err = bmp.Encode(&b, m)
		out = b.data
	case kindWebP:
		out, err = encodeWebP(m, quality, h.profile)
	}
	return out, "", err
}

// run calls f with the header of an image, when there is room for it. Panics of f
// and errors without a code become ERR_IMAGE_PROCESSING_FAILED. When ctx ends
// first, run returns, and the room is free as soon as f notices.
func run[T any](ctx context.Context, src source, mime string, f func(h *header) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	var h *header
	err := panics.Try(func() (err error) {
		h, err = readHeader(src, mime)
		return err
	})
	if err != nil {
		return none, coded(err)
	}
	room := min(int64(h.width)*int64(h.height), pixelsAtATime)
	if err := working.Acquire(ctx, room); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	go func() {
		defer working.Release(room)
		var r result
		r.err = panics.Try(func() (err error) {
			r.value, err = f(h)
			return err
		})
		if room > worthCollecting {
			runtime.GC() // what follows is put where the pixels were
		}
		done <- r
	}()
	select {
	case r := <-done:
		if r.err == nil {
			return r.value, nil
		}
		if err := ctx.Err(); err != nil {
			return none, err
		}
		return none, coded(r.err)
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func coded(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Hide(fault.ImageProcessing, err,
		"the image could not be processed: it is damaged, cut short, or of a variant that is not supported; format base64 gives its bytes as they are")
}

func unsupported(mime string) error {
	if mime = strings.TrimSpace(mime); mime == "" || kindOf(mime) != kindNone {
		return fault.New(fault.UnsupportedImage, "the content is not an image of a supported type: JPEG, PNG, GIF, WebP, TIFF or BMP")
	}
	return fault.New(fault.UnsupportedImage, "images of type %.80q are not supported: use JPEG, PNG, GIF, WebP, TIFF or BMP", mime)
}

// errTooLong ends the encoding of what is longer than it may be.
var errTooLong = errors.New("longer than allowed")

// unlimited is the length of an output without a limit.
const unlimited = math.MaxInt

// An output collects at most that many bytes of an encoder, until ctx ends.
type output struct {
	ctx  context.Context
	most int
	data []byte
}

func (o *output) Write(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	if len(p) > o.most-len(o.data) {
		return 0, errTooLong
	}
	o.data = append(o.data, p...)
	return len(p), nil
}

// decode returns the pixels of the image, of an animation those of the first
// frame, as they are stored.
func (h *header) decode(ctx context.Context, src source) (image.Image, error) {
	var m image.Image
	var err error
	if h.kind == kindWebP && h.frames > 1 {
		m, err = firstWebPFrame(ctx, src, h.width, h.height)
	} else {
		m, err = codecs[h.kind].decode(src.all(ctx))
	}
	if err != nil {
		return nil, err
	}
	if s := m.Bounds().Size(); h.kind != kindGIF && (s.X != h.width || s.Y != h.height) {
		return nil, fmt.Errorf("the header says %d x %d, the data %d x %d", h.width, h.height, s.X, s.Y)
	}
	return plain(m), ctx.Err()
}
