package textdiff

import (
	"context"
	"time"
)

const (
	// maxCost is the number of edits up to which a smallest diff of a part is
	// looked for from each of its ends; beyond, the part is divided where the
	// search has come furthest. It is also what GNU diff allows.
	maxCost = 4096

	// hurriedCost is that number once the time is up.
	hurriedCost = 16

	// patience is how many steps are taken between two looks at the clock.
	patience = 1 << 20
)

// A sequence is the lines of a text that the other text has as well. The others
// cannot be kept, so leaving them out loses nothing and may save nearly all of
// the search.
type sequence struct {
	line []int32 // number of the line
	at   []int32 // where it stands in the text
}

func shared(lines []int32, common []bool) sequence {
	n := 0
	for _, line := range lines {
		if line != alone && common[line] {
			n++
		}
	}
	s := sequence{make([]int32, 0, n), make([]int32, 0, n)}
	for i, line := range lines {
		if line != alone && common[line] {
			s.line, s.at = append(s.line, line), append(s.at, int32(i))
		}
	}
	return s
}

// A search finds a longest common subsequence by Myers's algorithm in linear
// space: paths grow from both corners of the edit graph, one edit at a time,
// until two meet in the middle; both halves are then searched likewise. That of
// go-diff serves the tests alone: it cannot be cancelled, and on repeated lines
// it takes quadratic time whatever its timeout.
type search struct {
	a, b         sequence
	keptA, keptB []bool // by place in the text

	forward, backward []int // by diagonal, the x furthest from the corner
	cost              int
	deadline          time.Time
	ctx               context.Context
	steps             int
	err               error
}

func (s *search) run() error {
	width := 2*min(s.cost, len(s.a.line)+len(s.b.line)+1) + 3
	s.forward, s.backward = make([]int, width), make([]int, width)
	if s.err = s.ctx.Err(); s.err == nil {
		s.part(0, len(s.a.line), 0, len(s.b.line))
	}
	return s.err
}

// part searches the lines a0 to a1 of a and b0 to b1 of b.
func (s *search) part(a0, a1, b0, b1 int) {
	for s.err == nil {
		for a0 < a1 && b0 < b1 && s.a.line[a0] == s.b.line[b0] {
			s.keep(a0, b0)
			a0, b0 = a0+1, b0+1
		}
		for a0 < a1 && b0 < b1 && s.a.line[a1-1] == s.b.line[b1-1] {
			a1, b1 = a1-1, b1-1
			s.keep(a1, b1)
		}
		if a0 == a1 || b0 == b1 {
			return
		}
		x, y := s.split(a0, a1, b0, b1)
		// The smaller half recurses, so the stack stays shallow.
		if x-a0+y-b0 < a1-x+b1-y {
			s.part(a0, x, b0, y)
			a0, b0 = x, y
		} else {
			s.part(x, a1, y, b1)
			a1, b1 = x, y
		}
	}
}

func (s *search) keep(i, j int) {
	s.keptA[s.a.at[i]], s.keptB[s.b.at[j]] = true, true
}

// split returns a point on a shortest path through a part, both of whose
// corners differ, or on a good one where that takes too long. It lies at least
// one step from each corner.
func (s *search) split(a0, a1, b0, b1 int) (x, y int) {
	// Diagonal k holds the points with x-y == k. The forward paths begin on first,
	// the backward paths on last, and the slices hold the diagonals around them:
	// k stands at f[df+k] and at g[dg+k].
	first, last := a0-b0, a1-b1
	lowest, highest := a0-b1, a1-b0
	a, b, f, g := s.a.line, s.b.line, s.forward, s.backward
	df, dg := len(f)/2-first, len(g)/2-last
	f[df+first], g[dg+last] = a0, a1
	odd := (first-last)&1 != 0
	fmin, fmax, gmin, gmax := first, first, last, last
	for cost := 1; ; cost++ {
		if fmin > lowest {
			fmin--
			f[df+fmin-1] = -1
		} else {
			fmin++
		}
		if fmax < highest {
			fmax++
			f[df+fmax+1] = -1
		} else {
			fmax--
		}
		for k := fmax; k >= fmin; k -= 2 {
			x := max(f[df+k-1]+1, f[df+k+1])
			for y := x - k; x < a1 && y < b1 && a[x] == b[y]; y++ {
				x++
			}
			f[df+k] = x
			if odd && gmin <= k && k <= gmax && g[dg+k] <= x {
				return x, x - k
			}
		}
		if gmin > lowest {
			gmin--
			g[dg+gmin-1] = a1 + 1
		} else {
			gmin++
		}
		if gmax < highest {
			gmax++
			g[dg+gmax+1] = a1 + 1
		} else {
			gmax--
		}
		for k := gmax; k >= gmin; k -= 2 {
			x := min(g[dg+k-1], g[dg+k+1]-1)
			for y := x - k; x > a0 && y > b0 && a[x-1] == b[y-1]; y-- {
				x--
			}
			g[dg+k] = x
			if !odd && fmin <= k && k <= fmax && x <= f[df+k] {
				return x, x - k
			}
		}
		if s.look(fmax - fmin + gmax - gmin); cost >= s.cost {
			break
		}
	}
	best := -1 // the most steps from a corner
	for k := fmax; k >= fmin; k -= 2 {
		px := min(f[df+k], a1, b1+k)
		if gone := 2*px - k - a0 - b0; gone > best {
			best, x, y = gone, px, px-k
		}
	}
	for k := gmax; k >= gmin; k -= 2 {
		px := max(g[dg+k], a0, b0+k)
		if gone := a1 + b1 - 2*px + k; gone > best {
			best, x, y = gone, px, px-k
		}
	}
	return x, y
}

// look counts steps, and now and then heeds the clock and the context.
func (s *search) look(steps int) {
	if s.steps += steps; s.steps < patience {
		return
	}
	s.steps = 0
	if s.err = s.ctx.Err(); s.err != nil || time.Now().After(s.deadline) {
		s.cost = hurriedCost
	}
}
