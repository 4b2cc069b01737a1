package picture

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

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
			_, err := Fit(t.Context(), data, "", Limits{MaxSide: 10})
			if code, _ := fault.Of(err); code != fault.ImageProcessing {
				t.Errorf("%s: %v", name, err)
			}
		})
		if n > 4<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}
