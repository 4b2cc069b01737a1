package picture

import (
	"context"
	"errors"
	"image"
	"image/draw"
	"image/gif"
)

// readGIF counts the frames by walking the blocks; what is damaged is left to
// the decoder.
func (h *header) readGIF(src source) {
	table := func(flags byte) int64 {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	head := src.part(0, 13)
	if head == nil {
		return
	}
	h.frames = 0
	at := 13 + table(head[10])
	for h.frames < 2 {
		block := src.part(at, 10)
		switch {
		case block == nil:
			return
		case block[0] == 0x21:
			at += 2
		case block[0] == 0x2c:
			h.frames++
			at += 10 + table(block[9]) + 1
		default:
			return
		}
		for {
			n := src.part(at, 1)
			if n == nil {
				return
			}
			at += 1 + int64(n[0])
			if n[0] == 0 {
				break
			}
		}
	}
}

// encodeGIF encodes the one frame of a GIF in at most that many bytes, else the
// error is errTooLong.
func encodeGIF(ctx context.Context, m image.Image, h *header, most int) ([]byte, error) {
	frame, ok := m.(*image.Paletted)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	b := output{ctx: ctx, most: most}
	err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0},
		Config: image.Config{Width: h.width, Height: h.height}})
	return b.data, err
}

// onCanvas places a frame that is smaller than its image.
func onCanvas(m image.Image, width, height int) image.Image {
	canvas := image.Rect(0, 0, width, height)
	if m.Bounds() == canvas {
		return m
	}
	out := image.NewNRGBA(canvas)
	draw.Draw(out, m.Bounds(), m, m.Bounds().Min, draw.Src)
	return out
}
