package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"io"
	"math"

	"golang.org/x/image/webp"
)

// webpChunks yields the chunks of a RIFF file from a place on, up to its end or
// its damage.
func webpChunks(src source, from int64) func(yield func(name string, body source) bool) {
	return func(yield func(string, source) bool) {
		for at := from; ; {
			head := src.part(at, 8)
			if head == nil {
				return
			}
			n := int64(binary.LittleEndian.Uint32(head[4:]))
			size := min(n, src.size-at-8)
			if !yield(string(head[:4]), src.section(at+8, size)) {
				return
			}
			at += 8 + n + n&1
		}
	}
}

// riffHeader is the length of what precedes the chunks.
const riffHeader = 12

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func (h *header) readWebP(src source) {
	for name, body := range webpChunks(src, riffHeader) {
		switch name {
		case "VP8X":
			if flags := body.part(0, 1); flags != nil && flags[0]&0x02 != 0 {
				h.frames = 2
			}
		case "VP8L":
			h.lossless = true
		case "ICCP":
			if body.size <= maxProfile {
				h.profile = body.part(0, body.size)
			}
		case "EXIF":
			if string(body.part(0, int64(len(exifPrefix)))) == exifPrefix {
				n := int64(len(exifPrefix))
				body = body.section(n, body.size-n)
			}
			h.orientation = exifOrientation(body)
		}
	}
}

// decodeWebP decodes a WebP. The samples of a lossy one are of the reduced range
// of ITU-R BT.601, which the decoder takes for the full one: they are widened.
func decodeWebP(r io.Reader) (image.Image, error) {
	m, err := webp.Decode(r)
	if err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *image.YCbCr:
		widen(m)
	case *image.NYCbCrA:
		widen(&m.YCbCr)
	}
	return m, nil
}

func widen(m *image.YCbCr) {
	var luma, chroma [256]byte
	for i := range 256 {
		luma[i] = byte(min(max(math.Round(float64(i-16)*255/219), 0), 255))
		chroma[i] = byte(min(max(math.Round(float64(i-128)*255/224)+128, 0), 255))
	}
	for i, v := range m.Y {
		m.Y[i] = luma[v]
	}
	for _, p := range [][]byte{m.Cb, m.Cr} {
		for i, v := range p {
			p[i] = chroma[v]
		}
	}
}

// riff makes a WebP of chunks.
func riff(chunks ...[]byte) []byte {
	body := bytes.Join(chunks, nil)
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(body)))
	return append(append(out, "WEBP"...), body...)
}

func webpChunk(name string, body []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(body)))
	out = append(out, body...)
	if len(body)%2 == 1 {
		out = append(out, 0)
	}
	return out
}

// Flags of a VP8X chunk.
const (
	webpAlpha   = 0x10
	webpProfile = 0x20
)

func vp8x(flags byte, width, height int) []byte {
	w, h := width-1, height-1
	return webpChunk("VP8X", []byte{flags, 0, 0, 0, byte(w), byte(w >> 8), byte(w >> 16), byte(h), byte(h >> 8), byte(h >> 16)})
}

// firstWebPFrame decodes the first frame of an animation.
func firstWebPFrame(ctx context.Context, src source, width, height int) (image.Image, error) {
	for name, body := range webpChunks(src, riffHeader) {
		if name != "ANMF" {
			continue
		}
		head := body.part(0, 16)
		if head == nil {
			return nil, errShort
		}
		x, y, w, h := 2*uint24(head), 2*uint24(head[3:]), uint24(head[6:])+1, uint24(head[9:])+1
		if x+w > width || y+h > height {
			return nil, errors.New("a frame beyond the image")
		}
		flags := byte(0)
		var parts [][]byte
		for name, part := range webpChunks(body, 16) {
			switch name {
			case "ALPH":
				flags = webpAlpha
				fallthrough
			case "VP8 ", "VP8L":
				parts = append(parts, webpChunk(name, part.part(0, part.size)))
			}
		}
		if flags != 0 {
			parts = append([][]byte{vp8x(flags, w, h)}, parts...)
		}
		still := riff(parts...)
		if c, err := webp.DecodeConfig(bytes.NewReader(still)); err != nil || c.Width != w || c.Height != h {
			return nil, errors.Join(err, errors.New("a frame of another size than it says"))
		}
		m, err := decodeWebP(memory(still).all(ctx))
		if err != nil {
			return nil, err
		}
		if w == width && h == height {
			return m, nil
		}
		out := image.NewNRGBA(image.Rect(0, 0, width, height))
		frame := nrgba(m)
		for row := range h {
			copy(out.Pix[(y+row)*out.Stride+4*x:], frame.Pix[row*frame.Stride:][:4*w])
		}
		return out, nil
	}
	return nil, errShort
}

// withProfile adds a colour profile to a WebP.
func withProfile(data, profile []byte, width, height int, alpha bool) []byte {
	if profile == nil {
		return data
	}
	flags := byte(webpProfile)
	if alpha {
		flags |= webpAlpha
	}
	parts := [][]byte{vp8x(flags, width, height), webpChunk("ICCP", profile)}
	for name, body := range webpChunks(memory(data), riffHeader) {
		if name != "VP8X" {
			parts = append(parts, webpChunk(name, body.part(0, body.size)))
		}
	}
	return riff(parts...)
}
