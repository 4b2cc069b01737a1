package picture

import (
	"context"
	"errors"
	"image"
	"math"

	"github.com/disintegration/imaging"

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
func Fit(ctx context.Context, data []byte, mime string, l Limits) (out Fitted, err error) {
	err = safely(ctx, func() error {
		h, err := readHeader(data, mime)
		if err != nil {
			return err
		}
		out.OriginalWidth, out.OriginalHeight = h.upright()
		if h.accepted() && l.allow(h.width, h.height, len(data)) {
			// What clients take they decode, and some give up the whole
			// conversation over an image that is damaged.
			if !h.tooLarge() {
				if _, err := h.decode(ctx, data); err != nil {
					return err
				}
			}
			out.Data, out.MIME, out.Width, out.Height = data, h.kind.mime(), h.width, h.height
			return nil
		}
		if h.tooLarge() {
			return fault.New(fault.ImageProcessing, "the image has %d x %d pixels, more than the 100 megapixels that are decoded; format base64 gives its bytes as they are", h.width, h.height)
		}
		if h.frames > 1 {
			out.Note = "This is a still of the first frame of an animation; format base64 gives the original."
			if h.kind == kindTIFF {
				out.Note = "This is the first of several pages; format base64 gives the original."
			}
		}
		m, err := h.decodeFor(ctx, data, l)
		if err != nil {
			return err
		}
		return out.encode(ctx, m, h, l)
	})
	if err != nil {
		return Fitted{}, err
	}
	return out, nil
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

// encode makes of the pixels of h an image within the limits.
func (f *Fitted) encode(ctx context.Context, m image.Image, h *header, l Limits) error {
	few := fewColours(m)
	alpha := !opaque(m)
	for side := l.MaxSide; ; {
		s := m.Bounds().Size()
		width, height := within(s.X, s.Y, side)
		small, err := resize(ctx, m, width, height)
		if err != nil {
			return err
		}
		f.Width, f.Height = width, height
		size := 0
		switch {
		case alpha || few:
			f.Data, err = encodePNG(ctx, small, h.profile, quickDeflate)
			f.MIME, size = kindPNG.mime(), len(f.Data)
		case h.kind == kindJPEG || h.kind == kindWebP && !h.lossless:
			size, err = f.jpeg(ctx, small, h, l)
		default:
			if size, err = f.jpeg(ctx, small, h, l); err != nil {
				break
			}
			var p []byte
			if p, err = encodePNG(ctx, small, h.profile, quickDeflate); err == nil && l.allow(1, 1, len(p)) && len(p) < 2*size {
				f.Data, f.MIME, size = p, kindPNG.mime(), len(p)
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

// jpeg encodes an image in the best quality that the limits allow, or the
// lowest.
func (f *Fitted) jpeg(ctx context.Context, m image.Image, h *header, l Limits) (size int, err error) {
	f.MIME = kindJPEG.mime()
	for _, q := range qualities {
		if f.Data, err = encodeJPEG(ctx, m, q, h.profile); err != nil || l.allow(1, 1, len(f.Data)) {
			break
		}
	}
	return len(f.Data), err
}

func opaque(m image.Image) bool {
	if o, ok := m.(interface{ Opaque() bool }); ok {
		return o.Opaque()
	}
	return true
}

// fewColours reports whether an image has at most 256 colours.
func fewColours(m image.Image) bool {
	switch m := m.(type) {
	case *image.Paletted:
		return true
	case *image.NRGBA:
		seen := make(map[[4]byte]struct{}, 257)
		var last [4]byte
		w, h := m.Rect.Dx(), m.Rect.Dy()
		for y := range h {
			for row := m.Pix[y*m.Stride:][:4*w]; len(row) > 0; row = row[4:] {
				if c := [4]byte(row); c != last {
					last = c
					if seen[c] = struct{}{}; len(seen) > 256 {
						return false
					}
				}
			}
		}
		return true
	}
	return false
}

// resize makes a plain image smaller; a gray one stays gray. Most of a long way
// down is gone by averaging.
func resize(ctx context.Context, m image.Image, width, height int) (image.Image, error) {
	s := m.Bounds().Size()
	if width == s.X && height == s.Y {
		return m, nil
	}
	for worthHalving(m.Bounds().Dx(), m.Bounds().Dy(), width, height) {
		var err error
		if m, err = halve(ctx, m); err != nil {
			return nil, err
		}
	}
	rgb, err := nrgba(ctx, m)
	if err != nil {
		return nil, err
	}
	small := imaging.Resize(rgb, width, height, imaging.Lanczos)
	switch m.(type) {
	case *image.Gray, *image.Gray16:
		gray := image.NewGray(small.Rect)
		for i := range gray.Pix {
			gray.Pix[i] = small.Pix[4*i]
		}
		return gray, ctx.Err()
	}
	return small, ctx.Err()
}

// worthHalving reports whether an image of w x h that is to become one of
// width x height may first be halved: a quarter and more must remain for the
// better filter.
func worthHalving(w, h, width, height int) bool {
	return w/2 >= width+width/4 && h/2 >= height+height/4
}

// halve averages two by two pixels.
func halve(ctx context.Context, m image.Image) (image.Image, error) {
	b := m.Bounds()
	r := image.Rect(0, 0, (b.Dx()+1)/2, (b.Dy()+1)/2)
	switch m := m.(type) {
	case *image.Gray:
		out := image.NewGray(r)
		return out, halvePlane(ctx, out.Pix, out.Stride, plane{m.Pix, m.Stride, b.Dx(), b.Dy()})
	case *image.YCbCr:
		if cw, ch := chromaSize(m); cw > 0 {
			out := image.NewYCbCr(r, m.SubsampleRatio)
			err := halvePlane(ctx, out.Y, out.YStride, plane{m.Y, m.YStride, b.Dx(), b.Dy()})
			for _, p := range [2][2][]byte{{out.Cb, m.Cb}, {out.Cr, m.Cr}} {
				if err == nil {
					err = halvePlane(ctx, p[0], out.CStride, plane{p[1], m.CStride, cw, ch})
				}
			}
			return out, err
		}
	}
	src, err := nrgba(ctx, m)
	if err != nil {
		return nil, err
	}
	out := image.NewNRGBA(r)
	return out, byRows(ctx, r.Dy(), func(from, to int) {
		for y := from; y < to; y++ {
			up, low := src.Pix[2*y*src.Stride:], src.Pix[min(2*y+1, b.Dy()-1)*src.Stride:]
			for x := range r.Dx() {
				i, j := 8*x, min(8*x+4, 4*b.Dx()-4)
				var c, a [4]int
				a[0], a[1], a[2], a[3] = int(up[i+3]), int(up[j+3]), int(low[i+3]), int(low[j+3])
				sum := a[0] + a[1] + a[2] + a[3]
				if sum == 0 {
					continue
				}
				for k := range 3 {
					c[k] = (int(up[i+k])*a[0] + int(up[j+k])*a[1] + int(low[i+k])*a[2] + int(low[j+k])*a[3] + sum/2) / sum
				}
				*(*[4]byte)(out.Pix[y*out.Stride+4*x:]) = [4]byte{byte(c[0]), byte(c[1]), byte(c[2]), byte((sum + 2) / 4)}
			}
		}
	})
}

func halvePlane(ctx context.Context, dst []byte, stride int, src plane) error {
	return byRows(ctx, (src.height+1)/2, func(from, to int) {
		for y := from; y < to; y++ {
			up, low := src.pix[2*y*src.stride:], src.pix[min(2*y+1, src.height-1)*src.stride:]
			row := dst[y*stride:][:(src.width+1)/2]
			for x := range row {
				j := min(2*x+1, src.width-1)
				row[x] = average(up[2*x], up[j], low[2*x], low[j])
			}
		}
	})
}

// decodeFor decodes an image that is to be fitted, a large JPEG at half its size
// where the limits leave less anyway.
func (h *header) decodeFor(ctx context.Context, data []byte, l Limits) (image.Image, error) {
	if width, height := within(h.width, h.height, l.MaxSide); h.kind == kindJPEG && worthHalving(h.width, h.height, width, height) {
		m, err := halfJPEG(ctx, data)
		if err == nil {
			return turn(m, h.orientation), nil
		}
		if !errors.Is(err, errNotSequential) {
			return nil, err
		}
	}
	return h.decodeUpright(ctx, data)
}
