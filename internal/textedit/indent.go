package textedit

import (
	"cmp"
	"slices"
	"strings"
)

// tabWidth is what a tab counts for where indentations are compared.
const tabWidth = 8

func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

func widthOf(indent string) int {
	return len(indent) + (tabWidth-1)*strings.Count(indent, "\t")
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// reindenter returns a function that gives a line of the caller's new text the
// indentation that fits the file: where the caller's old text has a line that is
// indented as deep, that of the file's line for it; otherwise that of the
// nearest one and the difference, in the file's own steps. rows are the file's
// lines from one offset to another, which old stands for.
func reindenter(d *Doc, from, to int, old, now []string, rows []row) func(string) string {
	type pair struct {
		old, file string
		width     int
	}
	var pairs []pair
	for i, line := range old {
		if ind := indentOf(line); !isBlank(line) && !slices.ContainsFunc(pairs, func(p pair) bool { return p.old == ind }) {
			pairs = append(pairs, pair{ind, indentOf(rows[i].text), widthOf(ind)})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.width, b.width) })
	step := stepOf(append(slices.Clone(old), now...))
	own := stepOf(d.around(from, to, rows))
	if own == "" {
		own = step
	}
	deeper := func(indent string, p pair) string {
		extra := strings.TrimPrefix(indent, p.old)
		if own == step || step == "" {
			if strings.HasPrefix(indent, p.old) {
				return p.file + extra
			}
		}
		by := widthOf(indent) - p.width
		unit := max(1, widthOf(step))
		return p.file + strings.Repeat(own, by/unit) + strings.Repeat(" ", by%unit)
	}
	return func(line string) string {
		if isBlank(line) {
			return ""
		}
		ind := indentOf(line)
		width := widthOf(ind)
		best := -1
		for i, p := range pairs {
			if p.old == ind {
				return p.file + line[len(ind):]
			}
			if p.width <= width {
				best = i
			}
		}
		if best >= 0 {
			return deeper(ind, pairs[best]) + line[len(ind):]
		}
		least := pairs[0] // loosely needs a line that is not blank
		less := (least.width - width) / max(1, widthOf(step))
		file := least.file
		for range less {
			if rest, ok := strings.CutSuffix(file, own); ok && own != "" {
				file = rest
			}
		}
		return file + line[len(ind):]
	}
}

// stepOf is by how much lines are indented, one level against the next: a tab,
// or the smallest difference of spaces; "" where all are indented alike.
func stepOf(lines []string) string {
	var widths []int
	for _, l := range lines {
		if isBlank(l) {
			continue
		}
		ind := indentOf(l)
		if strings.HasPrefix(ind, "\t") {
			return "\t"
		}
		widths = append(widths, len(ind))
	}
	slices.Sort(widths)
	widths = slices.Compact(widths)
	step := 0
	for i := 1; i < len(widths); i++ {
		if by := widths[i] - widths[i-1]; step == 0 || by < step {
			step = by
		}
	}
	return strings.Repeat(" ", step)
}

// aroundLines is how many lines on either side tell the file's own indentation.
const aroundLines = 100

// around returns rows, or where they are all indented alike with the lines
// around them.
func (d *Doc) around(from, to int, rows []row) []string {
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		lines = append(lines, r.text)
	}
	if stepOf(lines) != "" {
		return lines
	}
	for at := from; at > 0 && len(lines) < len(rows)+aroundLines; {
		begin := strings.LastIndexByte(d.text[:at-1], '\n') + 1
		lines = append(lines, d.text[begin:at])
		at = begin
	}
	at := to + len(d.rowAt(to).text) + len(d.rowAt(to).end)
	for at < len(d.text) && len(lines) < len(rows)+2*aroundLines {
		r := d.rowAt(at)
		lines = append(lines, r.text)
		at += len(r.text) + len(r.end)
	}
	return lines
}
