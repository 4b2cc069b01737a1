package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Measures of the picture, in pixels: four panels, each with room for the
// values on the left and the names of curves on the right.
const (
	panelWidth, panelHeight         = 480, 300
	left, right, above, under       = 62, 170, 44, 44
	plotWidth, plotHeight           = panelWidth - left - right, panelHeight - above - under
	lineHeight, footer, markerSize  = 14, 30, 3.5
	pictureWidth, pictureHeightFour = 2 * panelWidth, 2*panelHeight + footer
)

// style has one set of colours for light surroundings and one for dark.
const style = `text{font:12px system-ui,"Segoe UI","DejaVu Sans",Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-weight:600;font-size:13px}
.paper{fill:#ffffff}.grid{stroke:#d8dee4;fill:none}.frame{stroke:#818b98;fill:none}.slope{stroke:#a3acb6;stroke-dasharray:1 4;fill:none}
.c0{stroke:#0969da;fill:#0969da}.c1{stroke:#bc4c00;fill:#bc4c00}.c2{stroke:#1a7f37;fill:#1a7f37}.c3{stroke:#8250df;fill:#8250df}
.curve{fill:none;stroke-width:2}
@media (prefers-color-scheme: dark){text{fill:#e6edf3}
.paper{fill:#0d1117}.grid{stroke:#2b323b}.frame{stroke:#7d8590}.slope{stroke:#59636e}
.c0{stroke:#58a6ff;fill:#58a6ff}.c1{stroke:#f0883e;fill:#f0883e}.c2{stroke:#3fb950;fill:#3fb950}.c3{stroke:#bc8cff;fill:#bc8cff}
.curve{fill:none}}
`

// A panel is one diagram; both axes are logarithmic.
type panel struct {
	title, under string
	curves       []curve
	value        func(point) float64 // 0 where it is not known
	size         func(float64) string
	show         func(float64) string
	slopes       bool // show what grows in proportion to the size
}

// draw is the picture of how time and memory grow, as SVG.
func draw(trees, files []curve) string {
	ms := func(p point) float64 { return float64(p.median) / 1e6 }
	mb := func(p point) float64 { return float64(p.peak) / 1e6 }
	count := func(v float64) string { return number(math.Round(v)) }
	bytes := func(v float64) string { return bytesText(int64(math.Round(v))) }
	memory := func(v float64) string { return number(v) + " MB" }
	panels := []panel{
		{"Trees: time", "files in the tree", trees, ms, count, timeText, true},
		{"Files: time", "size of the file", files, ms, bytes, timeText, true},
	}
	height := panelHeight + footer
	if slices.ContainsFunc(trees, func(c curve) bool { return slices.ContainsFunc(c.points, func(p point) bool { return p.peak > 0 }) }) {
		panels = append(panels,
			panel{"Trees: peak memory", "files in the tree", trees, mb, count, memory, false},
			panel{"Files: peak memory", "size of the file", files, mb, bytes, memory, false})
		height = pictureHeightFour
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(&b, "<title>Time and peak memory over the size of trees and files</title>\n<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d"/>`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<clipPath id="plot"><rect width="%d" height="%d"/></clipPath>`+"\n", plotWidth, plotHeight)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", left+i%2*panelWidth, above+i/2*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	write(&b, "text", `x="16" y="`+fmt.Sprint(height-12)+`"`, "Both axes are logarithmic. Dotted lines rise in proportion to the size.")
	b.WriteString("</svg>\n")
	return b.String()
}

func timeText(ms float64) string {
	if ms >= 1000 {
		return number(ms/1000) + " s"
	}
	return number(ms) + " ms"
}

// write writes an element with a text.
func write(b *strings.Builder, element, attributes, text string) {
	fmt.Fprintf(b, "<%s %s>", element, attributes)
	_ = xml.EscapeText(b, []byte(text)) // a Builder does not fail
	fmt.Fprintf(b, "</%s>\n", element)
}

// A scale maps the logarithms of values to pixels.
type scale struct{ low, high, length float64 }

func (s scale) at(v float64) float64 { return (math.Log10(v) - s.low) / (s.high - s.low) * s.length }

// decades are the powers of ten on the scale.
func (s scale) decades() []float64 {
	var all []float64
	for e := math.Ceil(s.low - 1e-9); e <= s.high+1e-9; e++ {
		all = append(all, math.Pow(10, e))
	}
	return all
}

// scales are those that hold all points: sizes just, values up to whole decades.
func (p panel) scales() (x, y scale, ok bool) {
	x = scale{math.Inf(1), math.Inf(-1), plotWidth}
	y = scale{math.Inf(1), math.Inf(-1), plotHeight}
	for _, c := range p.curves {
		for _, o := range c.points {
			v := p.value(o)
			if v <= 0 {
				continue
			}
			x.low, x.high = min(x.low, math.Log10(float64(o.size))), max(x.high, math.Log10(float64(o.size)))
			y.low, y.high = min(y.low, math.Floor(math.Log10(v))), max(y.high, math.Ceil(math.Log10(v)))
			ok = true
		}
	}
	if x.low == x.high {
		x.high++
	}
	if y.low == y.high {
		y.high++
	}
	return x, y, ok
}

func (p panel) draw(b *strings.Builder) {
	write(b, "text", fmt.Sprintf(`class="title" x="0" y="%d"`, -above/2+4), p.title)
	x, y, ok := p.scales()
	if !ok {
		return
	}
	for _, v := range x.decades() {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f 0V%d"/>`+"\n", x.at(v), plotHeight)
		write(b, "text", fmt.Sprintf(`x="%.1f" y="%d" text-anchor="middle"`, x.at(v), plotHeight+16), p.size(v))
	}
	write(b, "text", fmt.Sprintf(`x="%d" y="%d" text-anchor="middle"`, plotWidth/2, plotHeight+32), p.under)
	for _, v := range y.decades() {
		fmt.Fprintf(b, `<path class="grid" d="M0 %.1fH%d"/>`+"\n", plotHeight-y.at(v), plotWidth)
		write(b, "text", fmt.Sprintf(`x="-6" y="%.1f" text-anchor="end"`, plotHeight-y.at(v)+4), p.show(v))
	}
	if p.slopes {
		for e := y.low - (x.high - x.low); e < y.high; e++ {
			e := math.Floor(e)
			fmt.Fprintf(b, `<path class="slope" clip-path="url(#plot)" d="M0 %.1fL%d %.1f"/>`+"\n", plotHeight-y.at(math.Pow(10, e)), plotWidth, plotHeight-y.at(math.Pow(10, e+x.high-x.low)))
		}
	}
	fmt.Fprintf(b, `<path class="frame" d="M0 0V%dH%d"/>`+"\n", plotHeight, plotWidth)
	type end struct {
		at    float64
		curve int
	}
	var ends []end
	for i, c := range p.curves {
		var path []string
		last := 0.0
		for _, o := range c.points {
			if v := p.value(o); v > 0 {
				px, py := x.at(float64(o.size)), plotHeight-y.at(v)
				path = append(path, fmt.Sprintf("%.1f %.1f", px, py))
				mark(b, i, px, py)
				last = py
			}
		}
		if len(path) > 0 {
			fmt.Fprintf(b, `<path class="c%d curve" d="M%s"/>`+"\n", i, strings.Join(path, "L"))
			ends = append(ends, end{last, i})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	var places []float64
	for _, e := range ends {
		places = append(places, e.at)
	}
	for i, at := range apart(places, lineHeight, plotHeight) {
		e := ends[i]
		fmt.Fprintf(b, `<path class="c%d" d="M%d %.1fL%d %.1f"/>`+"\n", e.curve, plotWidth+5, e.at, plotWidth+14, at)
		write(b, "text", fmt.Sprintf(`x="%d" y="%.1f"`, plotWidth+17, at+4), p.curves[e.curve].name)
	}
}

// apart moves sorted places so far that they keep a distance, none beyond last.
func apart(places []float64, distance, last float64) []float64 {
	places = slices.Clone(places)
	for i := 1; i < len(places); i++ {
		places[i] = max(places[i], places[i-1]+distance)
	}
	for i := len(places) - 1; i >= 0; i-- {
		places[i] = min(places[i], last-distance*float64(len(places)-1-i))
	}
	return places
}

// mark draws a point; each curve has a form of its own beside its colour.
func mark(b *strings.Builder, curve int, x, y float64) {
	const s = markerSize
	switch curve % 4 {
	case 0:
		fmt.Fprintf(b, `<circle class="c0" cx="%.1f" cy="%.1f" r="%.1f"/>`+"\n", x, y, s)
	case 1:
		fmt.Fprintf(b, `<rect class="c1" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", x-s, y-s, 2*s, 2*s)
	case 2:
		fmt.Fprintf(b, `<path class="c2" d="M%.1f %.1fl%.1f %.1fh%.1fz"/>`+"\n", x, y-s-1, s+1, 2*s+1, -2*s-2)
	case 3:
		fmt.Fprintf(b, `<path class="c3" d="M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz"/>`+"\n", x, y-s-1, s+1, s+1, -s-1, s+1, -s-1, -s-1)
	}
}
