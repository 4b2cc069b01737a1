package picture

import (
	"bytes"
	"encoding/binary"
	"runtime"
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
	for name, body := range webpChunks(sampleFile(t, losslessWebP)[12:]) {
		if name == "VP8L" {
			body = bytes.Clone(body)
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

// What is decoded is of the size that was judged: files of several sizes, of
// which a decoder takes another one than the first that comes to mind.
func TestSizeIsOfWhatIsDecoded(t *testing.T) {
	animated := func(frame ...[]byte) []byte {
		head := []byte{0, 0, 0, 0, 0, 0, 23, 0, 0, 17, 0, 0, 50, 0, 0, 0}
		return riff(vp8x(2, 24, 18), webpChunk("ANIM", make([]byte, 6)), webpChunk("ANMF", append(head, bytes.Join(frame, nil)...)))
	}
	for name, data := range map[string][]byte{
		"WebP: the second chunk is small":            riff(hugeVP8L(t), vp8(24, 18)),
		"WebP: the header is small":                  riff(vp8x(0, 24, 18), hugeVP8L(t)),
		"WebP: the header comes after":               riff(hugeVP8L(t), vp8x(0, 24, 18)),
		"WebP: the frame is larger than it says":     animated(hugeVP8L(t)),
		"WebP: the frame's second chunk is as it is": animated(hugeVP8L(t), vp8(24, 18)),
		"GIF: the frame is larger than the screen":   []byte("GIF89a\x10\x00\x10\x00\x00\x00\x00,\x00\x00\x00\x00\x30\x75\x30\x75\x00\x02\x02D\x01\x00;"),
	} {
		n := allocated(func() {
			if out, why, err := Compress(t.Context(), data, "", 75); out != nil || err == nil && why == "" {
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
