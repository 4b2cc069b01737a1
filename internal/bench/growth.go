package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A point is what one operation took at one size.
type point struct {
	size   int64 // files, or bytes
	median time.Duration
	peak   int64 // most memory that the server held, in bytes; 0 where it is not known
}

// A curve is an operation over sizes.
type curve struct {
	name   string
	points []point
}

// settings of the servers that are measured, beside their directory.
var growthSettings = []string{
	"CONDUIT_FIND_TIMEOUT_MS=600000", "CONDUIT_RECURSIVE_SIZE_TIMEOUT_MS=600000", "CONDUIT_LOG_FILE_PATH=NONE",
}

const (
	needle = "needle-in-the-hay"
	hits   = 1000    // files of each tree that are found
	tail   = 64_000  // bytes read of a file's end
	sample = 500     // bytes a file of a tree, about
	inode  = 2 << 10 // bytes that a file costs beside its blocks, about
	block  = 4 << 10
	often  = 5               // calls of which a point is the median
	enough = 3 * time.Second // for a call that is made once
)

// An object is one of JSON.
type object = map[string]any

// An operation is measured over sizes. check is told the size and gets the
// response; it fails where the work was not done.
type operation struct {
	name, tool string
	args       func(at string, size int64) object
	check      func(size int64, response []object) error
}

var overTrees = []operation{
	{"find 1,000 files by name", "find",
		func(at string, _ int64) object {
			return object{"base_path": at, "match_criteria": []object{{"type": "name_pattern", "pattern": "hit_*.txt"}}}
		}, found(hits)},
	{"find 1,000 files by a text", "find",
		func(at string, _ int64) object {
			return object{"base_path": at, "match_criteria": []object{{"type": "content_pattern", "pattern": needle}}}
		}, found(hits)},
	{"sizes of all directories", "list",
		func(at string, _ int64) object {
			return object{"operation": "entries", "path": at, "calculate_recursive_size": true}
		},
		func(size int64, response []object) error {
			sum := int64(0)
			for _, e := range response {
				n, _ := e["size_bytes"].(float64)
				sum += int64(n)
			}
			if want := treeBytes(size); sum != want {
				return fmt.Errorf("the sizes add up to %d, not %d", sum, want)
			}
			return nil
		}},
}

var overFiles = []operation{
	{"SHA-256", "read",
		func(at string, _ int64) object {
			return object{"operation": "content", "sources": []string{filepath.Join(at, "file.log")}, "format": "checksum", "checksum_algorithm": "sha256"}
		},
		func(size int64, response []object) error {
			sum := sha256.New()
			if err := writeLog(sum, size); err != nil {
				return err
			}
			return holds(response, "checksum", fmt.Sprintf("%x", sum.Sum(nil)))
		}},
	{"find a text at its end", "find",
		func(at string, _ int64) object {
			return object{"base_path": at, "match_criteria": []object{{"type": "content_pattern", "pattern": needle}}}
		}, found(1)},
	{"read its last 64 kB", "read",
		func(at string, size int64) object {
			return object{"operation": "content", "sources": []string{filepath.Join(at, "file.log")}, "format": "text", "offset": size - tail, "length": tail}
		},
		func(_ int64, response []object) error { return holds(response, "content", needle) }},
	{"read its last 20 lines", "read",
		func(at string, _ int64) object {
			return object{"operation": "content", "sources": []string{filepath.Join(at, "file.log")}, "format": "text", "start_line": -20}
		},
		func(_ int64, response []object) error { return holds(response, "content", needle) }},
}

func found(count int) func(int64, []object) error {
	return func(_ int64, response []object) error {
		if len(response) != count {
			return fmt.Errorf("%d entries, not %d", len(response), count)
		}
		return nil
	}
}

func holds(response []object, field, want string) error {
	if len(response) == 1 {
		if got, ok := response[0][field].(string); ok && strings.Contains(got, want) {
			return nil
		}
	}
	return fmt.Errorf("%s does not have %s: %.300v", field, want, response)
}

// upTo is the sizes of a curve: powers of ten from the first to the last, and
// the last.
func upTo(first, last int64) []int64 {
	var sizes []int64
	for n := first; n < last; n *= 10 {
		sizes = append(sizes, n)
	}
	return append(sizes, last)
}

// growth measures what binary needs for trees of 1,000 to files files, and for
// files of 1 MB to bytes bytes, made below dir.
func growth(ctx context.Context, binary, dir string, files, bytes int64, say func(string, ...any)) (trees, single []curve, err error) {
	trees, err = curves(ctx, binary, dir, upTo(hits, files), overTrees, makeTree, say)
	if err != nil {
		return nil, nil, err
	}
	single, err = curves(ctx, binary, dir, upTo(1_000_000, bytes), overFiles, makeFile, say)
	return trees, single, err
}

func curves(ctx context.Context, binary, dir string, sizes []int64, operations []operation, grow func(dir string, size int64) error, say func(string, ...any)) ([]curve, error) {
	all := make([]curve, len(operations))
	for i, o := range operations {
		all[i].name = o.name
	}
	for _, size := range sizes {
		err := func() error {
			at, err := os.MkdirTemp(dir, "conduit-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(at)
			if at, err = filepath.EvalSymlinks(at); err != nil {
				return err
			}
			if err := grow(at, size); err != nil {
				return err
			}
			for i, o := range operations {
				p, err := o.measure(ctx, binary, at, size)
				if err != nil {
					return fmt.Errorf("%s, size %d: %w", o.name, size, err)
				}
				say("%s, %s: %v, %d MB", o.name, number(float64(size)), p.median, p.peak/1e6)
				all[i].points = append(all[i].points, p)
			}
			return nil
		}()
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// measure runs o on a server of its own, so that no other operation's memory is
// counted.
func (o operation) measure(ctx context.Context, binary, at string, size int64) (point, error) {
	cmd := exec.CommandContext(ctx, binary)
	cmd.Dir = at
	cmd.Env = environment(append(slices.Clone(growthSettings), "CONDUIT_ALLOWED_PATHS="+at)...)
	s, err := start(cmd)
	if err != nil {
		return point{}, err
	}
	defer s.stop()
	p := point{size: size}
	var took []time.Duration
	var response []object
	for len(took) < often && (len(took) == 0 || took[0] < enough) {
		resetPeak(cmd.Process.Pid)
		response = nil
		r, err := s.call(o.tool, o.args(at, size), &response)
		if err != nil {
			return p, err
		}
		took = append(took, r.took)
		p.peak = max(p.peak, peak(cmd.Process.Pid))
	}
	slices.Sort(took)
	p.median = took[len(took)/2]
	return p, o.check(size, response)
}

// resetPeak lets the kernel count a process's most memory from now on. Where
// there is no such file, peak knows nothing either.
func resetPeak(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// peak is the most memory a process has held at once, in bytes, or 0.
func peak(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kB, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"), 10, 64)
			return kB << 10
		}
	}
	return 0
}

// treeFile is the name and content of one file of a tree: 100 in a directory,
// 100 directories in one.
func treeFile(i, count int64) (name string, content []byte) {
	every := max(1, count/hits)
	kind, last := "file", "the end"
	if i%every == 0 && i/every < hits {
		kind, last = "hit", needle
	}
	name = fmt.Sprintf("d%03d/e%02d/%s_%07d.txt", i/10000, i/100%100, kind, i)
	return name, fmt.Appendf(nil, "%s%s of file %d\n", strings.Repeat("Some words that stand in a file of a tree.\n", int(8+i%5)), last, i)
}

func treeBytes(count int64) (sum int64) {
	for i := range count {
		_, content := treeFile(i, count)
		sum += int64(len(content))
	}
	return sum
}

func makeTree(dir string, count int64) error {
	for i := range count {
		name, content := treeFile(i, count)
		name = filepath.Join(dir, name)
		err := os.WriteFile(name, content, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
				err = os.WriteFile(name, content, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func makeFile(dir string, size int64) error {
	f, err := os.Create(filepath.Join(dir, "file.log"))
	if err != nil {
		return err
	}
	return errors.Join(writeLog(f, size), f.Close())
}

// writeLog writes size bytes of lines, the last of which holds the needle.
func writeLog(w io.Writer, size int64) error {
	var lines bytes.Buffer
	for n := 0; lines.Len() < 1<<20; n++ {
		fmt.Fprintf(&lines, "2026-03-01T12:00:00Z INFO request %06d served method=GET path=/api/v1/items/%d status=200\n", n, n*7919%10007)
	}
	last := "\nthe " + needle + " stands here\n"
	out := bufio.NewWriterSize(w, 1<<20)
	for left := size - int64(len(last)); left > 0; left -= int64(lines.Len()) {
		if _, err := out.Write(lines.Bytes()[:min(left, int64(lines.Len()))]); err != nil {
			return err
		}
	}
	if _, err := out.WriteString(last); err != nil {
		return err
	}
	return out.Flush()
}

// needed is the room that the largest tree or file takes, in bytes.
func needed(files, bytes int64) int64 {
	perFile := int64(inode + (sample+block-1)/block*block)
	return max(files*perFile, bytes) * 11 / 10
}
