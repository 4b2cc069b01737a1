package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/disintegration/imaging"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// exif is an Exif block of one entry.
func exif(orientation int) []byte {
	return []byte{'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, byte(orientation), 0, 0, 0, 0, 0, 0}
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
	f, err := fit(t, with, "", Limits{MaxSide: 100})
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
		f, err := fit(t, data, mime, Limits{MaxSide: 40, MaxBytes: 1 << 20})
		if mime == "image/tiff" {
			if err != nil || f.MIME != "image/png" && f.MIME != "image/jpeg" || !strings.Contains(f.Note, "pages") {
				t.Errorf("%s: %s, %q, %v", mime, f.MIME, f.Note, err)
			}
		} else if err != nil || !bytes.Equal(f.Data, data) || f.MIME != mime || f.Note != "" || f.Width != 40 || f.Height != 30 {
			t.Errorf("%s that fits: %s, %q, %v", mime, f.MIME, f.Note, err)
		}
		f, err = fit(t, data, mime, Limits{MaxSide: 20})
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

func TestContentDecides(t *testing.T) {
	data := encoded(t, func(b *bytes.Buffer) error {
		return (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(b, photo(30, 20, false))
	})
	out, why, err := compress(t, data, "image/jpeg", 75)
	if err != nil || why != "" || !bytes.HasPrefix(out, []byte(pngSignature)) {
		t.Errorf("%q, %v", why, err)
	}
	f, err := fit(t, data, "image/jpeg", Limits{})
	if err != nil || f.MIME != "image/png" {
		t.Errorf("%s, %v", f.MIME, err)
	}
	for _, c := range []struct{ data, mime string }{
		{"<svg/>", "image/svg+xml"}, {"", "image/png"}, {"\x00\x00\x00\x1cftypavif", "image/avif"}, {"hello", ""}, {"BM", "image/bmp"},
	} {
		_, _, err := compress(t, []byte(c.data), c.mime, 75)
		_, err2 := fit(t, []byte(c.data), c.mime, Limits{})
		_, _, err3 := dimensions([]byte(c.data))
		for _, err := range []error{err, err2, err3} {
			if code, message := fault.Of(err); code != fault.UnsupportedImage || !strings.Contains(message, "JPEG") {
				t.Errorf("%s: %v", c.mime, err)
			}
		}
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

func TestFrameBesideTheCorner(t *testing.T) {
	small := image.NewPaletted(image.Rect(10, 5, 20, 15), palette.Plan9)
	for i := range small.Pix {
		small.Pix[i] = 100
	}
	data := encoded(t, func(b *bytes.Buffer) error {
		return gif.EncodeAll(b, &gif.GIF{Image: []*image.Paletted{small}, Delay: []int{0}, Config: image.Config{Width: 40, Height: 20}})
	})
	f, err := fit(t, data, "", Limits{MaxSide: 39})
	if err != nil || f.Width != 39 || f.MIME != "image/png" {
		t.Fatalf("%s, %d, %v", f.MIME, f.Width, err)
	}
	m := decoded(t, f.Data)
	near(t, m.At(1, 1), color.NRGBA{})
	near(t, m.At(14, 9), palette.Plan9[100])
}
