package picture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"io"
	"slices"

	"github.com/klauspost/compress/zlib"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// Colour types of PNG.
const (
	pngGray      = 0
	pngRGB       = 2
	pngPalette   = 3
	pngGrayAlpha = 4
	pngRGBA      = 6
)

// A raster is the content of a PNG: rows of samples as the format has them,
// each with a byte for its filter in front.
type raster struct {
	width, height int
	depth, colour int
	interlaced    bool
	palette, trns []byte   // bodies of PLTE and tRNS
	kept          [][]byte // chunks that say what the colours mean: name and body
	passes        []pass
	pix           []byte
}

// A pass is one of the seven images that an interlaced PNG consists of, or the
// whole of another.
type pass struct {
	rows, bytes int // of a row, without the filter
}

var errBadPNG = errors.New("damaged PNG")

// bits returns the length of a pixel.
func (r *raster) bits() int {
	return r.depth * [...]int{1, 0, 3, 1, 2, 0, 4}[r.colour]
}

// layout sets the passes and returns the size of all rows.
func (r *raster) layout() int {
	r.passes = nil
	add := func(w, h int) {
		if w > 0 && h > 0 {
			r.passes = append(r.passes, pass{h, (w*r.bits() + 7) / 8})
		}
	}
	if !r.interlaced {
		add(r.width, r.height)
	} else {
		for _, p := range [7][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}} {
			add((r.width-p[0]+p[2]-1)/p[2], (r.height-p[1]+p[3]-1)/p[3])
		}
	}
	total := 0
	for _, p := range r.passes {
		total += p.rows * (1 + p.bytes)
	}
	return total
}

// repackPNG deflates a PNG better. Its samples stay what they are, in fewer
// bits where they need fewer.
func repackPNG(ctx context.Context, data []byte) ([]byte, error) {
	r, err := readRaster(ctx, data)
	if err != nil {
		return nil, err
	}
	r.reduce()
	return r.encode(ctx, bestDeflate)
}

func readRaster(ctx context.Context, data []byte) (*raster, error) {
	r := new(raster)
	var packed []io.Reader
	size := 0
	for name, body := range pngChunks(data) {
		if cap(body)-len(body) < 4 {
			break // cut short
		}
		sum := crc32.Update(crc32.ChecksumIEEE([]byte(name)), crc32.IEEETable, body)
		if sum != binary.BigEndian.Uint32(body[len(body):len(body)+4]) {
			return nil, errBadPNG
		}
		switch name {
		case "IHDR":
			if r.width != 0 || len(body) != 13 || body[10] != 0 || body[11] != 0 || body[12] > 1 {
				return nil, errBadPNG
			}
			r.width, r.height = int(binary.BigEndian.Uint32(body)), int(binary.BigEndian.Uint32(body[4:]))
			r.depth, r.colour, r.interlaced = int(body[8]), int(body[9]), body[12] == 1
			if !validPNG(r.colour, r.depth) {
				return nil, errBadPNG
			}
		case "PLTE":
			if len(body)%3 != 0 || len(body) > 768 {
				return nil, errBadPNG
			}
			r.palette = body
		case "tRNS":
			r.trns = body
		case "iCCP", "sRGB", "gAMA", "cHRM", "cICP":
			r.kept = append(r.kept, append([]byte(name), body...))
		case "IDAT":
			packed = append(packed, bytes.NewReader(body))
			size += len(body)
		}
	}
	total := r.layout()
	if r.colour == pngPalette && len(r.palette) == 0 || size == 0 {
		return nil, errBadPNG
	}
	if total/1032 > size { // deflate does not reach that
		return nil, errBadPNG
	}
	z, err := zlib.NewReader(io.MultiReader(packed...))
	if err != nil {
		return nil, err
	}
	r.pix = make([]byte, total)
	ready := make(chan int, 1+total/readSize) // how many bytes are there
	g := parallel.New()
	g.Go(func() error {
		defer close(ready)
		for at := 0; at < total; at += readSize {
			if err := ctx.Err(); err != nil {
				return err
			}
			end := min(at+readSize, total)
			if _, err := io.ReadFull(z, r.pix[at:end]); err != nil {
				return errors.Join(errBadPNG, err)
			}
			ready <- end
		}
		if n, err := io.ReadFull(z, make([]byte, 1)); n != 0 || err != io.EOF {
			return errBadPNG
		}
		return nil
	})
	g.Go(func() error { return r.unfilter(ready) })
	return r, g.Wait()
}

// readSize is how much is inflated before it is unfiltered.
const readSize = 1 << 20

func validPNG(colour, depth int) bool {
	switch colour {
	case pngGray:
		return slices.Contains([]int{1, 2, 4, 8, 16}, depth)
	case pngPalette:
		return slices.Contains([]int{1, 2, 4, 8}, depth)
	case pngRGB, pngGrayAlpha, pngRGBA:
		return depth == 8 || depth == 16
	}
	return false
}

// unfilter undoes the filters of the rows as they become ready.
func (r *raster) unfilter(ready <-chan int) error {
	n := max(r.bits()/8, 1)
	at, have := 0, 0
	for _, p := range r.passes {
		prev := make([]byte, p.bytes)
		for range p.rows {
			for have < at+1+p.bytes {
				end, ok := <-ready
				if !ok {
					return nil // the reader says why
				}
				have = end
			}
			row := r.pix[at+1 : at+1+p.bytes]
			switch r.pix[at] {
			case 0:
			case 1:
				for i := n; i < len(row); i++ {
					row[i] += row[i-n]
				}
			case 2:
				for i, b := range prev[:len(row)] {
					row[i] += b
				}
			case 3:
				for i, b := range prev[:len(row)] {
					a := 0
					if i >= n {
						a = int(row[i-n])
					}
					row[i] += byte((a + int(b)) / 2)
				}
			case 4:
				for i := range min(n, len(row)) {
					row[i] += prev[i]
				}
				for i := n; i < len(row); i++ {
					row[i] += paeth(row[i-n], prev[i], prev[i-n])
				}
			default:
				return errBadPNG
			}
			r.pix[at] = 0
			prev = row
			at += 1 + p.bytes
		}
	}
	return nil
}

// paeth predicts a sample from those to the left, above, and above to the left.
func paeth(a, b, c byte) byte {
	p, q := int(b)-int(c), int(a)-int(c)
	d := p + q
	p, q, d = max(p, -p), max(q, -q), max(d, -d)
	switch {
	case p <= q && p <= d:
		return a
	case q <= d:
		return b
	}
	return c
}

// reduce finds a smaller representation of the same colours: no alpha where all
// is opaque, gray where all is gray, a palette of up to 256.
func (r *raster) reduce() {
	if r.interlaced || r.trns != nil || r.colour != pngRGB && r.colour != pngRGBA {
		return
	}
	if r.depth == 16 {
		if r.colour == pngRGBA {
			r.dropAlpha()
		}
		return
	}
	n := r.bits() / 8
	stride := 1 + r.width*n
	opaque, gray := true, !slices.ContainsFunc(r.kept, func(c []byte) bool { return string(c[:4]) == "iCCP" })
	colours := make(map[uint32]uint8, 256)
	last, few := uint32(0), true
	for y := range r.height {
		row := r.pix[y*stride+1 : (y+1)*stride]
		for i := 0; i+n <= len(row); i += n {
			c := uint32(row[i])<<16 | uint32(row[i+1])<<8 | uint32(row[i+2]) | 0xff<<24
			if n == 4 {
				c = c&0xffffff | uint32(row[i+3])<<24
			}
			if c == last {
				continue
			}
			last = c
			opaque = opaque && c>>24 == 0xff
			gray = gray && row[i] == row[i+1] && row[i] == row[i+2]
			if few {
				if _, ok := colours[c]; !ok {
					colours[c] = 0
					few = len(colours) <= 256
				}
			}
			if !opaque && !gray && !few {
				return
			}
		}
	}
	// The zero that last began with is transparent black: seen only if it is there.
	if _, ok := colours[0]; !ok && n == 4 && r.pix[1]|r.pix[2]|r.pix[3]|r.pix[4] == 0 {
		colours[0] = 0
		opaque = false
		few = few && len(colours) <= 256
	}
	switch {
	case few && !(gray && opaque && len(colours) > 16):
		r.toPalette(colours)
	case gray && opaque:
		r.each(1, func(dst, src []byte) { dst[0] = src[0] })
		r.colour = pngGray
		r.layout()
	case opaque && r.colour == pngRGBA:
		r.dropAlpha()
	}
}

// each moves every pixel of a raster of whole bytes to one of n bytes, at most
// as long.
func (r *raster) each(n int, f func(dst, src []byte)) {
	from := r.bits() / 8
	for y := range r.height {
		src, dst := r.pix[y*(1+from*r.width)+1:], r.pix[y*(1+n*r.width):]
		dst[0] = 0
		for x := range r.width {
			f(dst[1+x*n:][:n], src[x*from:][:from])
		}
	}
	r.pix = r.pix[:r.height*(1+n*r.width)]
}

// dropAlpha makes an opaque RGBA raster RGB.
func (r *raster) dropAlpha() {
	a := r.depth / 8
	stride := 1 + 4*a*r.width
	for y := range r.height {
		for row := r.pix[y*stride+1 : (y+1)*stride]; len(row) > 0; row = row[4*a:] {
			if row[3*a] != 0xff || row[4*a-1] != 0xff {
				return
			}
		}
	}
	r.each(3*a, func(dst, src []byte) { copy(dst, src) })
	r.colour = pngRGB
	r.layout()
}

// toPalette writes the raster in the given colours, ARGB.
func (r *raster) toPalette(colours map[uint32]uint8) {
	list := make([]uint32, 0, len(colours))
	for c := range colours {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b uint32) int { // by alpha: tRNS ends where all are opaque
		return cmp.Or(cmp.Compare(a>>24, b>>24), cmp.Compare(a, b))
	})
	r.palette, r.trns = nil, nil
	for i, c := range list {
		colours[c] = uint8(i)
		r.palette = append(r.palette, byte(c>>16), byte(c>>8), byte(c))
		if c>>24 != 0xff {
			r.trns = append(r.trns, byte(c>>24))
		}
	}
	alpha := r.colour == pngRGBA
	last, index := list[0], uint8(0)
	r.each(1, func(dst, src []byte) {
		c := uint32(src[0])<<16 | uint32(src[1])<<8 | uint32(src[2]) | 0xff<<24
		if alpha {
			c = c&0xffffff | uint32(src[3])<<24
		}
		if c != last {
			last, index = c, colours[c]
		}
		dst[0] = index
	})
	r.colour = pngPalette
	switch n := len(list); {
	case n <= 2:
		r.pack(1)
	case n <= 4:
		r.pack(2)
	case n <= 16:
		r.pack(4)
	}
	r.layout()
}

// pack makes samples of 8 bits shorter ones.
func (r *raster) pack(depth int) {
	per := 8 / depth
	out := 0
	for y := range r.height {
		row := r.pix[y*(1+r.width)+1:][:r.width]
		r.pix[out] = 0
		out++
		for x := 0; x < r.width; x += per {
			v := byte(0)
			for i := range per {
				v <<= depth
				if x+i < r.width {
					v |= row[x+i]
				}
			}
			r.pix[out] = v
			out++
		}
	}
	r.pix, r.depth = r.pix[:out], depth
}

// rasterOf makes a raster of a plain image.
func rasterOf(ctx context.Context, m image.Image, profile []byte) (*raster, error) {
	s := m.Bounds().Size()
	r := &raster{width: s.X, height: s.Y, depth: 8}
	if _, ok := m.(*image.YCbCr); ok {
		rgb, err := nrgba(ctx, m)
		if err != nil {
			return nil, err
		}
		m = rgb
	}
	var pix []byte
	var stride int
	space := "RGB "
	switch m := m.(type) {
	case *image.Gray:
		r.colour, pix, stride, space = pngGray, m.Pix, m.Stride, "GRAY"
	case *image.Gray16:
		r.colour, r.depth, pix, stride, space = pngGray, 16, m.Pix, m.Stride, "GRAY"
	case *image.NRGBA:
		r.colour, pix, stride = pngRGBA, m.Pix, m.Stride
	case *image.NRGBA64:
		r.colour, r.depth, pix, stride = pngRGBA, 16, m.Pix, m.Stride
	case *image.Paletted:
		r.colour, pix, stride = pngPalette, m.Pix, m.Stride
		opaque := 0
		for i, c := range m.Palette {
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			r.palette = append(r.palette, n.R, n.G, n.B)
			r.trns = append(r.trns, n.A)
			if n.A != 0xff {
				opaque = i + 1
			}
		}
		if r.trns = r.trns[:opaque]; opaque == 0 {
			r.trns = nil
		}
	}
	if p := profileOf(profile, space); p != nil {
		parts, err := newDeflater(bestDeflate).stream(ctx, p)
		if err != nil {
			return nil, err
		}
		r.kept = append(r.kept, slices.Concat([]byte("iCCPICC profile\x00\x00"), bytes.Join(parts, nil)))
	}
	r.pix = make([]byte, r.layout())
	n := r.passes[0].bytes
	for y := range s.Y {
		copy(r.pix[y*(1+n)+1:][:n], pix[y*stride:])
	}
	r.reduce()
	return r, nil
}

// encodePNG encodes a plain image.
func encodePNG(ctx context.Context, m image.Image, profile []byte, level int) ([]byte, error) {
	r, err := rasterOf(ctx, m, profile)
	if err != nil {
		return nil, err
	}
	return r.encode(ctx, level)
}

// encode writes the PNG; the rows are filtered in place.
func (r *raster) encode(ctx context.Context, level int) ([]byte, error) {
	if r.colour != pngPalette && r.depth >= 8 {
		if err := r.filter(ctx); err != nil {
			return nil, err
		}
	}
	parts, err := newDeflater(level).stream(ctx, r.pix)
	if err != nil {
		return nil, err
	}
	total := 1024 + len(r.palette) + len(r.trns)
	for _, p := range r.kept {
		total += 12 + len(p)
	}
	for _, p := range parts {
		total += 12 + len(p)
	}
	out := append(make([]byte, 0, total), pngSignature...)
	chunk := func(name string, body []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
		from := len(out)
		out = append(append(out, name...), body...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[from:]))
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(r.width))
	head = binary.BigEndian.AppendUint32(head, uint32(r.height))
	interlaced := byte(0)
	if r.interlaced {
		interlaced = 1
	}
	chunk("IHDR", append(head, byte(r.depth), byte(r.colour), 0, 0, interlaced))
	for _, k := range r.kept {
		chunk(string(k[:4]), k[4:])
	}
	if r.palette != nil {
		chunk("PLTE", r.palette)
	}
	if r.trns != nil {
		chunk("tRNS", r.trns)
	}
	for _, p := range parts {
		chunk("IDAT", p)
	}
	chunk("IEND", nil)
	return out, nil
}

// filter chooses for each row the filter that leaves the smallest differences.
// From the last row to the first each replaces its row, since it needs only the
// one above; the row above a piece of work is set aside first.
func (r *raster) filter(ctx context.Context) error {
	type piece struct {
		at, rows, bytes int
		above           []byte
	}
	var pieces []piece
	at := 0
	for _, p := range r.passes {
		above := make([]byte, p.bytes)
		for y := 0; y < p.rows; y += rowsAtOnce {
			n := min(rowsAtOnce, p.rows-y)
			pieces = append(pieces, piece{at, n, p.bytes, above})
			at += n * (1 + p.bytes)
			above = bytes.Clone(r.pix[at-p.bytes : at])
		}
	}
	n := r.bits() / 8
	return forEach(ctx, len(pieces), func(i int) error {
		p := pieces[i]
		stride := 1 + p.bytes
		scratch := make([]byte, 4*p.bytes)
		for y := p.rows - 1; y >= 0; y-- {
			row := r.pix[p.at+y*stride:][:stride]
			above := p.above
			if y > 0 {
				above = r.pix[p.at+(y-1)*stride+1:][:p.bytes]
			}
			row[0] = filterRow(row[1:], above, scratch, n)
		}
		return nil
	})
}

// filterRow replaces a row of pixels of n bytes by its differences under the
// filter with the smallest sum of them, and returns which that is.
func filterRow(row, above, scratch []byte, n int) byte {
	w := len(row)
	above = above[:w]
	sub, up, mean, pth := scratch[:w], scratch[w:2*w], scratch[2*w:3*w], scratch[3*w:4*w]
	var sums [5]int
	for i := range min(n, w) {
		x, b := row[i], above[i]
		sub[i], up[i], mean[i], pth[i] = x, x-b, x-b/2, x-b
		sums[0] += size(x)
		sums[1] += size(x)
		sums[2] += size(x - b)
		sums[3] += size(x - b/2)
		sums[4] += size(x - b)
	}
	s0, s1, s2, s3, s4 := 0, 0, 0, 0, 0
	for i := n; i < w; i++ {
		x, a, b, c := row[i], row[i-n], above[i], above[i-n]
		d1, d2, d3, d4 := x-a, x-b, x-byte((int(a)+int(b))/2), x-paeth(a, b, c)
		sub[i], up[i], mean[i], pth[i] = d1, d2, d3, d4
		s0 += size(x)
		s1 += size(d1)
		s2 += size(d2)
		s3 += size(d3)
		s4 += size(d4)
	}
	best := 0
	for i, s := range [5]int{s0, s1, s2, s3, s4} {
		if sums[i] += s; sums[i] < sums[best] {
			best = i
		}
	}
	if best > 0 {
		copy(row, scratch[(best-1)*w:best*w])
	}
	return byte(best)
}

// size is the distance of a difference from zero.
func size(d byte) int {
	v := int(int8(d))
	return max(v, -v)
}
