package picture

import (
	"cmp"
	"context"
	"image"
	"math"
	"runtime"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// halfJPEG decodes a JPEG at half its size: every pixel is the average of two by
// two, which the coefficients give without the pixels. The error is
// errNotSequential where this cannot be done.
func halfJPEG(ctx context.Context, data []byte) (image.Image, error) {
	f, err := parseJPEG(data)
	if err != nil {
		return nil, err
	}
	r, err := newCoefReader(f)
	if err != nil {
		return nil, err
	}
	ratio := image.YCbCrSubsampleRatio444
	switch len(f.comps) {
	case 1:
	case 3:
		if f.rgb() || f.comps[1].h*f.comps[1].v*f.comps[2].h*f.comps[2].v != 1 {
			return nil, errNotSequential
		}
		switch [2]int{f.comps[0].h, f.comps[0].v} {
		case [2]int{1, 1}:
		case [2]int{2, 1}:
			ratio = image.YCbCrSubsampleRatio422
		case [2]int{1, 2}:
			ratio = image.YCbCrSubsampleRatio440
		case [2]int{2, 2}:
			ratio = image.YCbCrSubsampleRatio420
		default:
			return nil, errNotSequential
		}
	default:
		return nil, errNotSequential
	}
	var planes [3][]byte
	var folds [3]*fold
	for i, c := range f.comps {
		planes[i] = make([]byte, r.across*c.h*4*r.down*c.v*4)
		folds[i] = newFold(true, true, f.quant[c.tq])
	}
	const rows = 2
	err = r.each(ctx, rows, func(b *coefBand, have int) {
		for i, c := range f.comps {
			across := r.across * c.h
			for y := range have * c.v {
				row := planes[i][(b.first*c.v+y)*4*across*4:]
				for x := range across {
					folds[i].inverse(row[4*x:], across*4, &b.blocks[i][y*across+x])
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	rect := image.Rect(0, 0, (f.width+1)/2, (f.height+1)/2)
	stride := r.across * f.comps[0].h * 4
	if len(f.comps) == 1 {
		return &image.Gray{Pix: planes[0], Stride: stride, Rect: rect}, nil
	}
	return &image.YCbCr{Y: planes[0], Cb: planes[1], Cr: planes[2], YStride: stride, CStride: r.across * 4,
		SubsampleRatio: ratio, Rect: rect}, nil
}

// each reads all bands and calls f for them, at the same time and in any order,
// with how many of their rows are there.
func (r *coefReader) each(ctx context.Context, rows int, f func(b *coefBand, have int)) error {
	var pool sync.Pool
	g, ctx := parallel.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var failed error
	for done := 0; done < r.down && failed == nil; done += rows {
		b, ok := pool.Get().(*coefBand)
		if !ok {
			b = new(coefBand)
		}
		if failed = ctx.Err(); failed == nil {
			failed = r.read(b, rows)
		}
		if failed != nil {
			break
		}
		g.Go(func() error {
			f(b, min(rows, r.down-done))
			pool.Put(b)
			return nil
		})
	}
	return cmp.Or(g.Wait(), failed)
}

// inverse writes the four by four samples that a folded block stands for.
func (f *fold) inverse(dst []byte, stride int, b *coefBlock) {
	if b.set == 0 {
		v := sample(float32(b.coef[0]) * f.weight[0] / 8)
		for y := range 4 {
			*(*[4]byte)(dst[y*stride:]) = [4]byte{v, v, v, v}
		}
		return
	}
	var c [64]float32
	f.apply(&c, b)
	for x := range 4 {
		c[x], c[8+x], c[16+x], c[24+x] = inverse4(c[x], c[8+x], c[16+x], c[24+x])
	}
	for y := range 4 {
		r := (*[4]float32)(c[8*y:])
		p, q, s, t := inverse4(r[0], r[1], r[2], r[3])
		*(*[4]byte)(dst[y*stride:]) = [4]byte{sample(p), sample(q), sample(s), sample(t)}
	}
}

func inverse4(a, b, c, d float32) (float32, float32, float32, float32) {
	const c1, c3 = 0.4619397662556434, 0.1913417161825449 // halves of the cosines of π/8 and 3π/8
	const r = math.Sqrt2 / 4
	a *= r
	c *= r
	p, q := a+c, a-c
	s, t := c1*b+c3*d, c3*b-c1*d
	return p + s, q + t, q - t, p - s
}

func sample(v float32) byte { return byte(min(max(int32(v+128.5), 0), 255)) }
