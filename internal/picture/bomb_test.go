package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hugeVP8L returns the VP8L chunk of a small image that says to be of
// 16,383 x 16,383 pixels.
func hugeVP8L(t testing.TB) []byte {
	for name, body := range webpChunks(memory(sampleFile(t, losslessWebP)), riffHeader) {
		if name == "VP8L" {
			body := body.part(0, body.size)
			binary.LittleEndian.PutUint32(body[1:], 16382|16382<<14)
			return webpChunk("VP8L", body)
		}
	}
	t.Fatal("no VP8L chunk")
	return nil
}

// vp8 returns a VP8 chunk with the header of a key frame of that size.
func vp8(width, height int) []byte {
	return webpChunk("VP8 ", []byte{0x10, 2, 0, 0x9d, 1, 0x2a, byte(width), byte(width >> 8), byte(height), byte(height >> 8)})
}

const (
	soi = "\xff\xd8"
	sos = "\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00\x00"
)

// sof is the frame header of a JPEG of three components.
func sof(width, height int) string {
	return string([]byte{0xff, 0xc0, 0, 17, 8, byte(height >> 8), byte(height), byte(width >> 8), byte(width), 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0})
}

func concat(parts ...string) []byte { return []byte(strings.Join(parts, "")) }

// pngOf is a PNG of that size without pixels.
func pngOf(width, height uint32) []byte {
	ihdr := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	p := append([]byte(pngSignature), pngChunk("IHDR", append(ihdr, 8, 6, 0, 0, 0))...)
	return append(append(p, pngChunk("IDAT", []byte{0x78, 0xda})...), pngChunk("IEND", nil)...)
}

// bmpOf is a BMP of that size without pixels.
func bmpOf(width, height int32) []byte {
	b := make([]byte, 60)
	copy(b, "BM")
	b[10], b[14], b[26], b[28] = 54, 40, 1, 24
	binary.LittleEndian.PutUint32(b[18:], uint32(width))
	binary.LittleEndian.PutUint32(b[22:], uint32(height))
	return b
}

// tiled is a small TIFF with a tile of 30,000 x 30,000 pixels.
func tiled(t testing.TB) []byte {
	entries := [][3]uint32{{256, 3, 16}, {257, 3, 16}, {258, 3, 8}, {259, 3, 8}, {262, 3, 1}, {277, 3, 1}, {322, 4, 30000}, {323, 4, 30000}, {324, 4, 8}, {325, 4, 100}}
	data := binary.LittleEndian.AppendUint16([]byte("II*\x00\x08\x00\x00\x00"), uint16(len(entries)))
	for _, e := range entries {
		data = binary.LittleEndian.AppendUint16(data, uint16(e[0]))
		data = binary.LittleEndian.AppendUint16(data, uint16(e[1]))
		data = binary.LittleEndian.AppendUint32(data, 1)
		data = binary.LittleEndian.AppendUint32(data, e[2])
	}
	return append(data, make([]byte, 100)...)
}

// What is decoded is of the size that was judged: files of several sizes, of
// which a decoder takes another one than the first that comes to mind.
func TestSizeIsOfWhatIsDecoded(t *testing.T) {
	animated := func(frame ...[]byte) []byte {
		head := []byte{0, 0, 0, 0, 0, 0, 23, 0, 0, 17, 0, 0, 50, 0, 0, 0}
		return riff(vp8x(2, 24, 18), webpChunk("ANIM", make([]byte, 6)), webpChunk("ANMF", append(head, bytes.Join(frame, nil)...)))
	}
	for name, data := range map[string][]byte{
		"WebP: the second chunk is small":                               riff(hugeVP8L(t), vp8(24, 18)),
		"WebP: the header is small":                                     riff(vp8x(0, 24, 18), hugeVP8L(t)),
		"WebP: the header comes after":                                  riff(hugeVP8L(t), vp8x(0, 24, 18)),
		"WebP: the frame is larger than it says":                        animated(hugeVP8L(t)),
		"WebP: the frame's second chunk is as it is":                    animated(hugeVP8L(t), vp8(24, 18)),
		"WebP: the size of the file leaves out the small one":           append(riff(hugeVP8L(t)), vp8(24, 18)...),
		"JPEG: two frames":                                              concat(soi, sof(16, 16), sof(30000, 30000), sos),
		"JPEG: a large frame behind the end of a small file":            concat(soi, sof(16, 16), sos, "\xff\xd9", soi, sof(30000, 30000), sos),
		"JPEG: the large frame stands behind a marker without a length": concat(soi, "\xff\x01", sof(16, 16), sof(30000, 30000), sos),
		"JPEG: ten thousand by ten thousand of nothing":                 concat(soi, sof(10000, 10000), sos),
		"PNG: two headers":                                              append(pngOf(16, 16), pngOf(30000, 30000)[len(pngSignature):]...),
		"PNG: ten thousand by ten thousand of nothing":                  pngOf(10000, 10000),
		"BMP: ten thousand by ten thousand of nothing":                  bmpOf(10000, 10000),
		"BMP: a size that is negative":                                  bmpOf(-10000, 10000),
		"TIFF: a tile is larger than the image":                         tiled(t),
		"GIF: the frame is larger than the screen":                      []byte("GIF89a\x10\x00\x10\x00\x00\x00\x00,\x00\x00\x00\x00\x30\x75\x30\x75\x00\x02\x02D\x01\x00;"),
	} {
		n := allocated(func() {
			if out, why, err := compress(t, data, "", 75); out != nil || err == nil && why == "" {
				t.Errorf("%s: %d bytes, %q, %v", name, len(out), why, err)
			}
			_, err := fit(t, data, "", Limits{MaxSide: 10})
			if code, _ := fault.Of(err); code != fault.ImageProcessing {
				t.Errorf("%s: %v", name, err)
			}
		})
		if n > 4<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
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
		_, err = fit(t, data, mime, Limits{MaxSide: 100})
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
	f, err2 := fit(t, data, "", Limits{MaxSide: 16, MaxBytes: 3000})
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
		step := max(len(data)/longtest.Count(20, 60), 1)
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
