// Package picture makes images smaller: the same image in fewer bytes, or one
// that fits what clients of vision models accept.
//
// What an image is, its content says; a MIME type given beside it only helps
// to name what could not be recognized. Headers are read before any pixel, and
// an image of more than 100 megapixels is never decoded.
package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// maxPixels is the largest image that is decoded.
const maxPixels = 100_000_000

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
// image, and that of ctx.
func Compress(ctx context.Context, data []byte, mime string, quality int) (out []byte, why string, err error) {
	err = safely(ctx, func() error {
		h, err := readHeader(data, mime)
		if err != nil {
			return err
		}
		if why = h.untouchable(); why != "" {
			return nil
		}
		out, why, err = compress(ctx, data, h, min(max(quality, 1), 100))
		return err
	})
	if err != nil || len(out) >= len(data) {
		return nil, why, err
	}
	return out, why, nil
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
	case h.kind == kindBMP && h.embedded:
		return "a BMP with a colour profile is left as it is"
	case h.kind == kindWebP && !canWriteWebP:
		return "this build cannot write WebP"
	case h.kind == kindWebP && h.lossless:
		return "a lossless WebP is left as it is"
	}
	return ""
}

func compress(ctx context.Context, data []byte, h *header, quality int) (out []byte, why string, err error) {
	switch h.kind {
	case kindJPEG:
		if h.orientation == 1 {
			if out, err = requantize(ctx, data, quality); !errors.Is(err, errNotSequential) {
				return out, "", err
			}
		}
		if h.cmyk {
			return nil, "a CMYK JPEG that is progressive or turned is left as it is", nil
		}
		m, err := h.decodeUpright(ctx, data)
		if err != nil {
			return nil, "", err
		}
		out, err = encodeJPEG(ctx, m, quality, h.profile)
		return out, "", err
	case kindPNG:
		if h.orientation == 1 {
			out, err = repackPNG(ctx, data)
			return out, "", err
		}
		m, err := h.decodeUpright(ctx, data)
		if err != nil {
			return nil, "", err
		}
		out, err = encodePNG(ctx, m, h.profile, bestDeflate)
		return out, "", err
	case kindGIF:
		all, err := gif.DecodeAll(bytes.NewReader(data))
		if err != nil {
			return nil, "", err
		}
		var b bytes.Buffer
		err = gif.EncodeAll(&b, all)
		return b.Bytes(), "", err
	}
	m, err := h.decodeUpright(ctx, data)
	if err != nil {
		return nil, "", err
	}
	switch h.kind {
	case kindTIFF:
		out, err = encodeTIFF(ctx, m, h.profile)
	case kindBMP:
		if !opaque(m) {
			return nil, "a BMP with alpha is left as it is", nil
		}
		var b bytes.Buffer
		err = bmp.Encode(&b, m)
		out = b.Bytes()
	case kindWebP:
		out, err = encodeWebP(ctx, m, quality, h.profile)
	}
	return out, "", err
}

// decode returns the pixels of the image, of an animation those of the first
// frame, as they are stored.
func (h *header) decode(ctx context.Context, data []byte) (image.Image, error) {
	r := bytes.NewReader(data)
	switch h.kind {
	case kindJPEG:
		return jpeg.Decode(r)
	case kindPNG:
		return png.Decode(r)
	case kindGIF:
		m, err := gif.Decode(r)
		if err != nil {
			return nil, err
		}
		return onCanvas(m, h.width, h.height), nil
	case kindTIFF:
		return tiff.Decode(r)
	case kindBMP:
		return bmp.Decode(r)
	}
	if h.frames > 1 {
		return firstWebPFrame(ctx, data, h.width, h.height)
	}
	return decodeWebP(r)
}

// decodeUpright decodes the image, turns it as its orientation says and makes
// it one of the types that the encoders of this package take.
func (h *header) decodeUpright(ctx context.Context, data []byte) (image.Image, error) {
	m, err := h.decode(ctx, data)
	if err != nil {
		return nil, err
	}
	if s := m.Bounds().Size(); s.X != h.width || s.Y != h.height {
		return nil, fmt.Errorf("the header says %d x %d, the data %d x %d", h.width, h.height, s.X, s.Y)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return turn(plain(m), h.orientation), nil
}

// safely runs f, whose panics and errors without a code become
// ERR_IMAGE_PROCESSING_FAILED.
func safely(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := panics.Try(f)
	var coded *fault.Error
	if err == nil || errors.As(err, &coded) || errors.Is(err, ctx.Err()) && ctx.Err() != nil {
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
