package picture

import (
	"bytes"
	"image"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disintegration/imaging"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

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
		f, err := fit(t, c.data, "", c.l)
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
	_, err := fit(t, stdJPEG(t, src, 90), "", Limits{MaxBytes: 10})
	if code, message := fault.Of(err); code != fault.ImageProcessing || !strings.Contains(message, "10 bytes") {
		t.Errorf("%v", err)
	}
}

func TestFitKeepsToTheLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range longtest.Count(40, 150) {
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
		f, err := fit(t, data, "", l)
		if err != nil {
			t.Fatalf("%v %+v: %v", src.Rect, l, err)
		}
		s := decoded(t, f.Data).Bounds().Size()
		if s.X != f.Width || s.Y != f.Height || !l.allow(s.X, s.Y, len(f.Data)) || f.OriginalWidth != src.Rect.Dx() || f.OriginalHeight != src.Rect.Dy() {
			t.Errorf("%v %+v: %v, %d bytes, said to be %d x %d", src.Rect, l, s, len(f.Data), f.Width, f.Height)
		}
	}
}

func TestHalve(t *testing.T) {
	for _, name := range []string{"420.jpg", "422.jpg", "440.jpg", "444.jpg", "411.jpg", "gray"} {
		data := stdJPEG(t, grayed(photo(61, 43, false)), 98)
		if name != "gray" {
			data = file(t, name)
		}
		m := decoded(t, data)
		want := imaging.Resize(imaging.Clone(m), 31, 22, imaging.Box)
		halve(m)
		if p := psnr(t, want, m); p < 33 {
			t.Errorf("%s: %.1f dB", name, p)
		}
	}
	if m := photo(300, 200, false); worthHalving(m, 3, 2) || worthHalving(grayed(m), 130, 90) || !worthHalving(grayed(m), 100, 70) {
		t.Error("halved where another way is better, or not where it is worth it")
	}
}
