package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"reflect"
	"strings"
	"testing"

	"github.com/disintegration/imaging"
)

// withChunk inserts a chunk behind the IHDR of a PNG.
func withChunk(data []byte, name string, body []byte) []byte {
	out := append(bytes.Clone(data[:33]), pngChunk(name, body)...)
	return append(out, data[33:]...)
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
	if _, err := fit(t, data, "", Limits{MaxSide: 10}); err != nil {
		t.Error(err)
	}
}
