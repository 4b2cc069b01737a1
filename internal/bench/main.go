// Command bench measures a conduit-mcp binary and writes BENCHMARKS.md and
// testdata/bench/growth.svg: the Go benchmarks, the program beside other
// servers and tools, and how time and memory grow with trees and files.
//
// Usage, from the repository's root: bench [flags] BINARY
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A plan is what the flags say.
type plan struct {
	parts        []string
	dir          string // where trees and files are made
	files, bytes int64  // of the largest
	script       string
	rounds       int
	out          string
}

var allParts = []string{"go", "growth", "side"}

func main() {
	var p plan
	parts := flag.String("parts", strings.Join(allParts, ","), "what is measured")
	flag.StringVar(&p.dir, "dir", "", "`directory` in which trees and files are made (default: one kept in memory where that has room, else the temporary one)")
	flag.Int64Var(&p.files, "files", 1_000_000, "files of the largest tree")
	flag.Int64Var(&p.bytes, "bytes", 4_000_000_000, "bytes of the largest file")
	flag.StringVar(&p.script, "side-by-side", "", "Python `script` that measures servers side by side and takes --rounds, --json and --list")
	flag.IntVar(&p.rounds, "rounds", 9, "rounds of that script")
	flag.StringVar(&p.out, "out", ".", "`directory` the results are written below")
	flag.Parse()
	p.parts = strings.Split(*parts, ",")
	if flag.NArg() != 1 || p.files < hits || p.bytes < 1_000_000 || slices.ContainsFunc(p.parts, func(s string) bool { return !slices.Contains(allParts, s) }) {
		fmt.Fprintf(os.Stderr, "usage: bench [flags] BINARY\nThe largest tree has at least %d files, the largest file 1000000 bytes; parts are %s.\n", hits, strings.Join(allParts, ", "))
		flag.PrintDefaults()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := p.run(ctx, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the parts and writes what came out.
func (p plan) run(ctx context.Context, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	r := results{plan: p, when: time.Now(), machine: machine(), version: ourVersion(), tools: toolVersions()}
	if fi, err := os.Stat(binary); err == nil {
		r.binary = fi.Size()
	}
	if slices.Contains(p.parts, "go") {
		if r.benchmarks, r.failed, err = goBenchmarks(ctx); err != nil {
			return err
		}
	}
	if slices.Contains(p.parts, "growth") {
		dir := p.dir
		if dir == "" {
			dir = memoryDir(needed(p.files, p.bytes), p.files)
			r.inMemory = dir != ""
		}
		if r.trees, r.files, err = growth(ctx, binary, dir, p.files, p.bytes, say); err != nil {
			return err
		}
	}
	if slices.Contains(p.parts, "side") {
		if r.beside, err = p.besideOthers(ctx, binary); err != nil {
			return err
		}
	}
	picture := filepath.Join(p.out, filepath.FromSlash(pictureName))
	if err := os.MkdirAll(filepath.Dir(picture), 0o755); err != nil {
		return err
	}
	if r.trees != nil {
		if err := os.WriteFile(picture, []byte(draw(r.trees, r.files)), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(p.out, "BENCHMARKS.md"), []byte(r.markdown()), 0o644); err != nil {
		return err
	}
	if len(r.failed) > 0 {
		return fmt.Errorf("benchmarks failed in %s; BENCHMARKS.md is without them", strings.Join(r.failed, ", "))
	}
	return nil
}

// besideOthers is nil where there is no script or nothing to run it with.
func (p plan) besideOthers(ctx context.Context, binary string) (*comparison, error) {
	if p.script == "" {
		return nil, nil
	}
	if _, err := os.Stat(p.script); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if _, err := exec.LookPath("python3"); err != nil {
		return nil, nil
	}
	return sideBySide(ctx, p.script, binary, p.rounds)
}
