package picture

import (
	"context"
	"encoding/binary"
	"image"
	"image/color"

	"github.com/klauspost/compress/zlib"
)

// stripSize is how much of an image a strip holds, about.
const stripSize = 256 << 10

func (h *header) readTIFF(src source) {
	more := tags(src, func(tag int, n uint32, count int64) {
		if tag == tagProfile && 4 < count && count <= maxProfile {
			h.profile = src.part(int64(n), count)
		}
	})
	h.orientation = exifOrientation(src)
	if more {
		h.frames = 2
	}
}

// encodeTIFF encodes a plain image as little-endian TIFF, deflated after
// horizontal differencing. Where the strips alone take more than that many bytes
// the error is errTooLong.
func encodeTIFF(ctx context.Context, m image.Image, profile []byte, most int) ([]byte, error) {
	s := m.Bounds().Size()
	switch m.(type) {
	case *image.Gray, *image.Gray16, *image.Paletted, *image.NRGBA, *image.NRGBA64:
	default:
		m = nrgba(m)
	}
	const gray, rgb, palette = 1, 2, 3 // photometric interpretations
	samples, depth, photometric, space := 1, 8, gray, "GRAY"
	var pix []byte
	var stride, pixel int // bytes of a pixel in memory
	var colours []uint16
	switch m := m.(type) {
	case *image.Gray:
		pix, stride, pixel = m.Pix, m.Stride, 1
	case *image.Gray16:
		pix, stride, pixel, depth = m.Pix, m.Stride, 2, 16
	case *image.Paletted:
		pix, stride, pixel, photometric, space = m.Pix, m.Stride, 1, palette, "RGB "
		colours = make([]uint16, 3*256)
		for i, c := range m.Palette {
			n := color.NRGBA64Model.Convert(c).(color.NRGBA64)
			colours[i], colours[256+i], colours[512+i] = n.R, n.G, n.B
		}
	case *image.NRGBA:
		pix, stride, pixel, samples, photometric, space = m.Pix, m.Stride, 4, 4, rgb, "RGB "
		if m.Opaque() {
			samples = 3
		}
	case *image.NRGBA64:
		pix, stride, pixel, samples, depth, photometric, space = m.Pix, m.Stride, 8, 4, 16, rgb, "RGB "
		if m.Opaque() {
			samples = 3
		}
	}
	profile = profileOf(profile, space)
	row := s.X * samples * depth / 8
	perStrip := max(stripSize/row, 1)
	strips := make([][]byte, (s.Y+perStrip-1)/perStrip)
	buf := make([]byte, row)
	var z *zlib.Writer
	for i := range strips {
		b := output{ctx: ctx, most: most}
		if i == 0 {
			z = zlib.NewWriter(&b)
		} else {
			z.Reset(&b)
		}
		for y := i * perStrip; y < min((i+1)*perStrip, s.Y); y++ {
			src, n := pix[y*stride:], samples*depth/8
			for x := range s.X {
				copy(buf[x*n:][:n], src[x*pixel:])
			}
			if depth == 16 {
				for k := 0; k < row; k += 2 { // Go's images are big-endian
					buf[k], buf[k+1] = buf[k+1], buf[k]
				}
				for k := row - 2; k >= n; k -= 2 {
					binary.LittleEndian.PutUint16(buf[k:], binary.LittleEndian.Uint16(buf[k:])-binary.LittleEndian.Uint16(buf[k-n:]))
				}
			} else if photometric != palette {
				for k := row - 1; k >= n; k-- {
					buf[k] -= buf[k-n]
				}
			}
			if _, err := z.Write(buf); err != nil {
				return nil, err
			}
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		strips[i] = b.data
		most -= len(b.data)
	}

	const short, long, undefined = 3, 4, 7
	type entry struct {
		tag, kind int
		values    []uint32
		raw       []byte // in place of values
	}
	repeat := func(v uint32, n int) []uint32 {
		out := make([]uint32, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	predictor := uint32(2)
	if photometric == palette {
		predictor = 1
	}
	offsets, lengths := make([]uint32, len(strips)), make([]uint32, len(strips))
	total := 4096 + len(profile) + 16*len(strips)
	for _, p := range strips {
		total += len(p) + 1
	}
	out := append(make([]byte, 0, total), "II*\x00\x00\x00\x00\x00"...)
	for i, p := range strips {
		offsets[i], lengths[i] = uint32(len(out)), uint32(len(p))
		out = append(out, p...)
		if len(out)%2 == 1 {
			out = append(out, 0)
		}
	}
	entries := []entry{
		{tagWidth, long, []uint32{uint32(s.X)}, nil},
		{tagHeight, long, []uint32{uint32(s.Y)}, nil},
		{258, short, repeat(uint32(depth), samples), nil}, // BitsPerSample
		{259, short, []uint32{8}, nil},                    // Compression: deflate
		{262, short, []uint32{uint32(photometric)}, nil},
		{273, long, offsets, nil},                    // StripOffsets
		{277, short, []uint32{uint32(samples)}, nil}, // SamplesPerPixel
		{278, long, []uint32{uint32(perStrip)}, nil}, // RowsPerStrip
		{279, long, lengths, nil},                    // StripByteCounts
		{317, short, []uint32{predictor}, nil},
	}
	if colours != nil {
		e := entry{320, short, nil, nil} // ColorMap
		for _, c := range colours {
			e.values = append(e.values, uint32(c))
		}
		entries = append(entries, e)
	}
	if samples == 4 {
		entries = append(entries, entry{338, short, []uint32{2}, nil}) // ExtraSamples: alpha, not multiplied
	}
	if profile != nil {
		entries = append(entries, entry{tagProfile, undefined, nil, profile})
	}
	var dir []byte
	dir = binary.LittleEndian.AppendUint16(dir, uint16(len(entries)))
	for _, e := range entries {
		raw := e.raw
		count := len(raw)
		if raw == nil {
			count = len(e.values)
			for _, v := range e.values {
				if e.kind == short {
					raw = binary.LittleEndian.AppendUint16(raw, uint16(v))
				} else {
					raw = binary.LittleEndian.AppendUint32(raw, v)
				}
			}
		}
		dir = binary.LittleEndian.AppendUint16(dir, uint16(e.tag))
		dir = binary.LittleEndian.AppendUint16(dir, uint16(e.kind))
		dir = binary.LittleEndian.AppendUint32(dir, uint32(count))
		if len(raw) <= 4 {
			dir = append(dir, append(raw, 0, 0, 0, 0)[:4]...)
			continue
		}
		dir = binary.LittleEndian.AppendUint32(dir, uint32(len(out)))
		out = append(out, raw...)
		if len(out)%2 == 1 {
			out = append(out, 0)
		}
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)))
	return append(append(out, dir...), 0, 0, 0, 0), nil
}
