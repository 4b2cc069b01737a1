package picture

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"slices"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

func (h *header) readPNG(src source) {
	for at := int64(len(pngSignature)); ; {
		head := src.part(at, 8)
		if head == nil {
			return
		}
		n := int64(binary.BigEndian.Uint32(head))
		chunk := func() []byte { return src.part(at, 12+min(n, maxProfile)) }
		switch string(head[4:]) {
		case "acTL":
			if b := src.part(at+8, 4); b != nil && binary.BigEndian.Uint32(b) > 1 {
				h.frames = 2
			}
		case "eXIf":
			h.orientation = exifOrientation(src.section(at+8, min(n, src.size-at-8)))
		case "iCCP":
			if c := chunk(); n <= maxProfile && c != nil {
				h.profile = inflateProfile(c[8 : 8+n])
				h.colours = append(h.colours, c)
			}
		case "sRGB", "gAMA", "cHRM", "cICP":
			if c := chunk(); n <= maxProfile && c != nil {
				h.colours = append(h.colours, c)
			}
		}
		at += 12 + n
	}
}

func pngChunk(name string, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, name...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// inflateProfile reads the body of an iCCP chunk: a name, a method, deflated
// bytes.
func inflateProfile(body []byte) []byte {
	_, rest, ok := bytes.Cut(body, []byte{0})
	if !ok || len(rest) < 1 {
		return nil
	}
	z, err := zlib.NewReader(bytes.NewReader(rest[1:]))
	if err != nil {
		return nil
	}
	p, err := io.ReadAll(io.LimitReader(z, maxProfile+1))
	if err != nil || len(p) > maxProfile {
		return nil
	}
	return p
}

// profileChunks are the chunks that hold a colour profile, none without one.
func profileChunks(profile []byte) [][]byte {
	if profile == nil {
		return nil
	}
	b := bytes.NewBufferString("ICC profile\x00\x00")
	z := zlib.NewWriter(b)
	z.Write(profile) // to memory
	z.Close()
	return [][]byte{pngChunk("iCCP", b.Bytes())}
}

// encodePNG encodes a plain image with chunks that say what its colours mean, in
// at most that many bytes, else the error is errTooLong.
func encodePNG(ctx context.Context, m image.Image, colours [][]byte, most int) ([]byte, error) {
	m = reduce(m, slices.ContainsFunc(colours, func(c []byte) bool { return string(c[4:8]) == "iCCP" }))
	chunks := slices.Concat(colours...)
	b := output{ctx: ctx, most: most - len(chunks)}
	if most < unlimited {
		b.data = make([]byte, 0, most)
	}
	e := png.Encoder{CompressionLevel: worthwhile(m)}
	err := e.Encode(&b, m)
	if err == nil {
		const afterIHDR = len(pngSignature) + 25
		b.data = slices.Insert(b.data, afterIHDR, chunks...)
	}
	return b.data, err
}

// worthwhile returns the level of compression for an image. The fastest is the
// best for photographs, where repetitions are chance; some rows tell.
func worthwhile(m image.Image) png.CompressionLevel {
	rows := m.Bounds()
	rows.Min.Y = rows.Dy() / 2
	rows.Max.Y = min(rows.Max.Y, rows.Min.Y+16)
	sample := m.(interface {
		SubImage(image.Rectangle) image.Image
	}).SubImage(rows)
	length := func(level png.CompressionLevel) int {
		b := output{ctx: context.Background(), most: unlimited}
		e := png.Encoder{CompressionLevel: level}
		e.Encode(&b, sample) // to memory; what cannot be encoded is told of the whole
		return len(b.data)
	}
	if length(png.BestSpeed) < length(png.DefaultCompression) {
		return png.BestSpeed
	}
	return png.DefaultCompression
}

// reduce finds a smaller representation of the same pixels: a palette of up to
// 256 colours, or gray, which an image with a profile for colours may not become.
func reduce(m image.Image, profiled bool) image.Image {
	switch m.(type) {
	case *image.Gray, *image.Gray16, *image.Paletted, *image.NRGBA64:
		return m
	}
	n := nrgba(m)
	index, gray := coloursOf(n)
	if gray && !profiled && (index == nil || len(index) > 16) {
		return grayOf(n)
	}
	if index == nil {
		return n
	}
	colours := make(color.Palette, len(index))
	for c, i := range index {
		colours[i] = color.NRGBA{c[0], c[1], c[2], c[3]}
	}
	out := image.NewPaletted(n.Rect, colours)
	w := n.Rect.Dx()
	for y := range n.Rect.Dy() {
		row, dst := n.Pix[y*n.Stride:], out.Pix[y*out.Stride:]
		var last [4]byte
		var at uint8
		for x := range w {
			if c := [4]byte(row[4*x:]); x == 0 || c != last {
				last, at = c, index[c]
			}
			dst[x] = at
		}
	}
	return out
}

// coloursOf numbers the colours of an image, nil where there are more than 256,
// and reports whether all are gray and opaque.
func coloursOf(n *image.NRGBA) (index map[[4]byte]uint8, gray bool) {
	index, gray = make(map[[4]byte]uint8, 256), true
	var last [4]byte
	for y := range n.Rect.Dy() {
		for row := n.Pix[y*n.Stride:][:4*n.Rect.Dx()]; len(row) > 0; row = row[4:] {
			c := [4]byte(row)
			if c == last && len(index) > 0 {
				continue
			}
			last = c
			gray = gray && c[0] == c[1] && c[0] == c[2] && c[3] == 0xff
			if index == nil {
				if !gray {
					return nil, false
				}
			} else if _, ok := index[c]; !ok {
				if len(index) == 256 {
					index = nil
					continue
				}
				index[c] = uint8(len(index))
			}
		}
	}
	return index, gray
}
