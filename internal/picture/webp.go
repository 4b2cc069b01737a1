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

// webpSize returns the size of what decodeWebP decodes of a still, as the decoder
// reads it: a file may hold several chunks, each of a size of its own.
func webpSize(data []byte) (width, height int, err error) {
	c, err := webp.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
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
func firstWebPFrame(ctx context.Context, data []byte, width, height int) (image.Image, error) {
	for name, body := range webpChunks(data[12:]) {
		if name != "ANMF" {
			continue
		}
		if len(body) < 16 {
			return nil, errShort
		}
		x, y, w, h := 2*uint24(body), 2*uint24(body[3:]), uint24(body[6:])+1, uint24(body[9:])+1
		if x+w > width || y+h > height {
			return nil, errors.New("a frame beyond the image")
		}
		flags := byte(0)
		var parts [][]byte
		for name, part := range webpChunks(body[16:]) {
			switch name {
			case "ALPH":
				flags = webpAlpha
				fallthrough
			case "VP8 ", "VP8L":
				parts = append(parts, webpChunk(name, part))
			}
		}
		if flags != 0 {
			parts = append([][]byte{vp8x(flags, w, h)}, parts...)
		}
		still := riff(parts...)
		if sw, sh, err := webpSize(still); err != nil || sw != w || sh != h {
			return nil, errors.Join(err, errors.New("a frame of another size than it says"))
		}
		m, err := decodeWebP(bytes.NewReader(still))
		if err != nil {
			return nil, err
		}
		if w == width && h == height {
			return m, nil
		}
		out := image.NewNRGBA(image.Rect(0, 0, width, height))
		frame, err := nrgba(ctx, plain(m))
		for row := range h {
			copy(out.Pix[(y+row)*out.Stride+4*x:], frame.Pix[row*frame.Stride:][:4*w])
		}
		return out, err
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
	for name, body := range webpChunks(data[12:]) {
		if name != "VP8X" {
			parts = append(parts, webpChunk(name, body))
		}
	}
	return riff(parts...)
}
