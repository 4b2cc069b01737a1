package picture

import (
	"math"
	"math/bits"
)

// mergeable tells by how many blocks across and down the chrominance has to be
// merged to have half the resolution of the luminance both ways; ok is false
// where it has that, or something unusual.
func mergeable(comps []jpegComp) (h, v int, ok bool) {
	if len(comps) != 3 || comps[1].h*comps[1].v*comps[2].h*comps[2].v != 1 || comps[0].h > 2 || comps[0].v > 2 {
		return 0, 0, false
	}
	h, v = 2/comps[0].h, 2/comps[0].v
	return h, v, h*v > 1
}

// A fold averages pairs of samples while they are coefficients: in each
// direction that maps the eight frequencies of a block onto four. Frequency u
// becomes u with the factor cos(uπ/16), and those above four fold back to 8-u
// with the sign turned.
type fold struct {
	weight [64]float32 // of each coefficient in zigzag order, its step included
	cell   [64]uint8   // where it goes to, in natural order
}

// newFold folds across, down or both; from are the steps.
func newFold(across, down bool, from *[64]uint16) *fold {
	one := func(u int, halve bool) (int, float64) {
		switch {
		case !halve:
			return u, 1
		case u > 4:
			return 8 - u, -math.Cos(float64(u) * math.Pi / 16)
		case u == 4:
			return 0, 0
		}
		return u, math.Cos(float64(u) * math.Pi / 16)
	}
	f := new(fold)
	for k, at := range zigzag {
		x, a := one(int(at%8), across)
		y, b := one(int(at/8), down)
		f.cell[k] = uint8(8*y + x)
		f.weight[k] = float32(a * b * float64(from[k]))
	}
	return f
}

func (f *fold) apply(dst *[64]float32, b *coefBlock) {
	*dst = [64]float32{}
	dst[0] = float32(b.coef[0]) * f.weight[0]
	for set := b.set; set != 0; set &= set - 1 {
		k := bits.TrailingZeros64(set) & 63
		dst[f.cell[k]&63] += float32(b.coef[k]) * f.weight[k]
	}
}

// A merger halves chrominance while it is made of coefficients: two folded
// blocks make one of eight frequencies again.
type merger struct {
	h, v    int // blocks merged across and down
	folds   [2]*fold
	inverse [64]float32 // of the new steps
	expand  [8][4]float32
}

func newMerger(h, v int, from [2]*[64]uint16, to *quantTable) *merger {
	m := &merger{h: h, v: v}
	for i := range from {
		m.folds[i] = newFold(h == 2, v == 2, from[i])
	}
	for k := range to {
		m.inverse[k] = 1 / float32(to[k])
	}
	norm := func(u int) float64 {
		if u == 0 {
			return math.Sqrt(1. / 8)
		}
		return 0.5
	}
	for u := range m.expand {
		for w := range m.expand[u] {
			sum := 0.
			for n := range 4 {
				sum += math.Cos(float64((2*n+1)*w)*math.Pi/8) * math.Cos(float64((2*n+1)*u)*math.Pi/16)
			}
			m.expand[u][w] = float32(sum * norm(u) * norm(w))
		}
	}
	return m
}

// join makes eight frequencies of the four of one half and the four of the
// other. The second half is the mirror image of a first one, which turns the
// sign of odd frequencies.
func (m *merger) join(a0, a1, a2, a3, b0, b1, b2, b3 float32) (out [8]float32) {
	e0, e1, e2, e3 := a0+b0, a1-b1, a2+b2, a3-b3
	o0, o1, o2, o3 := a0-b0, a1+b1, a2-b2, a3+b3
	for u := 0; u < 8; u += 2 {
		t := &m.expand[u]
		out[u] = e0*t[0] + e1*t[1] + e2*t[2] + e3*t[3]
		t = &m.expand[u+1]
		out[u+1] = o0*t[0] + o1*t[1] + o2*t[2] + o3*t[3]
	}
	return out
}

// mirrored returns what continues a block of four frequencies as its mirror
// image, in the given direction.
func mirrored(b *[64]float32, down bool) (out [64]float32) {
	for i, v := range b {
		if (!down && i%2 == 1) || (down && i/8%2 == 1) {
			v = -v
		}
		out[i] = v
	}
	return out
}

// block merges the blocks of component i at row y and column x, of which the
// band has rows x across in all. What is missing at the edges is mirrored.
func (m *merger) block(out *[64]float32, blocks []coefBlock, i, x, y, across, rows int) {
	var half [2][64]float32 // upper and lower
	for j := range m.v {
		if y*m.v+j >= rows {
			half[j] = mirrored(&half[0], true)
			continue
		}
		at := (y*m.v+j)*across + x*m.h
		if m.h == 1 {
			m.folds[i].apply(&half[j], &blocks[at])
			continue
		}
		var a, b [64]float32
		m.folds[i].apply(&a, &blocks[at])
		if x*m.h+1 < across {
			m.folds[i].apply(&b, &blocks[at+1])
		} else {
			b = mirrored(&a, false)
		}
		for r := 0; r < 8*(8/m.v); r += 8 {
			*(*[8]float32)(half[j][r:]) = m.join(a[r], a[r+1], a[r+2], a[r+3], b[r], b[r+1], b[r+2], b[r+3])
		}
	}
	if m.v == 1 {
		*out = half[0]
		return
	}
	a, b := &half[0], &half[1]
	for c := range 8 {
		for r, v := range m.join(a[c], a[8+c], a[16+c], a[24+c], b[c], b[8+c], b[16+c], b[24+c]) {
			out[8*r+c] = v
		}
	}
}

// tokens adds the band b, of which rows rows of MCUs are there, at 4:2:0.
func (m *merger) tokens(t *tokens, b *coefBand, r *coefReader, rows int, luma *rescale) {
	h, v := r.comps[0].h, r.comps[0].v
	across, down := r.across*h, rows*v // blocks of luminance
	var out [64]float32
	for y := range (down + 1) / 2 {
		for x := range (across + 1) / 2 {
			for i := range 4 {
				bx, by := 2*x+i&1, 2*y+i>>1
				if bx < across && by < down {
					t.requantized(&b.blocks[0][by*across+bx], luma, 0, 0)
				} else { // beyond the edge: no change
					t.lead(0, 0, t.last[0])
					t.add(1, endOfBlock, 0)
				}
			}
			for i := range 2 {
				m.block(&out, b.blocks[1+i], i, x, y, r.across, rows)
				t.quantized(&out, &m.inverse, 1+i, 2)
			}
		}
	}
}
