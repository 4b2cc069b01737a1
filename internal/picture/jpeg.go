package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/jpeg"
	"runtime"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

const iccPrefix = "ICC_PROFILE\x00"

// readJPEG reads the metadata in front of the first scan.
func (h *header) readJPEG(src source) {
	var icc [][]byte
	for marker, body := range jpegSegments(src) {
		switch marker {
		case 0xe1:
			if exif, ok := bytes.CutPrefix(body, []byte(exifPrefix)); ok {
				h.orientation = exifOrientation(memory(exif))
			}
		case 0xe2:
			if part, ok := bytes.CutPrefix(body, []byte(iccPrefix)); ok && len(part) > 2 {
				icc = append(icc, part)
			}
		}
	}
	h.profile = joinProfile(icc)
}

// jpegSegments yields the segments of a JPEG up to that of the first scan.
func jpegSegments(src source) func(yield func(marker byte, body []byte) bool) {
	return func(yield func(byte, []byte) bool) {
		for at := int64(2); ; {
			b := src.part(at, 4)
			switch {
			case b == nil:
				return
			case b[0] != 0xff, b[1] == 0xff: // stray and fill bytes, which other readers skip too
				at++
				continue
			case b[1] == 0 || 0xd0 <= b[1] && b[1] <= 0xd8:
				at += 2
				continue
			}
			n := int64(binary.BigEndian.Uint16(b[2:]))
			body := src.part(at+4, n-2)
			if body == nil || b[1] == 0xd9 || !yield(b[1], body) || b[1] == 0xda {
				return
			}
			at += 2 + n
		}
	}
}

// joinProfile joins the segments of a colour profile, which begin with their
// number and how many there are; it returns nil where one is missing.
func joinProfile(segments [][]byte) []byte {
	slices.SortStableFunc(segments, func(a, b []byte) int { return int(a[0]) - int(b[0]) })
	var p []byte
	for i, s := range segments {
		if int(s[0]) != i+1 || int(s[1]) != len(segments) || len(p) > maxProfile {
			return nil
		}
		p = append(p, s[2:]...)
	}
	return p
}

// profileSegments are the segments that hold a colour profile.
func profileSegments(profile []byte) []byte {
	const most = 65535 - 2 - len(iccPrefix) - 2
	var out []byte
	parts := slices.Collect(slices.Chunk(profile, most))
	for i, p := range parts {
		out = binary.BigEndian.AppendUint16(append(out, 0xff, 0xe2), uint16(2+len(iccPrefix)+2+len(p)))
		out = append(append(out, iccPrefix...), byte(i+1), byte(len(parts)))
		out = append(out, p...)
	}
	return out
}

// settled returns the quality at which image/jpeg writes about as many bytes as
// encoders that fit the Huffman tables to the image write at the given one.
func settled(quality int) int { return quality - quality*(100-quality)/375 }

// encodeJPEG encodes a plain image, of which alpha is not looked at, in at most
// that many bytes, else the error is errTooLong. Bands of it are encoded at the
// same time and joined by restart markers.
func encodeJPEG(ctx context.Context, m image.Image, quality int, profile []byte, most int) ([]byte, error) {
	switch p := m.(type) {
	case *image.Gray, *image.YCbCr:
	case *image.Gray16:
		m = grayOf(nrgba(p))
	default:
		n := nrgba(p)
		m = &image.RGBA{Pix: n.Pix, Stride: n.Stride, Rect: n.Rect} // which the encoder reads faster
	}
	unit := 16 // pixels across and down of what is coded together
	if isGray(m) {
		unit = 8
	}
	size := m.Bounds().Size()
	across, down := (size.X+unit-1)/unit, (size.Y+unit-1)/unit
	each := min((down+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0), 65535/across) // restarts are counted in 16 bits
	bands := make([]output, (down+each-1)/each)
	g := parallel.New()
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range bands {
		r := image.Rect(0, i*each*unit, size.X, min((i+1)*each*unit, size.Y))
		band := m.(interface {
			SubImage(image.Rectangle) image.Image
		}).SubImage(r)
		room := r // for what photographs take; the others are put behind the first
		if i == 0 {
			room = m.Bounds()
		}
		bands[i] = output{ctx: ctx, most: most, data: make([]byte, 0, room.Dx()*room.Dy()/12)}
		g.Go(func() error {
			return jpeg.Encode(&bands[i], band, &jpeg.Options{Quality: quality})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := joinBands(bands, size.Y, across*each, profile)
	if len(out) > most {
		return nil, errTooLong
	}
	return out, nil
}

// joinBands makes one JPEG of those of its bands, all but the last of which are
// of that many units, in the memory of the first.
func joinBands(bands []output, height, units int, profile []byte) []byte {
	out := bands[0].data
	frame, scan, _ := jpegOffsets(out)
	binary.BigEndian.PutUint16(out[frame+5:], uint16(height))
	for i, b := range bands[1:] {
		_, _, data := jpegOffsets(b.data)
		out = append(out[:len(out)-2], 0xff, 0xd0+byte(i%8)) // in place of the end
		out = append(out, b.data[data:]...)
	}
	if len(bands) > 1 {
		out = slices.Insert(out, scan, 0xff, 0xdd, 0, 4, byte(units>>8), byte(units))
	}
	return slices.Insert(out, 2, profileSegments(profile)...)
}

// jpegOffsets returns where the segments of a JPEG's frame and first scan begin,
// and the data of that.
func jpegOffsets(jpeg []byte) (frame, scan, data int) {
	data = 2
	for marker, body := range jpegSegments(memory(jpeg)) {
		switch marker {
		case 0xc0:
			frame = data
		case 0xda:
			scan = data
		}
		data += 4 + len(body)
	}
	return frame, scan, data
}
