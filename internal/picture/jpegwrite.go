package picture

import (
	"context"
	"encoding/binary"
	"image"
	"math/bits"
	"slices"
)

// quantBase holds the quantization tables of ITU-T T.81, K.1, for luminance and
// chrominance, in natural order.
var quantBase = [2][64]uint8{{
	16, 11, 10, 16, 24, 40, 51, 61,
	12, 12, 14, 19, 26, 58, 60, 55,
	14, 13, 16, 24, 40, 57, 69, 56,
	14, 17, 22, 29, 51, 87, 80, 62,
	18, 22, 37, 56, 68, 109, 103, 77,
	24, 35, 55, 64, 81, 104, 113, 92,
	49, 64, 78, 87, 103, 121, 120, 101,
	72, 92, 95, 98, 112, 100, 103, 99,
}, {
	17, 18, 24, 47, 99, 99, 99, 99,
	18, 21, 26, 66, 99, 99, 99, 99,
	24, 26, 56, 99, 99, 99, 99, 99,
	47, 66, 99, 99, 99, 99, 99, 99,
	99, 99, 99, 99, 99, 99, 99, 99,
	99, 99, 99, 99, 99, 99, 99, 99,
	99, 99, 99, 99, 99, 99, 99, 99,
	99, 99, 99, 99, 99, 99, 99, 99,
}}

// A quantTable holds the steps of a block's coefficients in zigzag order.
type quantTable [64]uint8

// quantTables returns the tables of a quality from 1 to 100, scaled as is usual
// since libjpeg.
func quantTables(quality int) (t [2]quantTable) {
	scale := 200 - 2*quality
	if quality < 50 {
		scale = 5000 / quality
	}
	for i := range t {
		for k, at := range zigzag {
			t[i][k] = uint8(min(max((int(quantBase[i][at])*scale+50)/100, 1), 255))
		}
	}
	return t
}

// A token is one Huffman-coded symbol and the bits that follow it: value << 16 |
// table << 8 | symbol. The table is 0 or 2 for the first coefficient of a block
// and 1 or 3 for the others; the low half of the symbol is the value's length.
type token uint32

const (
	endOfBlock = 0x00
	sixteen    = 0xf0 // zeros
)

// tokens is the coded form of some rows of MCUs, still without codes: these are
// chosen when all symbols have been counted.
type tokens struct {
	list  []token
	count [4][256]int
	first [4]int // index in list of each component's first block, -1 before it
	last  [4]int32
}

func (t *tokens) add(table, symbol, value uint32) {
	t.list = append(t.list, token(value<<16|table<<8|symbol))
	t.count[table&3][symbol&255]++
}

// lead adds the first coefficient of a block of component c. That of the band's
// first block is completed by join.
func (t *tokens) lead(c int, table uint32, v int32) {
	if t.first[c] < 0 {
		t.first[c] = len(t.list)
		t.list = append(t.list, token(table<<8))
		t.last[c] = v
		t.list[t.first[c]] |= token(uint32(v)&0xffff) << 16
		return
	}
	d := v - t.last[c]
	t.last[c] = v
	size, value := magnitude(d)
	t.add(table, size, value)
}

// magnitude returns the length of v's code and its bits.
func magnitude(v int32) (size, value uint32) {
	sign := uint32(v >> 31)
	size = uint32(bits.Len32((uint32(v) ^ sign) - sign))
	return size, (uint32(v) + sign) & (1<<size - 1)
}

// maxAC is the largest coefficient after the first that a baseline JPEG holds.
const maxAC = 1023

// clampDC keeps a first coefficient to what a baseline JPEG holds.
func clampDC(v int32) int32 { return min(max(v, -1024), 1023) }

// rest adds the coefficients of a block after the first that are not zero, in
// ascending order, through put, and the end.
type rest struct {
	t     *tokens
	table uint32
	at    int // of the last coefficient added
}

func (r *rest) put(k int, magnitude, sign uint32) {
	run := uint32(k - r.at - 1)
	for ; run > 15; run -= 16 {
		r.t.add(r.table, sixteen, 0)
	}
	r.at = k
	magnitude = min(magnitude, maxAC)
	size := uint32(bits.Len32(magnitude))
	r.t.add(r.table, run<<4|size, (magnitude^sign)&(1<<size-1))
}

func (r *rest) end() {
	if r.at != 63 {
		r.t.add(r.table, endOfBlock, 0)
	}
}

// rescale turns coefficients of one table into those of another: the factors
// are 16.16 fixed point.
type rescale [64]uint32

func newRescale(from *[64]uint16, to *quantTable) *rescale {
	r := new(rescale)
	for k := range r {
		r[k] = uint32(uint64(from[k]) << 16 / uint64(to[k]))
	}
	return r
}

// requantized adds block b of component c, rescaled. A coefficient halfway between
// two steps goes to the lower: many are where one step divides the other, and it
// is as near and shorter.
func (t *tokens) requantized(b *coefBlock, r *rescale, c int, table uint32) {
	t.lead(c, table, clampDC(int32((int64(b.coef[0])*int64(r[0])+1<<15)>>16)))
	out := rest{t: t, table: table + 1}
	for set := b.set; set != 0; set &= set - 1 {
		k := bits.TrailingZeros64(set) & 63
		v := int32(b.coef[k])
		sign := uint32(v >> 31)
		if q := (uint64((uint32(v)^sign)-sign)*uint64(r[k]) + 1<<15 - 1) >> 16; q != 0 {
			out.put(k, uint32(min(q, maxAC)), sign)
		}
	}
	out.end()
}

// quantized adds a block of component c that is given by its coefficients in
// natural order and the inverses of their steps in zigzag order.
func (t *tokens) quantized(b *[64]float32, inverse *[64]float32, c int, table uint32) {
	t.lead(c, table, clampDC(round(b[0]*inverse[0])))
	out := rest{t: t, table: table + 1}
	for k := 1; k < 64; k++ {
		if v := round(b[zigzag[k]&63] * inverse[k]); v != 0 {
			sign := uint32(v >> 31)
			out.put(k, (uint32(v)^sign)-sign, sign)
		}
	}
	out.end()
}

func round(v float32) int32 { return int32(v+16384.5) - 16384 }

func newTokens() *tokens { return &tokens{first: [4]int{-1, -1, -1, -1}} }

// A jpegWriter collects the bands of a JPEG and writes it.
type jpegWriter struct {
	width, height int
	comps         []jpegComp // tq is 0 or 1
	quant         [2]quantTable
	adobe         int // -1 for none
	profile       []byte
	bands         []*tokens
}

// bytes writes the image. It is nil where it would have limit bytes or more.
func (w *jpegWriter) bytes(ctx context.Context, limit int) ([]byte, error) {
	var count [4][256]int
	var prev [4]int32
	for _, b := range w.bands {
		for c, at := range b.first {
			if at < 0 {
				continue
			}
			t := b.list[at]
			table := uint32(t>>8) & 3
			size, value := magnitude(int32(int16(t>>16)) - prev[c])
			b.list[at] = token(value<<16 | table<<8 | size)
			b.count[table][size]++
			prev[c] = b.last[c]
		}
		for i := range count {
			for j := range count[i] {
				count[i][j] += b.count[i][j]
			}
		}
	}
	var codes [1024]uint32
	total := 0
	out := w.head()
	for i := range count {
		lengths, symbols := huffmanCode(&count[i])
		if len(symbols) == 0 {
			continue
		}
		out = append(out, 0xff, 0xc4)
		out = binary.BigEndian.AppendUint16(out, uint16(2+17+len(symbols)))
		out = append(out, byte(i&1<<4|i>>1))
		out = append(out, lengths[:]...)
		out = append(out, symbols...)
		code := uint32(0)
		k := 0
		for n, many := range lengths {
			for range many {
				s := symbols[k]
				size := uint32(s & 15)
				codes[i<<8|int(s)] = code<<size<<5 | (uint32(n) + 1 + size)
				total += count[i][s] * (n + 1 + int(size))
				code++
				k++
			}
			code <<= 1
		}
	}
	out = append(out, 0xff, 0xda, 0, byte(6+2*len(w.comps)), byte(len(w.comps)))
	for _, c := range w.comps {
		out = append(out, c.id, c.tq<<4|c.tq)
	}
	out = append(out, 0, 63, 0)
	if total /= 8; len(out)+total >= limit {
		return nil, nil
	}
	out = slices.Grow(out, total+total/64+64)
	e := bitWriter{out: out}
	for _, b := range w.bands {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.write(b.list, &codes)
	}
	return append(e.flush(), 0xff, 0xd9), nil
}

// head writes what stands before the Huffman tables.
func (w *jpegWriter) head() []byte {
	out := []byte{0xff, 0xd8}
	if w.adobe >= 0 {
		out = append(out, "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"...)
		out = append(out, byte(w.adobe))
	} else {
		out = append(out, "\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"...)
	}
	const most = 65535 - 2 - len(iccPrefix) - 2
	parts := (len(w.profile) + most - 1) / most
	for i := range parts {
		p := w.profile[i*most : min((i+1)*most, len(w.profile))]
		out = append(out, 0xff, 0xe2)
		out = binary.BigEndian.AppendUint16(out, uint16(2+len(iccPrefix)+2+len(p)))
		out = append(append(out, iccPrefix...), byte(i+1), byte(parts))
		out = append(out, p...)
	}
	tables := 0
	for _, c := range w.comps {
		tables = max(tables, int(c.tq)+1)
	}
	for i := range tables {
		out = append(append(out, 0xff, 0xdb, 0, 67, byte(i)), w.quant[i][:]...)
	}
	out = append(out, 0xff, 0xc0, 0, byte(8+3*len(w.comps)), 8,
		byte(w.height>>8), byte(w.height), byte(w.width>>8), byte(w.width), byte(len(w.comps)))
	for _, c := range w.comps {
		out = append(out, c.id, byte(c.h<<4|c.v), c.tq)
	}
	return out
}

// huffmanCode returns the best code of at most 16 bits for symbols that occur
// so often: how many codes there are of each length, and the symbols in the
// order of their codes.
func huffmanCode(count *[256]int) (lengths [16]byte, symbols []byte) {
	type node struct{ weight, parent int }
	var nodes []node
	for s, n := range count {
		if n > 0 {
			nodes = append(nodes, node{n, -1})
			symbols = append(symbols, byte(s))
		}
	}
	leaves := len(symbols)
	if leaves == 0 {
		return
	}
	// A further leaf, the rarest, takes the code of ones only, which is not
	// allowed.
	nodes = append(nodes, node{0, -1})
	for range leaves {
		a, b := -1, -1 // the two lightest trees
		for i, n := range nodes {
			switch {
			case n.parent >= 0:
			case a < 0 || n.weight < nodes[a].weight:
				a, b = i, a
			case b < 0 || n.weight < nodes[b].weight:
				b = i
			}
		}
		nodes[a].parent, nodes[b].parent = len(nodes), len(nodes)
		nodes = append(nodes, node{nodes[a].weight + nodes[b].weight, -1})
	}
	depth := make([]int, len(nodes))
	var of [300]int // leaves of each depth
	for i := len(nodes) - 2; i >= 0; i-- {
		depth[i] = depth[nodes[i].parent] + 1
		if i <= leaves {
			of[depth[i]]++
		}
	}
	// Codes that are too long: two leaves at the bottom leave it, one of them to
	// the place of their parent, the other beside a leaf from further up.
	for n := len(of) - 1; n > 16; n-- {
		for of[n] > 0 {
			up := n - 2
			for of[up] == 0 {
				up--
			}
			of[n] -= 2
			of[n-1]++
			of[up]--
			of[up+1] += 2
		}
	}
	for n := 16; n > 0; n-- { // the last code is the one of ones
		if of[n] > 0 {
			of[n]--
			break
		}
	}
	for n := range lengths {
		lengths[n] = byte(of[n+1])
	}
	slices.SortStableFunc(symbols, func(a, b byte) int { return count[b] - count[a] })
	return lengths, symbols
}

// A bitWriter appends entropy-coded data.
type bitWriter struct {
	out []byte
	acc uint64
	n   uint32 // bits in acc, below 32
}

// write appends tokens; codes holds for each table and symbol the code, moved up
// by the length of the value, << 5 | the length of both.
func (w *bitWriter) write(list []token, codes *[1024]uint32) {
	out, acc, n := w.out, w.acc, w.n
	for _, t := range list {
		e := codes[t&1023]
		acc = acc<<(e&31) | uint64(e>>5|uint32(t>>16))
		if n += e & 31; n < 32 {
			continue
		}
		n -= 32
		v := uint32(acc >> (n & 31))
		if u := ^v; (u-0x01010101)&^u&0x80808080 == 0 {
			out = append(out, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
			continue
		}
		for s := 24; s >= 0; s -= 8 {
			if out = append(out, byte(v>>s)); byte(v>>s) == 0xff {
				out = append(out, 0)
			}
		}
	}
	w.out, w.acc, w.n = out, acc, n
}

// flush fills the last byte with ones and returns all.
func (w *bitWriter) flush() []byte {
	pad := (8 - w.n%8) % 8
	w.acc = w.acc<<pad | (1<<pad - 1)
	for n := int(w.n+pad) - 8; n >= 0; n -= 8 {
		if w.out = append(w.out, byte(w.acc>>n)); byte(w.acc>>n) == 0xff {
			w.out = append(w.out, 0)
		}
	}
	return w.out
}

// requantize compresses a JPEG without going back to its pixels: it changes the
// steps of the coefficients, and the chrominance, where it has the resolution
// of the luminance in either direction, is halved. It is nil where the result
// would not be smaller, and the error errNotSequential where this cannot be
// done.
func requantize(ctx context.Context, data []byte, quality int) ([]byte, error) {
	f, err := parseJPEG(data)
	if err != nil {
		return nil, err
	}
	if f.rgb() {
		return nil, errNotSequential
	}
	r, err := newCoefReader(f)
	if err != nil {
		return nil, err
	}
	w := &jpegWriter{width: f.width, height: f.height, quant: quantTables(quality), adobe: -1}
	switch w.profile = f.profile(); len(f.comps) {
	case 1:
		w.profile = profileOf(w.profile, "GRAY")
	case 3:
		w.profile = profileOf(w.profile, "RGB ")
	case 4:
		w.adobe = max(f.adobe, 0)
	}
	var scales [4]*rescale
	for i, c := range f.comps {
		c.tq = 0
		if len(f.comps) == 3 && i > 0 || f.adobe == 2 && (i == 1 || i == 2) {
			c.tq = 1
		}
		c.id = byte(i + 1)
		w.comps = append(w.comps, c)
		scales[i] = newRescale(f.quant[f.comps[i].tq], &w.quant[c.tq])
	}
	var m *merger
	if h, v, ok := mergeable(f.comps); ok {
		m = newMerger(h, v, [2]*[64]uint16{f.quant[f.comps[1].tq], f.quant[f.comps[2].tq]}, &w.quant[1])
		w.comps[0].h, w.comps[0].v = 2, 2
	}
	const rows = 2 // of MCUs in a band
	w.bands = make([]*tokens, (r.down+rows-1)/rows)
	err = r.each(ctx, rows, func(b *coefBand, have int) {
		t := newTokens()
		w.bands[b.first/rows] = t
		if m != nil {
			m.tokens(t, b, r, have, scales[0])
			return
		}
		for y := range have {
			for x := range r.across {
				for i, c := range w.comps {
					for v := range c.v {
						at := ((y*c.v+v)*r.across + x) * c.h
						for h := range c.h {
							t.requantized(&b.blocks[i][at+h], scales[i], i, uint32(c.tq)*2)
						}
					}
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return w.bytes(ctx, len(data))
}

// encodeJPEG encodes an image without alpha at 4:2:0, a gray one as gray.
func encodeJPEG(ctx context.Context, m image.Image, quality int, profile []byte) ([]byte, error) {
	s := m.Bounds().Size()
	w := &jpegWriter{width: s.X, height: s.Y, quant: quantTables(quality), adobe: -1}
	planes := []plane{}
	down := (s.Y + 15) / 16
	if gray, ok := m.(*image.Gray); ok {
		w.profile = profileOf(profile, "GRAY")
		w.comps = []jpegComp{{id: 1, h: 1, v: 1}}
		planes = append(planes, plane{gray.Pix, gray.Stride, s.X, s.Y})
	} else {
		w.profile = profileOf(profile, "RGB ")
		w.comps = []jpegComp{{id: 1, h: 2, v: 2}, {id: 2, h: 1, v: 1, tq: 1}, {id: 3, h: 1, v: 1, tq: 1}}
		c, err := to420(ctx, m)
		if err != nil {
			return nil, err
		}
		cw, ch := (s.X+1)/2, (s.Y+1)/2
		planes = append(planes, plane{c.Y, c.YStride, s.X, s.Y}, plane{c.Cb, c.CStride, cw, ch}, plane{c.Cr, c.CStride, cw, ch})
	}
	var inverse [2][64]float32
	for i := range inverse {
		for k, at := range zigzag {
			inverse[i][k] = 1 / (float32(w.quant[i][k]) * dctScale[at/8] * dctScale[at%8] * 8)
		}
	}
	w.bands = make([]*tokens, down)
	err := forEach(ctx, down, func(y int) error {
		t := newTokens()
		w.bands[y] = t
		var b [64]float32
		if len(planes) == 1 {
			for v := range min(2, (s.Y-16*y+7)/8) {
				for x := range (s.X + 7) / 8 {
					planes[0].block(&b, x, 2*y+v)
					forwardDCT(&b)
					t.quantized(&b, &inverse[0], 0, 0)
				}
			}
			return nil
		}
		for x := range (s.X + 15) / 16 {
			for i := range 4 {
				planes[0].block(&b, 2*x+i&1, 2*y+i>>1)
				forwardDCT(&b)
				t.quantized(&b, &inverse[0], 0, 0)
			}
			for i := 1; i < 3; i++ {
				planes[i].block(&b, x, y)
				forwardDCT(&b)
				t.quantized(&b, &inverse[1], i, 2)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w.bytes(ctx, 1<<62)
}

// A plane is one component of an image.
type plane struct {
	pix           []byte
	stride        int
	width, height int
}

// block takes the block in column x and row y, centred on zero; beyond its edges
// the plane repeats its last column and row.
func (p *plane) block(b *[64]float32, x, y int) {
	x *= 8
	y *= 8
	if x+8 <= p.width && y+8 <= p.height {
		for j := range 8 {
			row := p.pix[(y+j)*p.stride+x:][:8]
			for i, v := range row {
				b[8*j+i] = float32(int32(v) - 128)
			}
		}
		return
	}
	for j := range 8 {
		row := p.pix[min(y+j, p.height-1)*p.stride:]
		for i := range 8 {
			b[8*j+i] = float32(int32(row[min(x+i, p.width-1)]) - 128)
		}
	}
}

// dctScale is what forwardDCT leaves in each row and column, beside a factor of
// 8 in all.
var dctScale = [8]float32{1, 1.387039845, 1.306562965, 1.175875602, 1, 0.785694958, 0.541196100, 0.275899379}

// forwardDCT transforms a block in place by the method of Arai, Agui and
// Nakajima.
func forwardDCT(b *[64]float32) {
	for i := 0; i < 64; i += 8 {
		r := (*[8]float32)(b[i:])
		r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7] = dct8(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7])
	}
	for i := range 8 {
		b[i], b[8+i], b[16+i], b[24+i], b[32+i], b[40+i], b[48+i], b[56+i] =
			dct8(b[i], b[8+i], b[16+i], b[24+i], b[32+i], b[40+i], b[48+i], b[56+i])
	}
}

func dct8(a0, a1, a2, a3, a4, a5, a6, a7 float32) (y0, y1, y2, y3, y4, y5, y6, y7 float32) {
	s0, s1, s2, s3 := a0+a7, a1+a6, a2+a5, a3+a4
	d0, d1, d2, d3 := a0-a7, a1-a6, a2-a5, a3-a4
	e0, e1, e2, e3 := s0+s3, s1+s2, s1-s2, s0-s3
	z := (e2 + e3) * 0.707106781
	y0, y4, y2, y6 = e0+e1, e0-e1, e3+z, e3-z
	f0, f1, f2 := d3+d2, d2+d1, d1+d0
	t := (f0 - f2) * 0.382683433
	g0, g2, g1 := 0.541196100*f0+t, 1.306562965*f2+t, f1*0.707106781
	p, q := d0+g1, d0-g1
	return y0, p + g2, y2, q - g0, y4, q + g0, y6, p - g2
}
