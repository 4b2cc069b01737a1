package picture

import (
	"context"
	"image"
	"image/color"
	"image/draw"
	"runtime"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// forEach calls f for each number below n, on all processors, until one call
// fails or ctx ends.
func forEach(ctx context.Context, n int, f func(i int) error) error {
	g, ctx := parallel.WithContext(ctx)
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), n) {
		g.Go(func() error {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := f(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// rowsAtOnce is how many rows of an image make a worthwhile piece of work.
const rowsAtOnce = 64

// byRows calls f for pieces of the rows below n, an even number each but for the
// last.
func byRows(ctx context.Context, n int, f func(from, to int)) error {
	return forEach(ctx, (n+rowsAtOnce-1)/rowsAtOnce, func(i int) error {
		f(i*rowsAtOnce, min((i+1)*rowsAtOnce, n))
		return nil
	})
}

// plain returns m as one of the types that this package works with, beginning
// at the origin: Gray, Gray16, NRGBA, NRGBA64, YCbCr, and Paletted of which all
// pixels are in the palette.
func plain(m image.Image) image.Image {
	b := m.Bounds()
	if b.Min == (image.Point{}) {
		switch m := m.(type) {
		case *image.Gray, *image.Gray16, *image.NRGBA, *image.NRGBA64, *image.YCbCr:
			return m
		case *image.Paletted:
			if inPalette(m) {
				return m
			}
		case *image.RGBA:
			if m.Opaque() {
				return &image.NRGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
			}
		case *image.RGBA64:
			if m.Opaque() {
				return &image.NRGBA64{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
			}
			out := image.NewNRGBA64(b)
			for y := range b.Max.Y {
				for x := range b.Max.X {
					out.SetNRGBA64(x, y, color.NRGBA64Model.Convert(m.RGBA64At(x, y)).(color.NRGBA64))
				}
			}
			return out
		}
	}
	out := image.NewNRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	at := func(x, y int) color.Color { return m.At(x, y) }
	if p, ok := m.(*image.Paletted); ok {
		at = func(x, y int) color.Color {
			if i := int(p.ColorIndexAt(x, y)); i < len(p.Palette) {
				return p.Palette[i]
			}
			return color.NRGBA{}
		}
	}
	for y := range b.Dy() {
		for x := range b.Dx() {
			out.SetNRGBA(x, y, color.NRGBAModel.Convert(at(b.Min.X+x, b.Min.Y+y)).(color.NRGBA))
		}
	}
	return out
}

func inPalette(m *image.Paletted) bool {
	if len(m.Palette) >= 256 {
		return true
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	for y := range h {
		for _, i := range m.Pix[y*m.Stride : y*m.Stride+w] {
			if int(i) >= len(m.Palette) {
				return false
			}
		}
	}
	return true
}

// nrgba converts a plain image.
func nrgba(ctx context.Context, m image.Image) (*image.NRGBA, error) {
	if n, ok := m.(*image.NRGBA); ok {
		return n, nil
	}
	out := image.NewNRGBA(m.Bounds())
	w := m.Bounds().Dx()
	row := func(y int, dst []byte) {}
	switch m := m.(type) {
	case *image.Gray:
		row = func(y int, dst []byte) {
			for x, v := range m.Pix[y*m.Stride:][:w] {
				d := dst[4*x:][:4]
				d[0], d[1], d[2], d[3] = v, v, v, 255
			}
		}
	case *image.Gray16:
		row = func(y int, dst []byte) {
			src := m.Pix[y*m.Stride:][:2*w]
			for x := range w {
				v := src[2*x]
				d := dst[4*x:][:4]
				d[0], d[1], d[2], d[3] = v, v, v, 255
			}
		}
	case *image.NRGBA64:
		row = func(y int, dst []byte) {
			src := m.Pix[y*m.Stride:][:8*w]
			for i := range dst {
				dst[i] = src[2*i]
			}
		}
	case *image.Paletted:
		var colours [256][4]byte
		for i, c := range m.Palette[:min(len(m.Palette), 256)] {
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			colours[i] = [4]byte{n.R, n.G, n.B, n.A}
		}
		row = func(y int, dst []byte) {
			for x, i := range m.Pix[y*m.Stride:][:w] {
				*(*[4]byte)(dst[4*x:]) = colours[i]
			}
		}
	case *image.YCbCr:
		row = func(y int, dst []byte) {
			for x := range w {
				c := m.COffset(x, y)
				d := dst[4*x:][:4]
				d[0], d[1], d[2] = color.YCbCrToRGB(m.Y[y*m.YStride+x], m.Cb[c], m.Cr[c])
				d[3] = 255
			}
		}
	}
	err := byRows(ctx, m.Bounds().Dy(), func(from, to int) {
		for y := from; y < to; y++ {
			row(y, out.Pix[y*out.Stride:][:4*w])
		}
	})
	return out, err
}

// to420 returns the luminance and chrominance of a plain image, the latter at
// half the resolution. Alpha is not looked at.
func to420(ctx context.Context, m image.Image) (*image.YCbCr, error) {
	src, ok := m.(*image.YCbCr)
	if ok && src.SubsampleRatio == image.YCbCrSubsampleRatio420 {
		return src, nil
	}
	b := m.Bounds()
	w, h := b.Dx(), b.Dy()
	out := image.NewYCbCr(b, image.YCbCrSubsampleRatio420)
	if ok {
		return out, byRows(ctx, h, func(from, to int) {
			for y := from; y < to; y++ {
				copy(out.Y[y*out.YStride:][:w], src.Y[y*src.YStride:][:w])
			}
			for y := from; y < to; y += 2 {
				for x := 0; x < w; x += 2 {
					x1, y1 := min(x+1, w-1), min(y+1, h-1)
					p, q, r, s := src.COffset(x, y), src.COffset(x1, y), src.COffset(x, y1), src.COffset(x1, y1)
					at := y/2*out.CStride + x/2
					out.Cb[at] = average(src.Cb[p], src.Cb[q], src.Cb[r], src.Cb[s])
					out.Cr[at] = average(src.Cr[p], src.Cr[q], src.Cr[r], src.Cr[s])
				}
			}
		})
	}
	rgb, err := nrgba(ctx, m)
	if err != nil {
		return nil, err
	}
	return out, byRows(ctx, h, func(from, to int) {
		for y := from; y < to; y += 2 {
			y1 := min(y+1, h-1)
			for x := 0; x < w; x += 2 {
				x1 := min(x+1, w-1)
				var cb, cr [4]byte
				for i, p := range [4]image.Point{{x, y}, {x1, y}, {x, y1}, {x1, y1}} {
					c := rgb.Pix[p.Y*rgb.Stride+4*p.X:][:3]
					out.Y[p.Y*out.YStride+p.X], cb[i], cr[i] = color.RGBToYCbCr(c[0], c[1], c[2])
				}
				at := y/2*out.CStride + x/2
				out.Cb[at] = average(cb[0], cb[1], cb[2], cb[3])
				out.Cr[at] = average(cr[0], cr[1], cr[2], cr[3])
			}
		}
	})
}

func average(a, b, c, d byte) byte { return byte((int(a) + int(b) + int(c) + int(d) + 2) / 4) }

// turn applies an Exif orientation to a plain image.
func turn(m image.Image, orientation int) image.Image {
	if orientation < 2 || orientation > 8 {
		return m
	}
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	r := image.Rect(0, 0, w, h)
	if orientation > 4 {
		r = image.Rect(0, 0, h, w)
	}
	switch m := m.(type) {
	case *image.Gray:
		out := image.NewGray(r)
		turnPixels(out.Pix, m.Pix, out.Stride, m.Stride, w, h, 1, orientation)
		return out
	case *image.Gray16:
		out := image.NewGray16(r)
		turnPixels(out.Pix, m.Pix, out.Stride, m.Stride, w, h, 2, orientation)
		return out
	case *image.Paletted:
		out := image.NewPaletted(r, m.Palette)
		turnPixels(out.Pix, m.Pix, out.Stride, m.Stride, w, h, 1, orientation)
		return out
	case *image.NRGBA:
		out := image.NewNRGBA(r)
		turnPixels(out.Pix, m.Pix, out.Stride, m.Stride, w, h, 4, orientation)
		return out
	case *image.NRGBA64:
		out := image.NewNRGBA64(r)
		turnPixels(out.Pix, m.Pix, out.Stride, m.Stride, w, h, 8, orientation)
		return out
	case *image.YCbCr:
		ratio := m.SubsampleRatio
		cw, ch := chromaSize(m)
		if cw == 0 || cw < w && w%2 == 1 || ch < h && h%2 == 1 { // pairs would be parted
			full := image.NewYCbCr(m.Rect, image.YCbCrSubsampleRatio444)
			for y := range h {
				copy(full.Y[y*full.YStride:], m.Y[y*m.YStride:][:w])
				for x := range w {
					c := m.COffset(x, y)
					full.Cb[y*full.CStride+x], full.Cr[y*full.CStride+x] = m.Cb[c], m.Cr[c]
				}
			}
			m, ratio, cw, ch = full, full.SubsampleRatio, w, h
		}
		if orientation > 4 {
			switch ratio {
			case image.YCbCrSubsampleRatio422:
				ratio = image.YCbCrSubsampleRatio440
			case image.YCbCrSubsampleRatio440:
				ratio = image.YCbCrSubsampleRatio422
			}
		}
		out := image.NewYCbCr(r, ratio)
		turnPixels(out.Y, m.Y, out.YStride, m.YStride, w, h, 1, orientation)
		turnPixels(out.Cb, m.Cb, out.CStride, m.CStride, cw, ch, 1, orientation)
		turnPixels(out.Cr, m.Cr, out.CStride, m.CStride, cw, ch, 1, orientation)
		return out
	}
	return m
}

// chromaSize returns the size of the chrominance planes, 0 where the ratio is
// unusual.
func chromaSize(m *image.YCbCr) (w, h int) {
	w, h = m.Rect.Dx(), m.Rect.Dy()
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio444:
		return w, h
	case image.YCbCrSubsampleRatio420:
		return (w + 1) / 2, (h + 1) / 2
	case image.YCbCrSubsampleRatio422:
		return (w + 1) / 2, h
	case image.YCbCrSubsampleRatio440:
		return w, (h + 1) / 2
	}
	return 0, 0
}

// turnPixels turns w x h pixels of size bytes.
func turnPixels(dst, src []byte, dstStride, stride, w, h, size, orientation int) {
	right, below := size, stride // the way in src of a step to the right and down in dst
	from := 0
	switch orientation {
	case 2:
		from, right = (w-1)*size, -size
	case 3:
		from, right, below = (h-1)*stride+(w-1)*size, -size, -stride
	case 4:
		from, below = (h-1)*stride, -stride
	case 5:
		right, below = stride, size
	case 6:
		from, right, below = (h-1)*stride, -stride, size
	case 7:
		from, right, below = (h-1)*stride+(w-1)*size, -stride, -size
	case 8:
		from, right, below = (w-1)*size, stride, -size
	}
	if orientation > 4 {
		w, h = h, w
	}
	const tile = 32 // keeps what a transposition reads in the cache
	for y0 := 0; y0 < h; y0 += tile {
		for x0 := 0; x0 < w; x0 += tile {
			for y := y0; y < min(y0+tile, h); y++ {
				at, d := from+y*below+x0*right, y*dstStride+x0*size
				for range min(tile, w-x0) {
					if size == 1 {
						dst[d] = src[at]
					} else {
						copy(dst[d:d+size], src[at:at+size])
					}
					at += right
					d += size
				}
			}
		}
	}
}

// onCanvas places a frame that is smaller than its image.
func onCanvas(m image.Image, width, height int) image.Image {
	canvas := image.Rect(0, 0, width, height)
	if m.Bounds() == canvas {
		return m
	}
	out := image.NewNRGBA(canvas)
	at := m.Bounds()
	draw.Draw(out, at, plain(m), image.Point{}, draw.Src)
	return out
}

// profileOf returns the profile where it is for images of that colour space: a
// conversion leaves behind what does not describe its result.
func profileOf(profile []byte, space string) []byte {
	if len(profile) < 128 || string(profile[16:20]) != space {
		return nil
	}
	return profile
}
