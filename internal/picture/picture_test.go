package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// photo is a soft scene with noise; alpha makes its right half translucent.
func photo(w, h int, alpha bool) *image.NRGBA {
	rng := rand.New(rand.NewPCG(1, 2))
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			fx, fy := float64(x)/40, float64(y)/30
			v := func(phase float64) byte {
				return byte(min(max(128+60*math.Sin(fx+phase)+50*math.Cos(fy*1.3+phase)+rng.NormFloat64()*4, 0), 255))
			}
			a := byte(255)
			if alpha && x >= w/2 {
				a = 100
			}
			m.SetNRGBA(x, y, color.NRGBA{v(0), v(1), v(2), a})
		}
	}
	return m
}

func grayed(m image.Image) *image.Gray {
	out := image.NewGray(m.Bounds())
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			out.Set(x, y, m.At(x, y))
		}
	}
	return out
}

func deep(m *image.NRGBA) *image.NRGBA64 {
	out := image.NewNRGBA64(m.Rect)
	for i, v := range m.Pix {
		out.Pix[2*i], out.Pix[2*i+1] = v, byte(i)
	}
	for i := 6; i < len(out.Pix); i += 8 { // opaque stays opaque
		out.Pix[i+1] = out.Pix[i]
	}
	return out
}

func paletted(m image.Image) *image.Paletted {
	out := image.NewPaletted(m.Bounds(), palette.Plan9)
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			out.Set(x, y, m.At(x, y))
		}
	}
	return out
}

func encoded(t testing.TB, encode func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func stdPNG(t testing.TB, m image.Image) []byte {
	return encoded(t, func(b *bytes.Buffer) error {
		return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(b, m)
	})
}

func stdJPEG(t testing.TB, m image.Image, quality int) []byte {
	return encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, &jpeg.Options{Quality: quality}) })
}

func stdGIF(t testing.TB, m image.Image) []byte {
	return encoded(t, func(b *bytes.Buffer) error { return gif.Encode(b, m, nil) })
}

func stdTIFF(t testing.TB, m image.Image) []byte {
	return encoded(t, func(b *bytes.Buffer) error { return tiff.Encode(b, m, nil) })
}

func stdBMP(t testing.TB, m image.Image) []byte {
	return encoded(t, func(b *bytes.Buffer) error { return bmp.Encode(b, m) })
}

func decoded(t testing.TB, data []byte) image.Image {
	t.Helper()
	m, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// psnr compares two images of one size, in decibels.
func psnr(t testing.TB, a, b image.Image) float64 {
	t.Helper()
	if a.Bounds().Size() != b.Bounds().Size() {
		t.Fatalf("%v against %v", a.Bounds(), b.Bounds())
	}
	sum, n := 0., 0.
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			p := color.NRGBAModel.Convert(a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y)).(color.NRGBA)
			q := color.NRGBAModel.Convert(b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y)).(color.NRGBA)
			for _, d := range [4]float64{float64(p.R) - float64(q.R), float64(p.G) - float64(q.G), float64(p.B) - float64(q.B), float64(p.A) - float64(q.A)} {
				sum += d * d
				n++
			}
		}
	}
	if sum == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(255*255*n/sum)
}

// same fails unless two images have the same pixels, to 16 bits.
func same(t testing.TB, a, b image.Image) {
	t.Helper()
	if a.Bounds().Size() != b.Bounds().Size() {
		t.Fatalf("%v against %v", a.Bounds(), b.Bounds())
	}
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			p := color.NRGBA64Model.Convert(a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y))
			q := color.NRGBA64Model.Convert(b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y))
			if p != q {
				t.Fatalf("at %d,%d: %v against %v", x, y, p, q)
			}
		}
	}
}

func compress(t testing.TB, data []byte, mime string, quality int) (out []byte, why string, err error) {
	return Compress(t.Context(), bytes.NewReader(data), int64(len(data)), mime, quality)
}

func fit(t testing.TB, data []byte, mime string, l Limits) (Fitted, error) {
	return Fit(t.Context(), bytes.NewReader(data), int64(len(data)), mime, l)
}

func compressed(t testing.TB, data []byte, quality int) []byte {
	t.Helper()
	out, why, err := compress(t, data, "", quality)
	if err != nil || why != "" || out == nil {
		t.Fatalf("%d bytes, %q, %v", len(out), why, err)
	}
	if len(out) >= len(data) {
		t.Fatalf("%d bytes from %d", len(out), len(data))
	}
	return out
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCompressible(t *testing.T) {
	for mime, want := range map[string]bool{
		"image/jpeg": true, "IMAGE/PNG": true, "image/gif; x=y": true, "image/tiff": true, "image/bmp": true,
		"image/webp": canWriteWebP, "image/avif": false, "image/heic": false, "image/svg+xml": false, "text/plain": false, "": false,
	} {
		if got := Compressible(mime); got != want {
			t.Errorf("%s: %v", mime, got)
		}
	}
}

// dimensions returns the width and height at which an image is shown, from its
// header alone: data may end where the pixels begin. An orientation recorded
// there has been applied.
func dimensions(data []byte) (width, height int, err error) {
	h, err := readHeader(memory(data), "")
	if err != nil {
		return 0, 0, coded(err)
	}
	width, height = h.upright()
	return width, height, nil
}
