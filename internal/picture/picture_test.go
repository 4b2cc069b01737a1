package picture

import (
	"bytes"
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
	"math"
	"math/rand/v2"
	"os"
	"reflect"
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

// exif is an Exif block of one entry.
func exif(orientation int) []byte {
	return []byte{'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, byte(orientation), 0, 0, 0, 0, 0, 0}
}

func withSegment(data []byte, marker byte, body []byte) []byte {
	out := append([]byte{0xff, 0xd8, 0xff, marker}, byte((len(body)+2)>>8), byte(len(body)+2))
	return append(append(out, body...), data[2:]...)
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

func TestJPEGOfEveryKind(t *testing.T) {
	files := map[string][]byte{
		"progressive": sampleFile(t, progressiveJPEG), "restart": sampleFile(t, restartJPEG), "rgb": sampleFile(t, rgbJPEG),
		"gray": stdJPEG(t, grayed(photo(151, 117, false)), 97), "narrow": stdJPEG(t, photo(9, 200, false), 97),
	}
	for _, name := range []string{"420.jpg", "422.jpg", "440.jpg", "444.jpg", "411.jpg"} {
		files[name] = file(t, name)
	}
	for name, data := range files {
		src := decoded(t, data)
		got := decoded(t, compressed(t, data, 75))
		want := decoded(t, stdJPEG(t, src, settled(75)))
		if a, b := psnr(t, src, got), psnr(t, src, want); a < b-0.2 || a < 28 && b > 28 {
			t.Errorf("%s: %.2f dB, the standard encoder %.2f", name, a, b)
		}
		if g, ok := got.(*image.Gray); ok != (name == "gray") {
			t.Errorf("%s became %T", name, g)
		}
	}
}

func TestCMYKIsLeftAsItIs(t *testing.T) {
	data := file(t, "cmyk.jpg")
	if out, why, err := compress(t, data, "", 60); out != nil || err != nil || !strings.Contains(why, "CMYK") {
		t.Errorf("%d bytes, %q, %v", len(out), why, err)
	}
	// For a vision model it is converted, and the profile for CMYK left behind.
	profile := make([]byte, 200)
	copy(profile[16:], "CMYK")
	f, err := Fit(t.Context(), withSegment(data, 0xe2, append([]byte(iccPrefix+"\x01\x01"), profile...)), "", Limits{MaxSide: 32})
	if err != nil || f.Width != 32 || f.MIME != "image/jpeg" {
		t.Fatalf("%+v, %v", f, err)
	}
	got := decoded(t, f.Data)
	if _, ok := got.(*image.YCbCr); !ok {
		t.Errorf("fitted, it is %T", got)
	}
	if p := psnr(t, imaging.Resize(decoded(t, data), f.Width, f.Height, imaging.Lanczos), got); p < 28 {
		t.Errorf("%.1f dB", p)
	}
	if h, err := readHeader(memory(f.Data), ""); err != nil || h.profile != nil {
		t.Errorf("a profile of %d bytes, %v", len(h.profile), err)
	}
}

// The bands that are encoded at the same time give the pixels that one encoding
// gives.
func TestJPEGBandsAreOneImage(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {7, 3}, {16, 16}, {17, 31}, {200, 143}, {30, 700}} {
		src := photo(s[0], s[1], false)
		deepGray := image.NewGray16(src.Rect)
		for _, m := range []image.Image{src, grayed(src), decoded(t, stdJPEG(t, src, 99)), paletted(src), deep(src), deepGray} {
			for _, quality := range []int{1, 75, 100} {
				data, err := encodeJPEG(t.Context(), m, quality, nil, unlimited)
				if err != nil {
					t.Fatal(err)
				}
				want := m
				if _, ok := m.(*image.Gray16); ok {
					want = grayed(m)
				}
				same(t, decoded(t, stdJPEG(t, want, quality)), decoded(t, data))
			}
		}
	}
	// More units than are counted between two restart markers.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m := image.NewGray(image.Rect(0, 0, 2400, 2000))
	for i := range m.Pix {
		m.Pix[i] = byte(i / 2400 / 8)
	}
	data, err := encodeJPEG(t.Context(), m, 75, nil, unlimited)
	if err != nil || !bytes.Contains(data, []byte("\xff\xdd\x00\x04")) {
		t.Fatalf("%d bytes, without an interval, %v", len(data), err)
	}
	same(t, decoded(t, stdJPEG(t, m, 75)), decoded(t, data))
}

// Quality is that of encoders that fit the tables to the image; what they save is
// saved here by a step or two of quality.
func TestSettledQuality(t *testing.T) {
	for quality, want := range map[int]int{1: 1, 50: 44, 75: 70, 90: 88, 100: 100} {
		if got := settled(quality); got != want {
			t.Errorf("%d became %d, want %d", quality, got, want)
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
	if out, why, err := compress(t, stdJPEG(t, photo(300, 200, false), 30), "image/jpeg", 90); out != nil || why != "" || err != nil {
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
		"rgb": src, "rgba": photo(67, 45, true), "gray": grayed(src), "deep rgba": deep(photo(67, 45, true)), "deep rgb": deep(src),
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
		out, err := encodePNG(t.Context(), plain(decoded(t, data)), nil, unlimited)
		if err != nil {
			t.Fatal(err)
		}
		same(t, m, decoded(t, out))
		again, err := encodePNG(t.Context(), plain(m), nil, unlimited)
		if err != nil {
			t.Fatal(err)
		}
		same(t, m, decoded(t, again))
		if want := map[string][2]int{"rgb": {2, 8}, "rgba": {6, 8}, "gray": {0, 8}, "deep rgba": {6, 16}, "deep rgb": {2, 16}, "gray16": {0, 16},
			"palette": {3, 8}, "two colours": {3, 1}}[name]; want != [2]int{} && want != [2]int{int(out[25]), int(out[24])} {
			t.Errorf("%s: colour type and depth %v, want %v", name, [2]int{int(out[25]), int(out[24])}, want)
		}
	}
}

// An opaque gray image that is stored as RGBA is gray, and one of few colours gets
// a palette.
func TestReduce(t *testing.T) {
	transparent := image.NewNRGBA(image.Rect(0, 0, 300, 2)) // begins with transparent black
	for x := range 250 {
		transparent.SetNRGBA(x+50, 1, color.NRGBA{byte(x), 1, 2, 255})
	}
	for name, c := range map[string]struct {
		m    image.Image
		want image.Image
	}{
		"gray":        {grayed(photo(60, 60, false)), new(image.Gray)},
		"colour":      {photo(60, 60, false), new(image.NRGBA)},
		"alpha":       {photo(60, 60, true), new(image.NRGBA)},
		"palette":     {paletted(photo(60, 60, false)), new(image.Paletted)},
		"transparent": {transparent, new(image.Paletted)},
		"nothing":     {image.NewNRGBA(image.Rect(0, 0, 3, 3)), new(image.Paletted)},
	} {
		n := imaging.Clone(c.m)
		got := reduce(n, false)
		if reflect.TypeOf(got) != reflect.TypeOf(c.want) {
			t.Errorf("%s: %T, want %T", name, got, c.want)
		}
		same(t, n, got)
		if isGray(reduce(n, true)) {
			t.Errorf("%s: gray in spite of a profile for colours", name)
		}
	}
}

func TestPNGOfOtherPrograms(t *testing.T) {
	for _, name := range []string{"interlaced.png", "gray-alpha.png"} {
		data := file(t, name)
		out, err := encodePNG(t.Context(), plain(decoded(t, data)), nil, unlimited)
		if err != nil {
			t.Fatal(err)
		}
		same(t, decoded(t, data), decoded(t, out))
	}
	profile := make([]byte, 200)
	copy(profile[16:], "GRAY")
	tagged := withChunk(file(t, "gray-alpha.png"), "iCCP", profileChunks(profile)[0][8:])
	if out, why, err := compress(t, tagged, "", 75); out != nil || !strings.Contains(why, "profile") || err != nil {
		t.Errorf("%d bytes, %q, %v", len(out), why, err)
	}
}

// What says what the colours mean is kept, once each and in front of them.
func TestPNGColourChunksAreKept(t *testing.T) {
	data := encoded(t, func(b *bytes.Buffer) error {
		return (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(b, photo(50, 40, false))
	})
	for _, name := range []string{"gAMA", "cHRM", "tEXt"} {
		data = withChunk(data, name, []byte(name+"somewhat"))
	}
	out := compressed(t, data, 75)
	for name, want := range map[string]int{"gAMA": 1, "cHRM": 1, "tEXt": 0} {
		if n := bytes.Count(out, pngChunk(name, []byte(name+"somewhat"))); n != want || bytes.Index(out, []byte(name)) > bytes.Index(out, []byte("IDAT")) {
			t.Errorf("%s is there %d times, want %d", name, n, want)
		}
	}
	decoded(t, out)
}

func TestOtherFormats(t *testing.T) {
	src := photo(61, 43, false)
	few := image.NewPaletted(image.Rect(0, 0, 61, 43), palette.WebSafe)
	for i := range few.Pix {
		few.Pix[i] = byte(i / 61 / 10)
	}
	for name, m := range map[string]image.Image{
		"rgb": src, "rgba": photo(61, 43, true), "gray": grayed(src), "palette": few, "deep": deep(photo(61, 43, true)),
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
	if out, why, err := compress(t, data, "", 75); out != nil || why != "" || err != nil {
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
		if out, why, err := compress(t, b, "", 75); out != nil || !strings.Contains(why, "BMP") || err != nil {
			t.Errorf("%d, %q, %v", len(out), why, err)
		}
	}
	if out, why, err := compress(t, stdBMP(t, src), "", 75); out != nil || why != "" || err != nil {
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
			same(t, want, nrgba(turn(deep(src), o)))
			same(t, grayed(want), turn(grayed(src), o))
			same(t, paletted(want), turn(paletted(src), o))

			data := withChunk(encoded(t, func(b *bytes.Buffer) error {
				return (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(b, src)
			}), "eXIf", exif(o))
			if s[0] > 1 {
				same(t, want, decoded(t, compressed(t, data, 75)))
			}
			data = withChunk(stdPNG(t, deep(src)), "eXIf", exif(o))
			if out, why, err := compress(t, data, "", 75); out != nil || strings.Contains(why, "16 bits") != (o > 1) || err != nil {
				if o > 1 {
					t.Errorf("deep, orientation %d: %d bytes, %q, %v", o, len(out), why, err)
				}
			}
		}
	}
}

// A JPEG, of every sampling, keeps its pixels and loses the tag.
func TestJPEGOrientation(t *testing.T) {
	for _, name := range []string{"420.jpg", "422.jpg", "440.jpg", "444.jpg", "gray"} {
		plainFile := stdJPEG(t, grayed(photo(61, 43, false)), 98)
		if name != "gray" {
			plainFile = file(t, name)
		}
		for o := 1; o <= 8; o++ {
			data := withSegment(plainFile, 0xe1, append([]byte(exifPrefix), exif(o)...))
			want := turn(decoded(t, data), o)
			out := compressed(t, data, 90)
			if p := psnr(t, want, decoded(t, out)); p < 28 {
				t.Errorf("%s orientation %d: %.1f dB", name, o, p)
			}
			if isGray(decoded(t, out)) != (name == "gray") {
				t.Errorf("%s became %T", name, decoded(t, out))
			}
			h, err := readHeader(memory(out), "")
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
			f, err = Fit(t.Context(), data, "image/jpeg", Limits{MaxSide: 20})
			if err != nil || f.Width != min(20, (20*w+30)/ht) && f.Width != 14 || psnr(t, imaging.Resize(want, f.Width, f.Height, imaging.Lanczos), decoded(t, f.Data)) < 28 {
				t.Errorf("fitted, orientation %d: %d x %d, %v", o, f.Width, f.Height, err)
			}
		}
	}
}

func TestTIFFOrientation(t *testing.T) {
	src := grayed(photo(40, 30, false))
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
	same(t, grayed(imaging.Rotate90(src)), decoded(t, compressed(t, data, 75)))
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
		h, err := readHeader(memory(data), "")
		if err != nil || !bytes.Equal(h.profile, profile) {
			t.Errorf("%s: a profile of %d bytes, %v", name, len(h.profile), err)
		}
		decoded(t, data)
	}
	src := photo(300, 300, false)
	segments := profileSegments(profile)
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

	pngData, err := encodePNG(t.Context(), src, profileChunks(profile), unlimited)
	if err != nil {
		t.Fatal(err)
	}
	check("PNG", pngData)
	check("PNG again", compressed(t, append(pngData, make([]byte, 1000)...), 75))
	check("turned PNG", compressed(t, append(withChunk(pngData, "eXIf", exif(3)), make([]byte, 5000)...), 75))

	tiffData, err := encodeTIFF(t.Context(), src, profile, unlimited)
	if err != nil {
		t.Fatal(err)
	}
	check("TIFF", tiffData)
	check("TIFF again", compressed(t, append(tiffData, make([]byte, 1000)...), 75))

	lossy := sampleFile(t, lossyWebP)
	tagged := withProfile(lossy, profile, 24, 18, false)
	h, err := readHeader(memory(tagged), "")
	if err != nil || !bytes.Equal(h.profile, profile) || h.width != 24 || h.height != 18 {
		t.Errorf("WebP: %d bytes, %v", len(h.profile), err)
	}
	if _, err := webp.Decode(bytes.NewReader(tagged)); err != nil {
		t.Errorf("WebP with a profile: %v", err)
	}

	// One for another colour space is dropped with the space.
	copy(profile[16:], "CMYK")
	out = compressed(t, append(append(bytes.Clone(big[:2]), segments...), big[2:]...), 50)
	if h, err := readHeader(memory(out), ""); err != nil || h.profile == nil {
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
	for name, body := range webpChunks(memory(sampleFile(t, lossyWebP)), riffHeader) {
		still = append(still, webpChunk(name, body.part(0, body.size))...)
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
		if out, why, err := compress(t, data, mime, 75); out != nil || why == "" || err != nil {
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
	m, err := firstWebPFrame(t.Context(), memory(animations(t)["image/webp"]), 40, 30)
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
		h, err := readHeader(memory(sampleFile(t, text)), "image/jpeg")
		if err != nil {
			t.Fatal(err)
		}
		if w, ht := h.upright(); w != 24 || ht != 18 || h.lossless != (text == losslessWebP) || h.frames != 1 {
			t.Errorf("%+v", h)
		}
		m, err := h.decode(t.Context(), memory(sampleFile(t, text)))
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
		out, why, err := compress(t, sampleFile(t, lossyWebP), "", 75)
		if out != nil || why == "" || err != nil {
			t.Errorf("%d, %q, %v", len(out), why, err)
		}
		return
	}
	if out, why, err := compress(t, sampleFile(t, losslessWebP), "", 75); out != nil || why == "" || err != nil {
		t.Errorf("lossless: %d, %q, %v", len(out), why, err)
	}
	for _, alpha := range []bool{false, true} {
		src := photo(200, 150, alpha)
		profile := make([]byte, 200)
		copy(profile[16:], "RGB ")
		data, err := encodeWebP(src, 98, profile)
		if err != nil {
			t.Fatal(err)
		}
		out := compressed(t, data, 60)
		h, err := readHeader(memory(out), "")
		if err != nil || !bytes.Equal(h.profile, profile) {
			t.Fatalf("%v", err)
		}
		m, err := h.decode(t.Context(), memory(out))
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
	j := "\xff\xd8\xff\xc0\x00\x11\x08\x75\x30\x75\x30\x03\x01\x22\x00\x02\x11\x00\x03\x11\x00\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00\x00"
	g := "GIF89a\x30\x75\x30\x75\x00\x00\x00,\x00\x00\x00\x00\x30\x75\x30\x75\x00\x02\x02D\x01\x00;"
	tf := []byte("II*\x00\x08\x00\x00\x00\x04\x00\x00\x01\x04\x00\x01\x00\x00\x00\x30\x75\x00\x00\x01\x01\x04\x00\x01\x00\x00\x00\x30\x75\x00\x00" +
		"\x02\x01\x03\x00\x01\x00\x00\x00\x08\x00\x00\x00\x06\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00")
	return map[string][]byte{
		"image/png": pngOf(30000, 30000), "image/bmp": bmpOf(30000, 30000), "image/jpeg": []byte(j), "image/gif": []byte(g), "image/tiff": tf,
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
		out, why, err := compress(t, data, mime, 75)
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
	_, _, err := compress(t, p, "", 75)
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
		_, _, err := compress(t, data, mime, 75)
		if code, _ := fault.Of(err); code != fault.ImageProcessing {
			t.Errorf("%s: %v", mime, err)
		}
	}
}

func TestContentDecides(t *testing.T) {
	data := encoded(t, func(b *bytes.Buffer) error {
		return (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(b, photo(30, 20, false))
	})
	out, why, err := compress(t, data, "image/jpeg", 75)
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
		_, _, err := compress(t, []byte(c.data), c.mime, 75)
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
	p, ok := plain(m).(*image.Paletted)
	if !ok || len(m.Palette) != 2 {
		t.Fatalf("%T, and the source has %d colours", plain(m), len(m.Palette))
	}
	n := imaging.Clone(p)
	if n.NRGBAAt(0, 0) != (color.NRGBA{255, 255, 255, 255}) || n.NRGBAAt(1, 0) != (color.NRGBA{0, 0, 0, 255}) || n.NRGBAAt(2, 0) != (color.NRGBA{}) {
		t.Errorf("%v", n.Pix)
	}
	// In a PNG: the second byte of its palette chunk's length leaves one colour.
	data := encoded(t, func(b *bytes.Buffer) error {
		return (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(b, paletted(photo(40, 40, false)))
	})
	at := bytes.Index(data, []byte("PLTE"))
	short := append(bytes.Clone(data[:at-4]), pngChunk("PLTE", data[at+4:at+7])...)
	data = append(short, data[at+4+3*256+4:]...)
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
	} {
		if u, ok := m.(*image.Uniform); ok {
			m = &sized{u, src.Rect}
		}
		if d, ok := m.(interface{ Set(x, y int, c color.Color) }); ok {
			d.Set(3, 4, color.NRGBA{200, 100, 50, 128})
		}
		p := nrgba(plain(m))
		if p.Rect != src.Rect {
			t.Errorf("%T: %v", m, p.Rect)
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
		"jpeg": stdJPEG(t, src, 95), "gray.jpeg": stdJPEG(t, grayed(src), 95), "444.jpeg": file(t, "444.jpg"), "cmyk.jpeg": file(t, "cmyk.jpg"), "interlaced.png": file(t, "interlaced.png"),
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
	_, _, err := compress(t, data, "", 75)
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
			if out, _, err := compress(t, cut, "", 5); n < len(data)/2 && err == nil && out != nil {
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
		if _, _, err := Compress(ctx, bytes.NewReader(data), int64(len(data)), "", 75); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Fit(ctx, data, "", Limits{MaxSide: 9}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]func() error{
		"encodeJPEG": func() error { _, err := encodeJPEG(ctx, photo(9, 9, false), 75, nil, unlimited); return err },
		"encodePNG":  func() error { _, err := encodePNG(ctx, photo(9, 9, false), nil, unlimited); return err },
		"encodeTIFF": func() error { _, err := encodeTIFF(ctx, photo(9, 9, false), nil, unlimited); return err },
	} {
		if err := f(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stuck is a file of which the end cannot be read before a channel is closed.
type stuck struct {
	*bytes.Reader
	from    int64
	reached chan<- struct{}
	open    <-chan struct{}
}

func (s *stuck) ReadAt(p []byte, from int64) (int, error) {
	if from >= s.from {
		select {
		case s.reached <- struct{}{}:
		default:
		}
		<-s.open
	}
	return s.Reader.ReadAt(p, from)
}

// Whoever gives up gets the answer at once; the room is not given to the next
// before the work has ended.
func TestCancelledUnderWay(t *testing.T) {
	data := stdJPEG(t, photo(400, 300, false), 100)
	ctx, cancel := context.WithCancel(t.Context())
	reached, open := make(chan struct{}, 1), make(chan struct{})
	go func() {
		<-reached
		cancel()
	}()
	s := &stuck{bytes.NewReader(data), int64(len(data) / 2), reached, open}
	if _, _, err := Compress(ctx, s, int64(len(data)), "", 75); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if working.TryAcquire(pixelsAtATime) {
		t.Error("the room was given away")
	}
	close(open)
	if err := working.Acquire(t.Context(), pixelsAtATime); err != nil {
		t.Fatal(err)
	}
	working.Release(pixelsAtATime)
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
		{"gray JPEG", stdJPEG(t, grayed(src), 99), Limits{90, 0}, "image/jpeg", false},
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
			h, err := readHeader(memory(c.data), "")
			if err != nil {
				t.Fatal(err)
			}
			whole, err := h.decode(t.Context(), memory(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if p := psnr(t, imaging.Resize(whole, f.Width, f.Height, imaging.Lanczos), m); p < 20 {
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

func FuzzPicture(f *testing.F) {
	for _, data := range corpus(f) {
		f.Add(data)
	}
	for _, data := range liars() {
		f.Add(data)
	}
	f.Add([]byte("\xff\xd8\xff\xc0\x00\x02")) // a frame of nothing
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := readHeader(memory(data), ""); err == nil && h.width*h.height > 1<<20 && !h.tooLarge() {
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
		out, _, err := compress(b, data, "", 75)
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
	h, err := readHeader(memory(data), "")
	if err != nil {
		return 0, 0, coded(err)
	}
	width, height = h.upright()
	return width, height, nil
}
