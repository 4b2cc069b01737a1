package picture

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/disintegration/imaging"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
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

func grayOf(m image.Image) *image.Gray {
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

// sampledJPEG writes a JPEG of the given sampling factors; of four components
// it is CMYK.
func sampledJPEG(t testing.TB, w, h, quality int, factors ...[2]int) []byte {
	t.Helper()
	out := &jpegWriter{width: w, height: h, quant: quantTables(quality), adobe: -1}
	if len(factors) == 4 {
		out.adobe = 0
	}
	m := image.NewYCbCr(image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio444)
	src := photo(w, h, false)
	for y := range h {
		for x := range w {
			i := y*w + x
			m.Y[i], m.Cb[i], m.Cr[i] = color.RGBToYCbCr(src.Pix[4*i], src.Pix[4*i+1], src.Pix[4*i+2])
		}
	}
	hm, vm := 1, 1
	for i, f := range factors {
		hm, vm = max(hm, f[0]), max(vm, f[1])
		c := jpegComp{id: byte(i + 1), h: f[0], v: f[1]}
		if i > 0 && len(factors) == 3 {
			c.tq = 1
		}
		out.comps = append(out.comps, c)
	}
	tok := newTokens()
	for y := range (h + 8*vm - 1) / (8 * vm) {
		for x := range (w + 8*hm - 1) / (8 * hm) {
			for i, c := range out.comps {
				pix := [][]byte{m.Y, m.Cb, m.Cr, m.Y}[i]
				for v := range c.v {
					for u := range c.h {
						var b [64]float32
						for j := range 64 { // nearest samples suffice here
							px := min(((x*c.h+u)*8+j%8)*hm/c.h, w-1)
							py := min(((y*c.v+v)*8+j/8)*vm/c.v, h-1)
							b[j] = float32(pix[py*w+px]) - 128
						}
						forwardDCT(&b)
						var inverse [64]float32
						for k, at := range zigzag {
							inverse[k] = 1 / (float32(out.quant[c.tq][k]) * dctScale[at/8] * dctScale[at%8] * 8)
						}
						tok.quantized(&b, &inverse, i, uint32(c.tq)*2)
					}
				}
			}
		}
	}
	out.bands = []*tokens{tok}
	data, err := out.bytes(t.Context(), math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	return data
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

func compressed(t testing.TB, data []byte, quality int) []byte {
	t.Helper()
	out, why, err := Compress(t.Context(), data, "", quality)
	if err != nil || why != "" || out == nil {
		t.Fatalf("%d bytes, %q, %v", len(out), why, err)
	}
	if len(out) >= len(data) {
		t.Fatalf("%d bytes from %d", len(out), len(data))
	}
	return out
}

// exif is an Exif block of one entry.
func exif(orientation int) []byte {
	return []byte{'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, byte(orientation), 0, 0, 0, 0, 0, 0}
}

func withSegment(data []byte, marker byte, body []byte) []byte {
	out := append([]byte{0xff, 0xd8, 0xff, marker}, byte((len(body)+2)>>8), byte(len(body)+2))
	return append(append(out, body...), data[2:]...)
}

func pngChunk(name string, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, name...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// withChunk inserts a chunk behind the IHDR of a PNG.
func withChunk(data []byte, name string, body []byte) []byte {
	out := append(bytes.Clone(data[:33]), pngChunk(name, body)...)
	return append(out, data[33:]...)
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

func TestJPEGOfEverySampling(t *testing.T) {
	for _, f := range [][][2]int{
		{{1, 1}},
		{{2, 2}, {1, 1}, {1, 1}},
		{{2, 1}, {1, 1}, {1, 1}},
		{{1, 2}, {1, 1}, {1, 1}},
		{{1, 1}, {1, 1}, {1, 1}},
		{{4, 1}, {1, 1}, {1, 1}},
		{{2, 2}, {2, 1}, {2, 1}},
	} {
		for _, s := range [][2]int{{160, 128}, {151, 117}, {33, 47}, {9, 200}} {
			data := sampledJPEG(t, s[0], s[1], 97, f...)
			out := compressed(t, data, 75)
			src, got := decoded(t, data), decoded(t, out)
			want := decoded(t, stdJPEG(t, src, 75))
			a, b := psnr(t, src, got), psnr(t, src, want)
			if a < b-0.2 || a < 28 {
				t.Errorf("%v at %v: %.2f dB, the standard encoder %.2f", f, s, a, b)
			}
			if g, ok := got.(*image.Gray); ok != (len(f) == 1) {
				t.Errorf("%v became %T", f, g)
			}
			if y, ok := got.(*image.YCbCr); ok && f[0] != [2]int{4, 1} && f[1] == [2]int{1, 1} && y.SubsampleRatio != image.YCbCrSubsampleRatio420 {
				t.Errorf("%v became %v", f, y.SubsampleRatio)
			}
		}
	}
}

func TestCMYKStaysCMYK(t *testing.T) {
	data := sampledJPEG(t, 90, 70, 97, [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1})
	profile := make([]byte, 200)
	copy(profile[16:], "CMYK")
	data = withSegment(data, 0xe2, append([]byte(iccPrefix+"\x01\x01"), profile...))
	out := compressed(t, data, 60)
	got := decoded(t, out)
	if _, ok := got.(*image.CMYK); !ok {
		t.Errorf("became %T", got)
	}
	if p := psnr(t, decoded(t, data), got); p < 28 {
		t.Errorf("%.2f dB", p)
	}
	if h, err := readHeader(out, ""); err != nil || !bytes.Equal(h.profile, profile) {
		t.Errorf("profile lost: %v", err)
	}
	turned := withSegment(data, 0xe1, append([]byte(exifPrefix), exif(6)...))
	if out, why, err := Compress(t.Context(), turned, "", 60); out != nil || err != nil || !strings.Contains(why, "CMYK") {
		t.Errorf("%d bytes, %q, %v", len(out), why, err)
	}
	// For a vision model it is converted.
	f, err := Fit(t.Context(), data, "", Limits{MaxSide: 64})
	if err != nil || f.Width != 64 || f.MIME != "image/jpeg" {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, ok := decoded(t, f.Data).(*image.YCbCr); !ok {
		t.Error("fitted, it is still CMYK")
	}
}

func TestJPEGOfOtherKinds(t *testing.T) {
	for name, text := range map[string]string{"progressive": progressiveJPEG, "restart": restartJPEG, "rgb": rgbJPEG} {
		data := sampleFile(t, text)
		src := decoded(t, data)
		got := decoded(t, compressed(t, data, 75))
		if a, b := psnr(t, src, got), psnr(t, src, decoded(t, stdJPEG(t, src, 75))); a < b-0.5 {
			t.Errorf("%s: %.2f dB, the standard encoder %.2f", name, a, b)
		}
	}
}

// The encoder from pixels and the standard one are given the same samples.
func TestEncodeJPEGAgainstTheStandardEncoder(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {7, 3}, {16, 16}, {17, 31}, {200, 143}} {
		src := photo(s[0], s[1], false)
		for _, m := range []image.Image{src, grayOf(src), decoded(t, stdJPEG(t, src, 99)), paletted(src), deep(src)} {
			for _, quality := range []int{1, 30, 75, 100} {
				data, err := encodeJPEG(t.Context(), plain(m), quality, nil)
				if err != nil {
					t.Fatal(err)
				}
				std := stdJPEG(t, m, quality)
				a, b := psnr(t, m, decoded(t, data)), psnr(t, m, decoded(t, std))
				if a < b-0.35 && (s[0] > 8 || a < 40) { // a few pixels say little
					t.Errorf("%T %v quality %d: %.2f dB, the standard encoder %.2f", m, s, quality, a, b)
				}
				if s[0] > 100 && len(data) > len(std)*101/100 {
					t.Errorf("%T %v quality %d: %d bytes, the standard encoder %d", m, s, quality, len(data), len(std))
				}
			}
		}
	}
}

func TestQualityIsHonoured(t *testing.T) {
	data := stdJPEG(t, photo(300, 200, false), 98)
	last := 0
	for _, q := range []int{10, 40, 75, 90} {
		if n := len(compressed(t, data, q)); n <= last {
			t.Errorf("quality %d: %d bytes, no more than below it", q, n)
		} else {
			last = n
		}
	}
	if out, why, err := Compress(t.Context(), stdJPEG(t, photo(300, 200, false), 30), "image/jpeg", 90); out != nil || why != "" || err != nil {
		t.Errorf("a result that is not smaller: %d bytes, %q, %v", len(out), why, err)
	}
}

func TestPNGOfEveryKind(t *testing.T) {
	src := photo(67, 45, false)
	flat := image.NewNRGBA(image.Rect(0, 0, 50, 40))
	for i := range flat.Pix {
		flat.Pix[i] = byte(i % 4 * 60)
	}
	two := image.NewNRGBA(image.Rect(0, 0, 41, 40))
	for i := range two.Pix {
		two.Pix[i] = 255
	}
	copy(two.Pix, []byte{9, 8, 7, 0})
	half := image.NewPaletted(image.Rect(0, 0, 33, 30), color.Palette{color.NRGBA{1, 2, 3, 40}, color.White, color.Black})
	for i := range half.Pix {
		half.Pix[i] = byte(i / 7 % 3)
	}
	for name, m := range map[string]image.Image{
		"rgb": src, "rgba": photo(67, 45, true), "gray": grayOf(src), "deep rgba": deep(photo(67, 45, true)), "deep rgb": deep(src),
		"palette": paletted(src), "translucent palette": half, "one colour": flat, "two colours": two, "one pixel": photo(1, 1, true),
		"a transparent pixel": image.NewNRGBA(image.Rect(0, 0, 1, 1)), "tall": photo(3, 500, false), "large": photo(301, 517, true),
		// Columns of noise, in which each row is like the one above.
		"columns": func() image.Image {
			g := image.NewGray(image.Rect(0, 0, 50, 3000))
			for i := range g.Pix {
				g.Pix[i] = byte((i%50)*(i%50)*7919>>3) + byte(i/50%7)
			}
			return g
		}(),
		"gray16": func() image.Image {
			g := image.NewGray16(src.Rect)
			for i := range g.Pix {
				g.Pix[i] = byte(i * i)
			}
			return g
		}(),
	} {
		data := encoded(t, func(b *bytes.Buffer) error { return (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(b, m) })
		out, err := repackPNG(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		same(t, m, decoded(t, out))
		again, err := encodePNG(t.Context(), plain(m), nil, bestDeflate)
		if err != nil {
			t.Fatal(err)
		}
		same(t, m, decoded(t, again))
		h, _ := readRaster(t.Context(), out)
		if want := map[string][2]int{"rgb": {2, 8}, "rgba": {6, 8}, "gray": {0, 8}, "deep rgba": {6, 16}, "deep rgb": {2, 16}, "gray16": {0, 16},
			"palette": {3, 8}, "two colours": {3, 1}}[name]; want != [2]int{} && want != [2]int{h.colour, h.depth} {
			t.Errorf("%s: colour type and depth %v, want %v", name, [2]int{h.colour, h.depth}, want)
		}
	}
}

// An opaque gray image that is stored as RGBA is gray, one of few colours gets a
// palette, and interlaced, gray with alpha and transparent colours stay.
func TestPNGReductions(t *testing.T) {
	rgba := func(m image.Image) *raster {
		r := &raster{width: m.Bounds().Dx(), height: m.Bounds().Dy(), depth: 8, colour: pngRGBA}
		r.pix = make([]byte, r.layout())
		n, err := nrgba(t.Context(), plain(m))
		if err != nil {
			t.Fatal(err)
		}
		for y := range r.height {
			copy(r.pix[y*(1+4*r.width)+1:], n.Pix[y*n.Stride:][:4*r.width])
		}
		return r
	}
	for _, c := range []struct {
		m             image.Image
		colour, depth int
	}{
		{grayOf(photo(60, 60, false)), pngGray, 8},
		{photo(60, 60, false), pngRGB, 8},
		{photo(60, 60, true), pngRGBA, 8},
		{paletted(photo(60, 60, false)), pngPalette, 8},
	} {
		r := rgba(c.m)
		data, err := r.encode(t.Context(), bestDeflate)
		if err != nil {
			t.Fatal(err)
		}
		r, err = readRaster(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		if r.colour != pngRGBA {
			t.Fatalf("the source has colour type %d", r.colour)
		}
		if r.reduce(); r.colour != c.colour || r.depth != c.depth {
			t.Errorf("%T: colour type %d at %d bits, want %d at %d", c.m, r.colour, r.depth, c.colour, c.depth)
		}
		out, err := r.encode(t.Context(), bestDeflate)
		if err != nil {
			t.Fatal(err)
		}
		same(t, c.m, decoded(t, out))
	}

	for _, r := range []*raster{
		{width: 29, height: 31, depth: 8, colour: pngRGB, interlaced: true},
		{width: 29, height: 31, depth: 1, colour: pngGray, interlaced: true},
		{width: 1, height: 3, depth: 8, colour: pngGray, interlaced: true},
		{width: 29, height: 31, depth: 8, colour: pngGrayAlpha},
		{width: 29, height: 31, depth: 16, colour: pngGrayAlpha},
		{width: 29, height: 31, depth: 2, colour: pngGray, trns: []byte{0, 1}},
		{width: 29, height: 31, depth: 8, colour: pngRGB, trns: []byte{0, 1, 0, 2, 0, 3}},
		{width: 29, height: 31, depth: 4, colour: pngPalette, palette: make([]byte, 48)},
	} {
		r.pix = make([]byte, r.layout())
		at := 0
		for _, p := range r.passes {
			for range p.rows {
				for i := range p.bytes {
					r.pix[at+1+i] = byte(i / 3 * 7)
				}
				at += 1 + p.bytes
			}
		}
		was := *r
		data, err := r.encode(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		out, err := repackPNG(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		same(t, decoded(t, data), decoded(t, out))
		if got, err := readRaster(t.Context(), out); err != nil || got.colour != was.colour || got.depth != was.depth || got.interlaced != was.interlaced {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestOtherFormats(t *testing.T) {
	src := photo(61, 43, false)
	few := image.NewPaletted(image.Rect(0, 0, 61, 43), palette.WebSafe)
	for i := range few.Pix {
		few.Pix[i] = byte(i / 61 / 10)
	}
	for name, m := range map[string]image.Image{
		"rgb": src, "rgba": photo(61, 43, true), "gray": grayOf(src), "palette": few, "deep": deep(photo(61, 43, true)),
		"gray16": &image.Gray16{Pix: make([]byte, 2*61*43), Stride: 2 * 61, Rect: image.Rect(0, 0, 61, 43)},
	} {
		data := stdTIFF(t, m)
		out := compressed(t, data, 75)
		same(t, decoded(t, data), decoded(t, out))
		if _, err := tiff.Decode(bytes.NewReader(out)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	data := stdGIF(t, few)
	if out, why, err := Compress(t.Context(), data, "", 75); out != nil || why != "" || err != nil {
		t.Errorf("a GIF that cannot be smaller: %d, %q, %v", len(out), why, err)
	}
	padded := append(bytes.Clone(data[:len(data)-1]), 0x21, 0xfe, 100)
	padded = append(append(padded, make([]byte, 100)...), 0, 0x3b)
	same(t, few, decoded(t, compressed(t, padded, 75)))

	// A BMP of four bytes a pixel, of which nothing is transparent.
	wide := stdBMP(t, src)[:54]
	binary.LittleEndian.PutUint16(wide[28:], 32)
	for y := 42; y >= 0; y-- {
		for x := range 61 {
			c := src.NRGBAAt(x, y)
			wide = append(wide, c.B, c.G, c.R, 255)
		}
	}
	same(t, src, decoded(t, compressed(t, wide, 75)))
	// One with a transparent pixel, and one with a colour profile, which would be lost.
	v5 := append(make([]byte, 138), wide[54:]...)
	copy(v5, wide[:54])
	v5[10], v5[14] = 138, 124
	copy(v5[70:], "BGRs")
	same(t, src, decoded(t, compressed(t, v5, 75)))
	for _, change := range []func(b []byte){func(b []byte) { b[141] = 100 }, func(b []byte) { copy(b[70:], "DEBM") }} {
		b := bytes.Clone(v5)
		change(b)
		if out, why, err := Compress(t.Context(), b, "", 75); out != nil || !strings.Contains(why, "BMP") || err != nil {
			t.Errorf("%d, %q, %v", len(out), why, err)
		}
	}
	if out, why, err := Compress(t.Context(), stdBMP(t, src), "", 75); out != nil || why != "" || err != nil {
		t.Errorf("a BMP that cannot be smaller: %d, %q, %v", len(out), why, err)
	}
}

func TestOrientation(t *testing.T) {
	for _, s := range [][2]int{{48, 32}, {33, 17}, {1, 5}, {70, 40}} {
		src := photo(s[0], s[1], true)
		upright := func(o int) image.Image {
			switch o {
			case 2:
				return imaging.FlipH(src)
			case 3:
				return imaging.Rotate180(src)
			case 4:
				return imaging.FlipV(src)
			case 5:
				return imaging.Transpose(src)
			case 6:
				return imaging.Rotate270(src)
			case 7:
				return imaging.Transverse(src)
			case 8:
				return imaging.Rotate90(src)
			}
			return src
		}
		for o := 1; o <= 8; o++ {
			want := upright(o)
			same(t, want, turn(src, o))
			flat, err := nrgba(t.Context(), turn(deep(src), o))
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, flat)
			same(t, grayOf(want), turn(grayOf(src), o))
			same(t, paletted(want), turn(paletted(src), o))

			// A JPEG, of every sampling, keeps its pixels and loses the tag.
			for _, f := range [][][2]int{{{1, 1}}, {{1, 1}, {1, 1}, {1, 1}}, {{2, 1}, {1, 1}, {1, 1}}, {{1, 2}, {1, 1}, {1, 1}}, {{2, 2}, {1, 1}, {1, 1}}} {
				data := withSegment(sampledJPEG(t, s[0], s[1], 98, f...), 0xe1, append([]byte(exifPrefix), exif(o)...))
				raw := decoded(t, data)
				flat, err := nrgba(t.Context(), plain(raw))
				if err != nil {
					t.Fatal(err)
				}
				turned, err := nrgba(t.Context(), turn(plain(raw), o))
				if err != nil {
					t.Fatal(err)
				}
				same(t, turn(flat, o), turned)
				out := compressed(t, data, 90)
				if p := psnr(t, turn(flat, o), decoded(t, out)); p < 28 {
					t.Errorf("%v orientation %d at %v: %.1f dB", f, o, s, p)
				}
				h, err := readHeader(out, "")
				if err != nil || h.orientation != 1 {
					t.Errorf("the result has orientation %d, %v", h.orientation, err)
				}
				w, ht, err := dimensions(data)
				if b := want.Bounds(); err != nil || w != b.Dx() || ht != b.Dy() {
					t.Errorf("orientation %d: %d x %d, %v", o, w, ht, err)
				}
				f, err := Fit(t.Context(), data, "image/jpeg", Limits{})
				if err != nil || f.Width != w || f.Height != ht || f.OriginalWidth != w || f.OriginalHeight != ht || bytes.Equal(f.Data, data) != (o == 1) {
					t.Errorf("orientation %d: %d x %d of %d x %d, %v", o, f.Width, f.Height, f.OriginalWidth, f.OriginalHeight, err)
				}
			}
			data := withChunk(encoded(t, func(b *bytes.Buffer) error {
				return (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(b, src)
			}), "eXIf", exif(o))
			if s[0] > 1 {
				same(t, want, decoded(t, compressed(t, data, 75)))
			}
		}
	}
}

func TestTIFFOrientation(t *testing.T) {
	src := grayOf(photo(40, 30, false))
	tags := [][3]uint32{{256, 3, 40}, {257, 3, 30}, {258, 3, 8}, {259, 3, 1}, {262, 3, 1}, {273, 4, 8}, {274, 3, 8}, {277, 3, 1}, {278, 3, 30}, {279, 4, 1200}}
	data := append([]byte("II*\x00\xb8\x04\x00\x00"), src.Pix...)
	data = binary.LittleEndian.AppendUint16(data, uint16(len(tags)))
	for _, e := range tags {
		data = binary.LittleEndian.AppendUint16(data, uint16(e[0]))
		data = binary.LittleEndian.AppendUint16(data, uint16(e[1]))
		data = binary.LittleEndian.AppendUint32(data, 1)
		data = binary.LittleEndian.AppendUint32(data, e[2])
	}
	data = append(data, 0, 0, 0, 0)
	same(t, grayOf(imaging.Rotate90(src)), decoded(t, compressed(t, data, 75)))
	if w, h, err := dimensions(data); w != 30 || h != 40 || err != nil {
		t.Errorf("%d x %d, %v", w, h, err)
	}
}

func TestProfileIsKept(t *testing.T) {
	profile := make([]byte, 150_000) // more than one segment of a JPEG
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range profile {
		profile[i] = byte(rng.IntN(20))
	}
	copy(profile[16:], "RGB ")
	check := func(name string, data []byte) {
		t.Helper()
		h, err := readHeader(data, "")
		if err != nil || !bytes.Equal(h.profile, profile) {
			t.Errorf("%s: a profile of %d bytes, %v", name, len(h.profile), err)
		}
		decoded(t, data)
	}
	src := photo(300, 300, false)
	w := &jpegWriter{profile: profile, adobe: -1}
	head := w.head()
	segments := head[20 : len(head)-10] // between JFIF and the frame
	big := stdJPEG(t, src, 100)
	with := append(append(bytes.Clone(big[:2]), segments...), big[2:]...)
	with = withSegment(with, 0xfe, []byte("a comment"))
	check("JPEG source", with)
	out := compressed(t, with, 50)
	check("JPEG", out)
	if bytes.Contains(out, []byte("a comment")) {
		t.Error("the comment was kept")
	}
	check("turned JPEG", compressed(t, withSegment(with, 0xe1, append([]byte(exifPrefix), exif(6)...)), 50))
	f, err := Fit(t.Context(), with, "", Limits{MaxSide: 100})
	if err != nil {
		t.Fatal(err)
	}
	check("fitted JPEG", f.Data)

	pngData, err := encodePNG(t.Context(), plain(src), profile, 0)
	if err != nil {
		t.Fatal(err)
	}
	check("PNG", compressed(t, pngData, 75))
	check("turned PNG", compressed(t, withChunk(pngData, "eXIf", exif(3)), 75))

	tiffData, err := encodeTIFF(t.Context(), src, profile)
	if err != nil {
		t.Fatal(err)
	}
	check("TIFF", tiffData)
	check("TIFF again", compressed(t, append(tiffData, make([]byte, 1000)...), 75))

	lossy := sampleFile(t, lossyWebP)
	tagged := withProfile(lossy, profile, 24, 18, false)
	h, err := readHeader(tagged, "")
	if err != nil || !bytes.Equal(h.profile, profile) || h.width != 24 || h.height != 18 {
		t.Errorf("WebP: %d bytes, %v", len(h.profile), err)
	}
	if _, err := webp.Decode(bytes.NewReader(tagged)); err != nil {
		t.Errorf("WebP with a profile: %v", err)
	}

	// One for another colour space is dropped with the space.
	copy(profile[16:], "CMYK")
	out = compressed(t, append(append(bytes.Clone(big[:2]), segments...), big[2:]...), 50)
	if h, err := readHeader(out, ""); err != nil || h.profile == nil {
		t.Errorf("%v", err)
	}
	if profileOf(profile, "RGB ") != nil || profileOf(profile[:100], "CMYK") != nil {
		t.Error("a profile that does not belong there was kept")
	}
}

// animations returns files of more than one frame or page.
func animations(t testing.TB) map[string][]byte {
	a, b := paletted(photo(40, 30, false)), paletted(photo(40, 30, false))
	g := encoded(t, func(w *bytes.Buffer) error {
		return gif.EncodeAll(w, &gif.GIF{Image: []*image.Paletted{a, b}, Delay: []int{5, 5}})
	})
	pages := stdTIFF(t, photo(40, 30, false))
	at := binary.LittleEndian.Uint32(pages[4:])
	n := binary.LittleEndian.Uint16(pages[at:])
	binary.LittleEndian.PutUint32(pages[at+2+12*uint32(n):], at)
	var still []byte
	for name, body := range webpChunks(sampleFile(t, lossyWebP)[12:]) {
		still = append(still, webpChunk(name, body)...)
	}
	frame := append([]byte{3, 0, 0, 3, 0, 0, 23, 0, 0, 17, 0, 0, 50, 0, 0, 0}, still...)
	w := riff(vp8x(2, 40, 30), webpChunk("ANIM", make([]byte, 6)), webpChunk("ANMF", frame), webpChunk("ANMF", frame))
	return map[string][]byte{
		"image/gif":  g,
		"image/png":  withChunk(stdPNG(t, photo(40, 30, false)), "acTL", []byte{0, 0, 0, 2, 0, 0, 0, 0}),
		"image/webp": w,
		"image/tiff": pages,
	}
}

func TestAnimationsAreKept(t *testing.T) {
	for mime, data := range animations(t) {
		if out, why, err := Compress(t.Context(), data, mime, 75); out != nil || why == "" || err != nil {
			t.Errorf("%s: %d bytes, %q, %v", mime, len(out), why, err)
		}
		f, err := Fit(t.Context(), data, mime, Limits{MaxSide: 40, MaxBytes: 1 << 20})
		if mime == "image/tiff" {
			if err != nil || f.MIME != "image/png" && f.MIME != "image/jpeg" || !strings.Contains(f.Note, "pages") {
				t.Errorf("%s: %s, %q, %v", mime, f.MIME, f.Note, err)
			}
		} else if err != nil || !bytes.Equal(f.Data, data) || f.MIME != mime || f.Note != "" || f.Width != 40 || f.Height != 30 {
			t.Errorf("%s that fits: %s, %q, %v", mime, f.MIME, f.Note, err)
		}
		f, err = Fit(t.Context(), data, mime, Limits{MaxSide: 20})
		if err != nil || f.Width != 20 || f.Height != 15 || !strings.Contains(f.Note, "first") || !strings.Contains(f.Note, "base64") {
			t.Errorf("%s that does not fit: %d x %d, %q, %v", mime, f.Width, f.Height, f.Note, err)
		}
		if s := decoded(t, f.Data).Bounds().Size(); err == nil && (s.X != 20 || s.Y != 15) {
			t.Errorf("%s: %v", mime, s)
		}
	}
	m, err := firstWebPFrame(t.Context(), animations(t)["image/webp"], 40, 30)
	if err != nil {
		t.Fatal(err)
	}
	near(t, m.At(6, 6), color.NRGBA{200, 30, 90, 255})
	near(t, m.At(2, 2), color.NRGBA{})
}

func near(t testing.TB, got, want color.Color) {
	t.Helper()
	g, w := color.NRGBAModel.Convert(got).(color.NRGBA), color.NRGBAModel.Convert(want).(color.NRGBA)
	for _, d := range [4]int{int(g.R) - int(w.R), int(g.G) - int(w.G), int(g.B) - int(w.B), int(g.A) - int(w.A)} {
		if d < -8 || d > 8 {
			t.Fatalf("%v, want about %v", g, w)
		}
	}
}

func TestWebPColours(t *testing.T) {
	for _, text := range []string{lossyWebP, alphaWebP, losslessWebP} {
		h, err := readHeader(sampleFile(t, text), "image/jpeg")
		if err != nil {
			t.Fatal(err)
		}
		if w, ht := h.upright(); w != 24 || ht != 18 || h.lossless != (text == losslessWebP) || h.frames != 1 {
			t.Errorf("%+v", h)
		}
		m, err := h.decodeUpright(t.Context(), sampleFile(t, text))
		if err != nil {
			t.Fatal(err)
		}
		near(t, m.At(0, 0), color.NRGBA{200, 30, 90, 255})
		if text == lossyWebP {
			near(t, m.At(20, 17), color.NRGBA{200, 110, 141, 255})
		} else {
			near(t, m.At(20, 17), color.NRGBA{200, 110, 141, 120})
		}
	}
}

func TestCompressWebP(t *testing.T) {
	if !canWriteWebP {
		out, why, err := Compress(t.Context(), sampleFile(t, lossyWebP), "", 75)
		if out != nil || why == "" || err != nil {
			t.Errorf("%d, %q, %v", len(out), why, err)
		}
		return
	}
	if out, why, err := Compress(t.Context(), sampleFile(t, losslessWebP), "", 75); out != nil || why == "" || err != nil {
		t.Errorf("lossless: %d, %q, %v", len(out), why, err)
	}
	for _, alpha := range []bool{false, true} {
		src := photo(200, 150, alpha)
		profile := make([]byte, 200)
		copy(profile[16:], "RGB ")
		data, err := encodeWebP(t.Context(), src, 98, profile)
		if err != nil {
			t.Fatal(err)
		}
		out := compressed(t, data, 60)
		h, err := readHeader(out, "")
		if err != nil || !bytes.Equal(h.profile, profile) {
			t.Fatalf("%v", err)
		}
		m, err := h.decodeUpright(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		if p := psnr(t, src, m); p < 28 {
			t.Errorf("alpha %v: %.1f dB", alpha, p)
		}
	}
}

// liars returns small files that claim to be of 30,000 x 30,000 pixels, or, where
// the format holds no more, of as many as it does.
func liars() map[string][]byte {
	ihdr := []byte{0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30, 8, 6, 0, 0, 0}
	p := append([]byte(pngSignature), pngChunk("IHDR", ihdr)...)
	p = append(append(p, pngChunk("IDAT", []byte{0x78, 0xda})...), pngChunk("IEND", nil)...)
	b := make([]byte, 60)
	copy(b, "BM")
	b[10], b[14], b[26], b[28] = 54, 40, 1, 24
	binary.LittleEndian.PutUint32(b[18:], 30000)
	binary.LittleEndian.PutUint32(b[22:], 30000)
	j := "\xff\xd8\xff\xc0\x00\x11\x08\x75\x30\x75\x30\x03\x01\x22\x00\x02\x11\x00\x03\x11\x00\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00\x00"
	g := "GIF89a\x30\x75\x30\x75\x00\x00\x00,\x00\x00\x00\x00\x30\x75\x30\x75\x00\x02\x02D\x01\x00;"
	tf := []byte("II*\x00\x08\x00\x00\x00\x02\x00\x00\x01\x04\x00\x01\x00\x00\x00\x30\x75\x00\x00\x01\x01\x04\x00\x01\x00\x00\x00\x30\x75\x00\x00\x00\x00\x00\x00")
	return map[string][]byte{
		"image/png": p, "image/bmp": b, "image/jpeg": []byte(j), "image/gif": []byte(g), "image/tiff": tf,
		"image/webp": riff(vp8x(0, 30000, 30000), webpChunk("VP8 ", make([]byte, 10))),
	}
}

func TestLiarsAreNotDecoded(t *testing.T) {
	for mime, data := range liars() {
		if len(data) > 80 {
			t.Errorf("%s: %d bytes", mime, len(data))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, why, err := Compress(t.Context(), data, mime, 75)
		if out != nil || err != nil || !strings.Contains(why, "100 megapixels") {
			t.Errorf("%s: %d bytes, %q, %v", mime, len(out), why, err)
		}
		_, err = Fit(t.Context(), data, mime, Limits{MaxSide: 100})
		if code, _ := fault.Of(err); code != fault.ImageProcessing {
			t.Errorf("%s: %v", mime, err)
		}
		if w, h, err := dimensions(data); w != 30000 || h != 30000 || err != nil {
			t.Errorf("%s: %d x %d, %v", mime, w, h, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", mime, n)
		}
	}
	// As large as is decoded, but with nothing in it.
	p := liars()["image/png"]
	copy(p[16:], []byte{0, 0, 0x27, 0x10, 0, 0, 0x27, 0x10})
	binary.BigEndian.PutUint32(p[29:], crc32.ChecksumIEEE(p[12:29]))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := Compress(t.Context(), p, "", 75)
	runtime.ReadMemStats(&after)
	if code, _ := fault.Of(err); code != fault.ImageProcessing || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%v after %d bytes", err, after.TotalAlloc-before.TotalAlloc)
	}
}

func TestNoPixels(t *testing.T) {
	for mime, data := range liars() {
		for _, z := range []string{"\x75\x30", "\x30\x75"} {
			data = bytes.ReplaceAll(data, []byte(z), []byte{0, 0})
		}
		if mime == "image/webp" {
			data = riff(webpChunk("VP8 ", make([]byte, 10)))
		}
		_, _, err := Compress(t.Context(), data, mime, 75)
		if code, _ := fault.Of(err); code != fault.ImageProcessing {
			t.Errorf("%s: %v", mime, err)
		}
	}
}

func TestContentDecides(t *testing.T) {
	data := encoded(t, func(b *bytes.Buffer) error {
		return (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(b, photo(30, 20, false))
	})
	out, why, err := Compress(t.Context(), data, "image/jpeg", 75)
	if err != nil || why != "" || !bytes.HasPrefix(out, []byte(pngSignature)) {
		t.Errorf("%q, %v", why, err)
	}
	f, err := Fit(t.Context(), data, "image/jpeg", Limits{})
	if err != nil || f.MIME != "image/png" {
		t.Errorf("%s, %v", f.MIME, err)
	}
	for _, c := range []struct{ data, mime string }{
		{"<svg/>", "image/svg+xml"}, {"", "image/png"}, {"\x00\x00\x00\x1cftypavif", "image/avif"}, {"hello", ""}, {"BM", "image/bmp"},
	} {
		_, _, err := Compress(t.Context(), []byte(c.data), c.mime, 75)
		_, err2 := Fit(t.Context(), []byte(c.data), c.mime, Limits{})
		_, _, err3 := dimensions([]byte(c.data))
		for _, err := range []error{err, err2, err3} {
			if code, message := fault.Of(err); code != fault.UnsupportedImage || !strings.Contains(message, "JPEG") {
				t.Errorf("%s: %v", c.mime, err)
			}
		}
	}
}

func TestIndexBeyondThePalette(t *testing.T) {
	m := image.NewPaletted(image.Rect(0, 0, 3, 1), color.Palette{color.White, color.Black})
	m.Pix[1], m.Pix[2] = 1, 200
	got := plain(m)
	n, ok := got.(*image.NRGBA)
	if !ok || n.NRGBAAt(0, 0) != (color.NRGBA{255, 255, 255, 255}) || n.NRGBAAt(1, 0) != (color.NRGBA{0, 0, 0, 255}) || n.NRGBAAt(2, 0) != (color.NRGBA{}) {
		t.Errorf("%T %v", got, got)
	}
	// In a PNG, whose samples are only packed anew, and in a TIFF.
	r := &raster{width: 40, height: 40, depth: 8, colour: pngPalette, palette: []byte{1, 2, 3}}
	r.pix = make([]byte, r.layout())
	r.pix[5] = 77
	data, err := r.encode(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	same(t, decoded(t, data), decoded(t, compressed(t, data, 75)))
	if _, err := Fit(t.Context(), data, "", Limits{MaxSide: 10}); err != nil {
		t.Error(err)
	}
}

func TestPlainTakesEveryType(t *testing.T) {
	src := photo(20, 10, true)
	for _, m := range []image.Image{
		image.NewRGBA(src.Rect), image.NewRGBA64(src.Rect), image.NewCMYK(src.Rect), image.NewAlpha(src.Rect),
		image.NewNYCbCrA(src.Rect, image.YCbCrSubsampleRatio420), image.NewUniform(color.White),
		photo(40, 30, true).SubImage(image.Rect(5, 6, 25, 16)),
	} {
		if u, ok := m.(*image.Uniform); ok {
			m = &sized{u, src.Rect}
		}
		if d, ok := m.(interface{ Set(x, y int, c color.Color) }); ok {
			d.Set(3, 4, color.NRGBA{200, 100, 50, 128})
		}
		p := plain(m)
		if p.Bounds() != src.Rect {
			t.Errorf("%T: %v", m, p.Bounds())
		}
		if d := psnr(t, m, p); d < 45 {
			t.Errorf("%T: %.1f dB", m, d)
		}
	}
}

// sized is an image of a type that is not known.
type sized struct {
	image.Image
	r image.Rectangle
}

func (s *sized) Bounds() image.Rectangle { return s.r }

// corpus returns a file of each kind that is read.
func corpus(t testing.TB) map[string][]byte {
	src := photo(40, 30, false)
	files := map[string][]byte{
		"jpeg": stdJPEG(t, src, 95), "gray.jpeg": stdJPEG(t, grayOf(src), 95), "444.jpeg": sampledJPEG(t, 40, 30, 95, [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1}),
		"progressive.jpeg": sampleFile(t, progressiveJPEG), "restart.jpeg": sampleFile(t, restartJPEG), "rgb.jpeg": sampleFile(t, rgbJPEG),
		"turned.jpeg": withSegment(stdJPEG(t, src, 95), 0xe1, append([]byte(exifPrefix), exif(6)...)),
		"png":         stdPNG(t, src), "alpha.png": stdPNG(t, photo(40, 30, true)), "palette.png": stdPNG(t, paletted(src)), "deep.png": stdPNG(t, deep(src)),
		"gif": stdGIF(t, src), "tiff": stdTIFF(t, src), "palette.tiff": stdTIFF(t, paletted(src)), "bmp": stdBMP(t, src), "palette.bmp": stdBMP(t, paletted(src)),
		"webp": sampleFile(t, lossyWebP), "alpha.webp": sampleFile(t, alphaWebP), "lossless.webp": sampleFile(t, losslessWebP),
	}
	for mime, data := range animations(t) {
		files["several "+mime] = data
	}
	return files
}

// attempt calls everything with a file that may be damaged; only errors with a
// code of this package are allowed.
func attempt(t testing.TB, data []byte) {
	t.Helper()
	_, _, err := Compress(t.Context(), data, "", 75)
	f, err2 := Fit(t.Context(), data, "", Limits{MaxSide: 16, MaxBytes: 3000})
	_, _, err3 := dimensions(data)
	for _, err := range []error{err, err2, err3} {
		if err == nil {
			continue
		}
		if code, message := fault.Of(err); code != fault.ImageProcessing && code != fault.UnsupportedImage || strings.Contains(message, "goroutine") {
			t.Errorf("%s: %s", code, message)
		}
		if cause := errors.Unwrap(err); cause != nil && strings.Contains(cause.Error(), "internal/picture") {
			t.Errorf("a panic of this package: %v", cause)
		}
	}
	if err2 == nil && (len(f.Data) > 3000 || max(f.Width, f.Height) > 16) {
		t.Errorf("%d bytes, %d x %d", len(f.Data), f.Width, f.Height)
	}
}

func TestDamage(t *testing.T) {
	attempt(t, []byte("\xff\xd8\xff\xc0\x00\x02"))
	for name, data := range corpus(t) {
		step := max(len(data)/60, 1)
		for n := 0; n < len(data); n += step {
			cut := data[:n:n]
			attempt(t, cut)
			if out, _, err := Compress(t.Context(), cut, "", 5); n < len(data)/2 && err == nil && out != nil {
				t.Errorf("%s cut to %d of %d bytes was compressed", name, n, len(data))
			}
			bent := bytes.Clone(data)
			bent[n] ^= 0x55
			attempt(t, bent)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, data := range corpus(t) {
		if _, _, err := Compress(ctx, data, "", 75); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Fit(ctx, data, "", Limits{MaxSide: 9}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]func() error{
		"requantize": func() error { _, err := requantize(ctx, corpus(t)["jpeg"], 75); return err },
		"halfJPEG":   func() error { _, err := halfJPEG(ctx, corpus(t)["jpeg"]); return err },
		"repackPNG":  func() error { _, err := repackPNG(ctx, corpus(t)["png"]); return err },
		"encodeJPEG": func() error { _, err := encodeJPEG(ctx, photo(9, 9, false), 75, nil); return err },
		"encodePNG":  func() error { _, err := encodePNG(ctx, photo(9, 9, false), nil, 9); return err },
		"encodeTIFF": func() error { _, err := encodeTIFF(ctx, photo(9, 9, false), nil); return err },
	} {
		if err := f(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Beyond the edge chrominance goes on as its mirror image, which is smooth and so
// costs nothing: no odd frequencies.
func TestMissingChrominanceIsMirrored(t *testing.T) {
	var steps [64]uint16
	for i := range steps {
		steps[i] = 1
	}
	m := newMerger(2, 2, [2]*[64]uint16{&steps, &steps}, &quantTable{})
	b := coefBlock{set: 1<<64 - 2}
	for i := range b.coef {
		b.coef[i] = int16(100 + i*i%37)
	}
	var out [64]float32
	m.block(&out, []coefBlock{b}, 0, 0, 0, 1, 1)
	for i, v := range out {
		if (i%2 == 1 || i/8%2 == 1) && math.Abs(float64(v)) > 0.01 {
			t.Errorf("frequency %d, %d: %v", i%8, i/8, v)
		}
	}
	if math.Abs(float64(out[0]-100)) > 0.01 {
		t.Errorf("the mean became %v", out[0])
	}
}

func TestHalfJPEG(t *testing.T) {
	for _, f := range [][][2]int{{{1, 1}}, {{2, 2}, {1, 1}, {1, 1}}, {{2, 1}, {1, 1}, {1, 1}}, {{1, 2}, {1, 1}, {1, 1}}, {{1, 1}, {1, 1}, {1, 1}}} {
		for _, s := range [][2]int{{64, 48}, {61, 45}, {16, 16}} {
			data := sampledJPEG(t, s[0], s[1], 95, f...)
			got, err := halfJPEG(t.Context(), data)
			if err != nil {
				t.Fatal(err)
			}
			want, err := halve(t.Context(), plain(decoded(t, data)))
			if err != nil {
				t.Fatal(err)
			}
			if p := psnr(t, want, got); p < 44 {
				t.Errorf("%v at %v: %.1f dB", f, s, p)
			}
		}
	}
	for _, text := range []string{progressiveJPEG, rgbJPEG} {
		if _, err := halfJPEG(t.Context(), sampleFile(t, text)); err != errNotSequential {
			t.Errorf("%v", err)
		}
	}
}

func TestHalve(t *testing.T) {
	for _, s := range [][2]int{{40, 30}, {41, 31}, {1, 1}, {2, 1}} {
		src := photo(s[0], s[1], true)
		got, err := halve(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		n := got.(*image.NRGBA)
		if n.Rect.Dx() != (s[0]+1)/2 || n.Rect.Dy() != (s[1]+1)/2 {
			t.Errorf("%v became %v", s, n.Rect)
		}
	}
	// Transparent pixels have no colour to give.
	m := image.NewNRGBA(image.Rect(0, 0, 2, 2))
	copy(m.Pix, []byte{10, 20, 30, 200, 250, 250, 250, 0, 250, 250, 250, 0, 30, 40, 50, 200})
	got, err := halve(t.Context(), m)
	if c := got.(*image.NRGBA).NRGBAAt(0, 0); err != nil || c != (color.NRGBA{20, 30, 40, 100}) {
		t.Errorf("%v, %v", c, err)
	}
}

func TestFit(t *testing.T) {
	src := photo(200, 150, false)
	lines := image.NewNRGBA(image.Rect(0, 0, 200, 150))
	for i := range lines.Pix {
		lines.Pix[i] = 255
		if i/800%10 == 0 && i%4 != 3 {
			lines.Pix[i] = 0
		}
	}
	for _, c := range []struct {
		name string
		data []byte
		l    Limits
		mime string
		same bool
	}{
		{"JPEG that fits", stdJPEG(t, src, 90), Limits{200, 1 << 20}, "image/jpeg", true},
		{"JPEG without limits", stdJPEG(t, src, 90), Limits{}, "image/jpeg", true},
		{"large JPEG", stdJPEG(t, src, 90), Limits{100, 1 << 20}, "image/jpeg", false},
		{"long JPEG", stdJPEG(t, src, 99), Limits{200, 8000}, "image/jpeg", false},
		{"gray JPEG", stdJPEG(t, grayOf(src), 99), Limits{90, 0}, "image/jpeg", false},
		{"progressive JPEG", sampleFile(t, progressiveJPEG), Limits{10, 0}, "image/jpeg", false},
		{"WebP that fits", sampleFile(t, lossyWebP), Limits{24, 0}, "image/webp", true},
		{"lossy WebP", sampleFile(t, lossyWebP), Limits{20, 0}, "image/jpeg", false},
		{"WebP with alpha", sampleFile(t, alphaWebP), Limits{20, 0}, "image/png", false},
		{"PNG with alpha", stdPNG(t, photo(200, 150, true)), Limits{100, 0}, "image/png", false},
		{"PNG with alpha, long", stdPNG(t, photo(200, 150, true)), Limits{0, 5000}, "image/png", false},
		{"PNG of a photograph", stdPNG(t, src), Limits{100, 0}, "image/jpeg", false},
		{"PNG of few colours", stdPNG(t, lines), Limits{100, 0}, "image/png", false},
		{"deep PNG", stdPNG(t, deep(src)), Limits{100, 0}, "image/jpeg", false},
		{"palette PNG", stdPNG(t, paletted(src)), Limits{100, 0}, "image/png", false},
		{"GIF that fits", stdGIF(t, src), Limits{200, 0}, "image/gif", true},
		{"GIF", stdGIF(t, src), Limits{100, 0}, "image/png", false},
		{"TIFF of a photograph", stdTIFF(t, src), Limits{}, "image/jpeg", false},
		{"BMP of few colours", stdBMP(t, lines), Limits{}, "image/png", false},
	} {
		f, err := Fit(t.Context(), c.data, "", c.l)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if f.MIME != c.mime || bytes.Equal(f.Data, c.data) != c.same || f.Note != "" {
			t.Errorf("%s: %s, %q, as it was: %v", c.name, f.MIME, f.Note, bytes.Equal(f.Data, c.data))
		}
		var m image.Image
		if f.MIME == "image/webp" {
			continue
		}
		if m = decoded(t, f.Data); m.Bounds().Dx() != f.Width || m.Bounds().Dy() != f.Height || !c.l.allow(f.Width, f.Height, len(f.Data)) {
			t.Errorf("%s: %d x %d, %d bytes: %v", c.name, f.Width, f.Height, len(f.Data), m.Bounds())
		}
		if strings.HasPrefix(c.name, "gray") {
			if _, ok := m.(*image.Gray); !ok {
				t.Errorf("%s became %T", c.name, m)
			}
		}
		// What is smaller still looks the same.
		if !c.same {
			h, err := readHeader(c.data, "")
			if err != nil {
				t.Fatal(err)
			}
			whole, err := h.decodeUpright(t.Context(), c.data)
			if err != nil {
				t.Fatal(err)
			}
			n, err := nrgba(t.Context(), whole)
			if err != nil {
				t.Fatal(err)
			}
			if p := psnr(t, imaging.Resize(n, f.Width, f.Height, imaging.Lanczos), m); p < 20 {
				t.Errorf("%s: %.1f dB", c.name, p)
			}
		}
	}
	_, err := Fit(t.Context(), stdJPEG(t, src, 90), "", Limits{MaxBytes: 10})
	if code, message := fault.Of(err); code != fault.ImageProcessing || !strings.Contains(message, "10 bytes") {
		t.Errorf("%v", err)
	}
}

func TestFitKeepsToTheLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 150 {
		src := photo(1+rng.IntN(160), 1+rng.IntN(160), rng.IntN(2) == 0)
		data := stdPNG(t, src)
		switch rng.IntN(4) {
		case 0:
			data = stdJPEG(t, src, 95)
		case 1:
			data = stdTIFF(t, src)
		case 2:
			data = stdGIF(t, src)
		}
		l := Limits{MaxSide: 1 + rng.IntN(200), MaxBytes: int64(1500 + rng.IntN(20000))}
		f, err := Fit(t.Context(), data, "", l)
		if err != nil {
			t.Fatalf("%v %+v: %v", src.Rect, l, err)
		}
		s := decoded(t, f.Data).Bounds().Size()
		if s.X != f.Width || s.Y != f.Height || !l.allow(s.X, s.Y, len(f.Data)) || f.OriginalWidth != src.Rect.Dx() || f.OriginalHeight != src.Rect.Dy() {
			t.Errorf("%v %+v: %v, %d bytes, said to be %d x %d", src.Rect, l, s, len(f.Data), f.Width, f.Height)
		}
	}
}

func TestFrameBesideTheCorner(t *testing.T) {
	small := image.NewPaletted(image.Rect(10, 5, 20, 15), palette.Plan9)
	for i := range small.Pix {
		small.Pix[i] = 100
	}
	data := encoded(t, func(b *bytes.Buffer) error {
		return gif.EncodeAll(b, &gif.GIF{Image: []*image.Paletted{small}, Delay: []int{0}, Config: image.Config{Width: 40, Height: 20}})
	})
	f, err := Fit(t.Context(), data, "", Limits{MaxSide: 39})
	if err != nil || f.Width != 39 || f.MIME != "image/png" {
		t.Fatalf("%s, %d, %v", f.MIME, f.Width, err)
	}
	m := decoded(t, f.Data)
	near(t, m.At(1, 1), color.NRGBA{})
	near(t, m.At(14, 9), palette.Plan9[100])
}

func TestJoinAdler(t *testing.T) {
	data := bytes.Repeat([]byte("some bytes \xff"), 100_000)
	for _, n := range []int{1, stripSize, stripSize + 1, len(data)} {
		parts, err := newDeflater(bestDeflate).stream(t.Context(), data[:n])
		if err != nil {
			t.Fatal(err)
		}
		z, err := zlib.NewReader(bytes.NewReader(bytes.Join(parts, nil)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(got, data[:n]) {
			t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
		}
	}
}

// A code with symbols of very different frequency has no code over 16 bits, nor
// the one of ones.
func TestHuffmanCodeIsLimited(t *testing.T) {
	for _, n := range []int{1, 2, 3, 40, 162, 256} {
		var count [256]int
		a, b := 1, 1
		for i := range n {
			count[i] = a
			if a < 1<<50 {
				a, b = b, a+b // Fibonacci's numbers give the deepest trees
			}
		}
		lengths, symbols := huffmanCode(&count)
		if len(symbols) != n {
			t.Fatalf("%d symbols of %d", len(symbols), n)
		}
		used, total := 0, 0
		for i, c := range lengths {
			used += int(c) << (15 - i)
			total += int(c)
		}
		if total != n || used >= 1<<16 {
			t.Errorf("%d symbols: %d codes that take %d of 65536", n, total, used)
		}
		if _, err := newHuffman(lengths, symbols); err != nil {
			t.Error(err)
		}
	}
}

func FuzzPicture(f *testing.F) {
	for _, data := range corpus(f) {
		f.Add(data)
	}
	for _, data := range liars() {
		f.Add(data)
	}
	f.Add([]byte("\xff\xd8\xff\xc0\x00\x02")) // a frame of nothing
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := readHeader(data, ""); err == nil && h.width*h.height > 1<<20 && !h.tooLarge() {
			return // would only be slow
		}
		attempt(t, data)
	})
}

func benchCompress(b *testing.B, data []byte) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		out, _, err := Compress(b.Context(), data, "", 75)
		if err != nil {
			b.Fatal(err)
		}
		n = len(out)
	}
	b.ReportMetric(float64(n), "bytes")
}

func BenchmarkCompress(b *testing.B) {
	src := photo(4000, 3000, false)
	b.Run("jpeg420", func(b *testing.B) { benchCompress(b, stdJPEG(b, src, 95)) })
	b.Run("jpeg444", func(b *testing.B) {
		benchCompress(b, sampledJPEG(b, 4000, 3000, 95, [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1}))
	})
	b.Run("jpegturned", func(b *testing.B) {
		benchCompress(b, withSegment(stdJPEG(b, src, 95), 0xe1, append([]byte(exifPrefix), exif(6)...)))
	})
	b.Run("png", func(b *testing.B) { benchCompress(b, stdPNG(b, src)) })
	b.Run("graphic", func(b *testing.B) {
		m := image.NewNRGBA(image.Rect(0, 0, 4000, 3000))
		for i := range m.Pix {
			m.Pix[i] = byte(i / 16000 / 40)
			if i%4 == 3 || i/4%4000/50%7 == 0 {
				m.Pix[i] = 255
			}
		}
		benchCompress(b, stdPNG(b, m))
	})
}

func BenchmarkFit(b *testing.B) {
	src := photo(4000, 3000, false)
	for name, data := range map[string][]byte{"jpeg": stdJPEG(b, src, 95), "png": stdPNG(b, src)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Fit(b.Context(), data, "", Limits{MaxSide: 1568, MaxBytes: 5 << 20}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// dimensions returns the width and height at which an image is shown, from its
// header alone: data may end where the pixels begin. An orientation recorded
// there has been applied.
func dimensions(data []byte) (width, height int, err error) {
	err = safely(context.Background(), func() error {
		h, err := readHeader(data, "")
		if err != nil {
			return err
		}
		width, height = h.upright()
		return nil
	})
	return width, height, err
}
