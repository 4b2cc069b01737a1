package picture

import (
	"bytes"
	"image"
	"runtime"
	"strings"
	"testing"

	"github.com/disintegration/imaging"
)

func withSegment(data []byte, marker byte, body []byte) []byte {
	out := append([]byte{0xff, 0xd8, 0xff, marker}, byte((len(body)+2)>>8), byte(len(body)+2))
	return append(append(out, body...), data[2:]...)
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
	f, err := fit(t, withSegment(data, 0xe2, append([]byte(iccPrefix+"\x01\x01"), profile...)), "", Limits{MaxSide: 32})
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
	if want := decoded(t, stdJPEG(t, m, 75)).(*image.Gray); !bytes.Equal(want.Pix, decoded(t, data).(*image.Gray).Pix) {
		t.Error("the parts do not make the whole")
	}
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
			f, err := fit(t, data, "image/jpeg", Limits{})
			if err != nil || f.Width != w || f.Height != ht || f.OriginalWidth != w || f.OriginalHeight != ht || bytes.Equal(f.Data, data) != (o == 1) {
				t.Errorf("orientation %d: %d x %d of %d x %d, %v", o, f.Width, f.Height, f.OriginalWidth, f.OriginalHeight, err)
			}
			f, err = fit(t, data, "image/jpeg", Limits{MaxSide: 20})
			if err != nil || f.Width != min(20, (20*w+30)/ht) && f.Width != 14 || psnr(t, imaging.Resize(want, f.Width, f.Height, imaging.Lanczos), decoded(t, f.Data)) < 28 {
				t.Errorf("fitted, orientation %d: %d x %d, %v", o, f.Width, f.Height, err)
			}
		}
	}
}
