package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// A benchmark is one line of what go test -bench prints.
type benchmark struct {
	pkg, name                 string
	nanoseconds, bytes, count float64 // an operation's time, bytes allocated, allocations
	extra                     string  // other figures, with their units
}

// goBenchmarks runs the benchmarks of every package below the working
// directory, one after another, and returns the packages in which one failed
// too.
func goBenchmarks(ctx context.Context) (all []benchmark, failed []string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchmem", "-timeout", "60m", "./...")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stderr), os.Stderr
	ran := cmd.Run()
	all, failed, err = parseBenchmarks(&out)
	if err == nil && ran != nil && len(failed) == 0 {
		err = fmt.Errorf("go test -bench: %w", ran)
	}
	return all, failed, err
}

// processors is what go test adds to names where there are several.
var processors = regexp.MustCompile(`-\d+$`)

func parseBenchmarks(r io.Reader) (all []benchmark, failed []string, err error) {
	pkg, module := "", ""
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if p, ok := strings.CutPrefix(line, "pkg: "); ok {
			if module == "" { // github.com/OWNER/NAME
				module = strings.Join(strings.SplitAfterN(p, "/", 4)[:min(3, strings.Count(p, "/")+1)], "")
			}
			pkg = strings.TrimPrefix(p, module)
			continue
		}
		if p, ok := strings.CutPrefix(line, "FAIL\t"); ok {
			p, _, _ = strings.Cut(p, "\t")
			p, _, _ = strings.Cut(p, " ")
			failed = append(failed, strings.TrimPrefix(p, module))
			continue
		}
		// Name, number of runs, and pairs of a figure and its unit.
		f := strings.Fields(line)
		if len(f) < 4 || len(f)%2 != 0 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		b := benchmark{pkg: pkg, name: processors.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), "")}
		for i := 2; i < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, nil, fmt.Errorf("%q: %w", line, err)
			}
			switch f[i+1] {
			case "ns/op":
				b.nanoseconds = v
			case "B/op":
				b.bytes = v
			case "allocs/op":
				b.count = v
			default:
				if b.extra != "" {
					b.extra += ", "
				}
				b.extra += number(v) + " " + f[i+1]
			}
		}
		all = append(all, b)
	}
	return all, failed, lines.Err()
}
