package picture

import (
	"context"
	"errors"
	"image"
	"io"
	"math"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Limits bound what Fit returns. Zero is no limit.
type Limits struct {
	MaxSide  int   // pixels of the longer side
	MaxBytes int64 // length of the file
}

// Fitted is an image that keeps to some Limits.
type Fitted struct {
	Data                          []byte
	MIME                          string // image/jpeg, image/png, image/gif or image/webp
	Width, Height                 int    // of Data as it is shown
	OriginalWidth, OriginalHeight int    // of the source as it is shown
	Note                          string // what a caller should know of the change, or nothing
}

// qualities of JPEG that Fit tries, best first.
var qualities = [...]int{85, 75, 65, 50}

// Fit returns the image in a form that clients of vision models accept, within
// the limits. It stays as it is, metadata included, where it fits already and
// needs not be turned. Otherwise a JPEG stays a JPEG; what has alpha or few
// colours becomes a PNG, other images a PNG or, where that is less than half as
// long, a JPEG. Where the bytes do not suffice, quality is given up first and
// size then. An animation that does not fit becomes a still of its first frame, a
// TIFF its first page, and the note says so.
//
// Errors are ERR_UNSUPPORTED_IMAGE_TYPE, ERR_IMAGE_PROCESSING_FAILED for an
// image that is damaged, has more than 100 megapixels or cannot be made as
// small, and that of ctx.
func Fit(ctx context.Context, file io.ReaderAt, size int64, mime string, l Limits) (Fitted, error) {
	src := newSource(file, size)
	return run(ctx, src, mime, func(h *header) (out Fitted, err error) {
		out.OriginalWidth, out.OriginalHeight = h.upright()
		if h.accepted() && l.allow(h.width, h.height, int(size)) {
			// What clients take they decode, and some give up the whole
			// conversation over an image that is damaged.
			if !h.tooLarge() {
				if _, err := h.decode(ctx, src); err != nil {
					return out, err
				}
			}
			if out.Data = src.part(0, size); out.Data == nil {
				return out, errShort
			}
			out.MIME, out.Width, out.Height = h.kind.mime(), h.width, h.height
			return out, nil
		}
		if h.tooLarge() {
			return out, fault.New(fault.ImageProcessing, "the image has %d x %d pixels, more than the 100 megapixels that are decoded; format base64 gives its bytes as they are", h.width, h.height)
		}
		if h.frames > 1 {
			out.Note = "This is a still of the first frame of an animation; format base64 gives the original."
			if h.kind == kindTIFF {
				out.Note = "This is the first of several pages; format base64 gives the original."
			}
		}
		m, err := h.decode(ctx, src)
		if err != nil {
			return out, err
		}
		return out, out.encode(ctx, onCanvas(m, h.width, h.height), h, l)
	})
}

// accepted reports whether clients take an image of this kind as it is.
func (h *header) accepted() bool {
	return h.orientation == 1 && !h.cmyk && h.kind != kindTIFF && h.kind != kindBMP
}

func (l Limits) allow(width, height, bytes int) bool {
	return (l.MaxSide <= 0 || max(width, height) <= l.MaxSide) && (l.MaxBytes <= 0 || int64(bytes) <= l.MaxBytes)
}

// within returns the largest size of an image of w x h that a side allows.
func within(w, h, side int) (int, int) {
	if side <= 0 || max(w, h) <= side {
		return w, h
	}
	scale := float64(side) / float64(max(w, h))
	return min(max(int(math.Round(float64(w)*scale)), 1), side), min(max(int(math.Round(float64(h)*scale)), 1), side)
}

// encode makes of the pixels of h, as they are stored, an image within the limits.
func (f *Fitted) encode(ctx context.Context, m image.Image, h *header, l Limits) error {
	_, few := m.(*image.Paletted)
	if n, ok := m.(*image.NRGBA); ok {
		colours, _ := coloursOf(n)
		few = colours != nil
	}
	alpha := !opaque(m)
	for side := l.MaxSide; ; {
		width, height := within(h.width, h.height, side)
		for worthHalving(m, width, height) {
			halve(m)
		}
		small := turn(resize(m, width, height), h.orientation)
		if err := ctx.Err(); err != nil {
			return err
		}
		f.Width, f.Height = small.Bounds().Dx(), small.Bounds().Dy()
		size := 0
		var err error
		switch {
		case alpha || few:
			f.Data, err = encodePNG(ctx, small, profileChunks(profileFor(small, h.profile)), unlimited)
			f.MIME, size = kindPNG.mime(), len(f.Data)
		case h.kind == kindJPEG || h.kind == kindWebP && !h.lossless:
			size, err = f.jpeg(ctx, small, h, l)
		default:
			if size, err = f.jpeg(ctx, small, h, l); err != nil {
				break
			}
			most := 2*size - 1
			if l.MaxBytes > 0 {
				most = min(most, int(l.MaxBytes))
			}
			p, e := encodePNG(ctx, small, profileChunks(profileFor(small, h.profile)), most)
			if e == nil {
				f.Data, f.MIME, size = p, kindPNG.mime(), len(p)
			} else if !errors.Is(e, errTooLong) {
				err = e
			}
		}
		if err != nil {
			return err
		}
		if l.allow(width, height, size) {
			return nil
		}
		if max(width, height) == 1 {
			return fault.New(fault.ImageProcessing, "the image cannot be made to fit %d bytes: allow more", l.MaxBytes)
		}
		shrink := min(max(math.Sqrt(float64(l.MaxBytes)/float64(size))*0.95, 0.1), 0.9)
		side = max(int(float64(max(width, height))*shrink), 1)
	}
}

// profileFor returns the profile where it describes an image of that type.
func profileFor(m image.Image, profile []byte) []byte {
	if isGray(m) {
		return profileOf(profile, "GRAY")
	}
	return profileOf(profile, "RGB ")
}

// jpeg encodes an image in the best quality that the limits allow, or the
// lowest.
func (f *Fitted) jpeg(ctx context.Context, m image.Image, h *header, l Limits) (size int, err error) {
	f.MIME = kindJPEG.mime()
	for _, q := range qualities {
		if f.Data, err = encodeJPEG(ctx, m, q, profileFor(m, h.profile), unlimited); err != nil || l.allow(1, 1, len(f.Data)) {
			break
		}
	}
	return len(f.Data), err
}
