package picture

import (
	"image"
	"image/color"
	"image/draw"
	"slices"

	"github.com/disintegration/imaging"
)

// plain returns m as a type that this package and imaging work with: not
// premultiplied, and with a palette that has a colour for every pixel.
func plain(m image.Image) image.Image {
	switch p := m.(type) {
	case *image.Paletted:
		beyond := int(slices.Max(p.Pix)) + 1 - len(p.Palette)
		if beyond <= 0 {
			return p
		}
		padded := *p
		padded.Palette = slices.Concat(p.Palette, slices.Repeat(color.Palette{color.NRGBA{}}, beyond))
		return &padded
	case *image.RGBA:
		if p.Opaque() {
			return &image.NRGBA{Pix: p.Pix, Stride: p.Stride, Rect: p.Rect}
		}
		return imaging.Clone(p)
	case *image.RGBA64:
		if p.Opaque() {
			return &image.NRGBA64{Pix: p.Pix, Stride: p.Stride, Rect: p.Rect}
		}
		out := image.NewNRGBA64(p.Rect)
		draw.Draw(out, p.Rect, p, p.Rect.Min, draw.Src)
		return out
	}
	return m
}

// nrgba returns a plain image with 8 bits a sample.
func nrgba(m image.Image) *image.NRGBA {
	if n, ok := m.(*image.NRGBA); ok {
		return n
	}
	return imaging.Clone(m)
}

func isGray(m image.Image) bool {
	switch m.(type) {
	case *image.Gray, *image.Gray16:
		return true
	}
	return false
}

// grayOf returns an image of which all pixels are gray and opaque as such.
func grayOf(n *image.NRGBA) *image.Gray {
	out := image.NewGray(n.Rect)
	w := n.Rect.Dx()
	for y := range n.Rect.Dy() {
		src, dst := n.Pix[y*n.Stride:][:4*w], out.Pix[y*out.Stride:][:w]
		for x := range dst {
			dst[x] = src[4*x]
		}
	}
	return out
}

func opaque(m image.Image) bool {
	if o, ok := m.(interface{ Opaque() bool }); ok {
		return o.Opaque()
	}
	return true
}

// resize makes a plain image smaller, with 8 bits a sample; a gray one stays
// gray.
func resize(m image.Image, width, height int) image.Image {
	if s := m.Bounds().Size(); width == s.X && height == s.Y {
		return m
	}
	small := imaging.Resize(m, width, height, imaging.Lanczos)
	if isGray(m) {
		return grayOf(small)
	}
	return small
}

// worthHalving reports whether most of the way down to a size can be gone by
// averaging, which takes no memory: a quarter and more must remain for the
// better filter.
func worthHalving(m image.Image, width, height int) bool {
	switch m.(type) {
	case *image.Gray, *image.YCbCr:
		s := m.Bounds().Size()
		return s.X/2 >= width+width/4 && s.Y/2 >= height+height/4
	}
	return false
}

// halve averages two by two pixels of a Gray or YCbCr, in place.
func halve(m image.Image) {
	s := m.Bounds().Size()
	half := image.Rect(0, 0, (s.X+1)/2, (s.Y+1)/2)
	switch m := m.(type) {
	case *image.Gray:
		halvePlane(m.Pix, m.Stride, s.X, s.Y)
		m.Rect = half
	case *image.YCbCr:
		halvePlane(m.Y, m.YStride, s.X, s.Y)
		w, h := m.COffset(s.X-1, 0)+1, m.COffset(0, s.Y-1)/m.CStride+1
		halvePlane(m.Cb, m.CStride, w, h)
		halvePlane(m.Cr, m.CStride, w, h)
		m.Rect = half
	}
}

func halvePlane(pix []byte, stride, w, h int) {
	for y := range (h + 1) / 2 {
		upper, lower := pix[2*y*stride:], pix[min(2*y+1, h-1)*stride:]
		row := pix[y*stride:][:(w+1)/2]
		for x := range row {
			right := min(2*x+1, w-1)
			row[x] = byte((int(upper[2*x]) + int(upper[right]) + int(lower[2*x]) + int(lower[right]) + 2) / 4)
		}
	}
}

// turn applies an Exif orientation to a plain image, with 8 bits a sample; a
// gray one stays gray.
func turn(m image.Image, orientation int) image.Image {
	f, ok := map[int]func(image.Image) *image.NRGBA{
		2: imaging.FlipH, 3: imaging.Rotate180, 4: imaging.FlipV, 5: imaging.Transpose,
		6: imaging.Rotate270, 7: imaging.Transverse, 8: imaging.Rotate90,
	}[orientation]
	if !ok {
		return m
	}
	turned := f(m)
	if isGray(m) {
		return grayOf(turned)
	}
	return turned
}
