package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
)

// pictureName is the picture of the growth curves, below the repository's root.
const pictureName = "testdata/bench/growth.svg"

// results are what a run has measured.
type results struct {
	plan
	when         time.Time
	machine      []row
	version      string
	tools        []row
	binary       int64
	inMemory     bool // trees and files were kept in memory
	trees, files []curve
	beside       *comparison
	benchmarks   []benchmark
	failed       []string // packages with a benchmark that failed
}

// number shows three digits, or whole thousands.
func number(v float64) string {
	if math.Abs(v) < 999.5 {
		s := fmt.Sprintf("%.3g", v)
		if strings.Contains(s, "e") { // too small for that form without an exponent
			s = fmt.Sprintf("%.*f", 2-int(math.Floor(math.Log10(math.Abs(v)))), v)
		}
		return s
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// A page is Markdown under construction.
type page struct{ strings.Builder }

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format+"\n\n", args...) }

// table writes rows of cells; all columns but the first so many are numbers.
func (p *page) table(words int, head []string, rows [][]string) {
	rule := make([]string, len(head))
	for i := range rule {
		if rule[i] = "---"; i >= words {
			rule[i] = "---:"
		}
	}
	for _, cells := range slices.Concat([][]string{head, rule}, rows) {
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		fmt.Fprintf(p, "| %s |\n", strings.Join(cells, " | "))
	}
	p.WriteByte('\n')
}

func (r results) markdown() string {
	p := &page{}
	p.say("# Benchmarks")
	p.say("`make bench` made this file on %s and makes it anew. Times hold for the machine below and for nothing else; "+
		"a ratio holds where both sides were measured in one run. What calls allocate is checked on every change instead: "+
		"see `testdata/bench/baseline.json`.", r.when.UTC().Format(time.DateOnly))
	p.say("## Machine and versions")
	var rows [][]string
	add := func(list ...row) {
		for _, v := range list {
			if v.value != "" {
				rows = append(rows, []string{v.name, v.value})
			}
		}
	}
	add(r.machine...)
	add(row{"conduit-mcp", r.version}, row{"Go", strings.TrimPrefix(runtime.Version(), "go")})
	if r.binary > 0 {
		add(row{"Binary", number(float64(r.binary)) + " bytes"})
	}
	if r.beside != nil {
		add(r.beside.versions...)
		add(r.tools...)
	}
	p.table(2, []string{"", ""}, rows)
	r.writeBeside(p)
	r.writeGrowth(p)
	r.writeBenchmarks(p)
	return strings.TrimRight(p.String(), "\n") + "\n"
}

func (r results) left(p *page, part string) bool {
	if slices.Contains(r.parts, part) {
		return false
	}
	p.say("Not measured in this run.")
	return true
}

func (r results) writeBeside(p *page) {
	p.say("## Beside other servers and tools")
	if r.left(p, "side") {
		return
	}
	if r.beside == nil {
		p.say("Not measured in this run: it needs `python3` and a script that measures servers side by side and writes its samples " +
			"with `--json`; `make bench side_by_side=SCRIPT` names it.")
		return
	}
	p.say("Rounds: %d. In each, every program did each task once, in turning order. A ratio is the median over rounds of our figure to "+
		"the other's, with the lowest and the highest round: where that range holds 1.00, the run shows no difference. Less is better. "+
		"The best server is the one with the least median, the best tool the faster one of what a person would run at a shell, "+
		"process start included (for small reads, `cat` echoing a line). The tasks are equal; the answers are not always: a tool or "+
		"another server may tell names where ours tells sizes, times and types too.", r.beside.Rounds)
	r.beside.table(p, "figure", func(name string) bool { return name != memoryMetric })
	p.say("### Memory")
	p.say("The most memory that the server held during the task, in kB.")
	r.beside.table(p, "kB", func(name string) bool { return name == memoryMetric })
	var fails []string
	for _, t := range r.beside.Results {
		for name := range t.Failed {
			fails = append(fails, t.name+" ("+name+")")
		}
	}
	if len(fails) > 0 {
		slices.Sort(fails)
		p.say("Failed or incomplete, and not counted: %s.", strings.Join(fails, ", "))
	}
}

// table writes the metrics that keep wants.
func (c *comparison) table(p *page, unit string, keep func(metric string) bool) {
	var rows [][]string
	tools := false
	for _, t := range c.Results {
		for _, m := range t.Metrics {
			if !keep(m.name) || m.Peers[ours].Samples == nil {
				continue
			}
			what, figure := t.name, func(name string) string { return number(m.Peers[name].Median) }
			if m.name != memoryMetric {
				what = strings.TrimSpace(t.name + " " + m.name)
				figure = func(name string) string { return number(m.Peers[name].Median) + " " + m.Unit }
			}
			cells := []string{what, t.What, figure(ours)}
			for _, want := range []func(string) bool{func(name string) bool { return !isTool(name) }, isTool} {
				best := m.best(want)
				times, ok := m.against(best)
				if !ok {
					cells = append(cells, "–", "–")
					continue
				}
				tools = tools || isTool(best)
				who := best + ", "
				if isTool(best) {
					who = ""
				}
				cells = append(cells, who+figure(best), fmt.Sprintf("**%.2f** (%.2f–%.2f)", times.median, times.low, times.high))
			}
			rows = append(rows, cells)
		}
	}
	head := []string{"task", "what", "ours, " + unit, "best server", "ours / best server", "best tool", "ours / best tool"}
	if !tools {
		head = head[:5]
		for i := range rows {
			rows[i] = rows[i][:5]
		}
	}
	p.table(2, head, rows)
}

func (r results) writeGrowth(p *page) {
	p.say("## Growth")
	if r.left(p, "growth") {
		return
	}
	where := "on disk"
	if r.inMemory {
		where = "in memory"
	} else if r.dir != "" {
		where = "in a directory that was named"
	}
	p.say("How time and memory grow with what is there. A tree has 100 files of about 400 bytes in each directory; %s of them are found, "+
		"however large it is. A file is a log, and what is found stands in its last line. Both are %s. Each operation has a server process "+
		"of its own, asked over stdin and stdout; the time ends with the last byte of the reply. A point is the median of %d calls, or one "+
		"call where that took longer than %.0f s; the peak is the most memory that the process held during them. `CONDUIT_FIND_TIMEOUT_MS` and "+
		"`CONDUIT_RECURSIVE_SIZE_TIMEOUT_MS` are 600000, so that nothing is cut short; the rest is as by default.",
		number(hits), where, often, enough.Seconds())
	p.say("![Time and peak memory over the size of trees and files](%s)", pictureName)
	growthTable(p, "files in the tree", "µs a file", func(v int64) string { return number(float64(v)) }, r.trees, 1000)
	growthTable(p, "size of the file", "ms a MB", bytesText, r.files, 1_000_000)
}

// growthTable shows a millisecond for each per of the size as one of share.
func growthTable(p *page, size, share string, show func(int64) string, curves []curve, per float64) {
	var rows [][]string
	for _, c := range curves {
		for _, o := range c.points {
			ms := float64(o.median) / 1e6
			peak := "–"
			if o.peak > 0 {
				peak = number(float64(o.peak) / 1e6)
			}
			rows = append(rows, []string{c.name, show(o.size), number(ms), number(ms / float64(o.size) * per), peak})
		}
	}
	p.table(1, []string{"operation", size, "ms", share, "peak MB"}, rows)
}

// bytesText is a number of bytes in the largest unit that it fills.
func bytesText(v int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if v >= u.size {
			return number(float64(v)/float64(u.size)) + " " + u.name
		}
	}
	return number(float64(v)) + " B"
}

func (r results) writeBenchmarks(p *page) {
	p.say("## Go benchmarks")
	if r.left(p, "go") {
		return
	}
	p.say("`go test -bench . -benchmem` of every package; an operation is what the benchmark beside the code says.")
	var rows [][]string
	for _, b := range r.benchmarks {
		rows = append(rows, []string{b.pkg, b.name, number(b.nanoseconds), number(b.bytes), number(b.count), b.extra})
	}
	p.table(2, []string{"package", "benchmark", "ns/op", "B/op", "allocs/op", "other"}, rows)
	if len(r.failed) > 0 {
		p.say("Failed, and not or not wholly shown: %s.", strings.Join(r.failed, ", "))
	}
}
