//go:build linux && !race

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/cmd"
	_ "github.com/conduit-mcp/conduit-mcp/ops/all"
)

var update = flag.Bool("update", false, "rewrite the baseline")

// measured is set for the child process that is the server.
const measured = "CONDUIT_BENCH_MEASURED"

func TestMain(m *testing.M) {
	if os.Getenv(measured) != "" {
		go tellAllocations(os.NewFile(3, "questions"), os.NewFile(4, "answers"))
		cmd.Main()
	}
	os.Exit(m.Run())
}

// tellAllocations writes, for each byte read, how many objects and bytes this
// process has allocated so far.
func tellAllocations(questions io.Reader, answers io.Writer) {
	var (
		stats runtime.MemStats
		b     [16]byte
	)
	for {
		if _, err := questions.Read(b[:1]); err != nil {
			return
		}
		runtime.ReadMemStats(&stats)
		binary.LittleEndian.PutUint64(b[:8], stats.Mallocs)
		binary.LittleEndian.PutUint64(b[8:], stats.TotalAlloc)
		if _, err := answers.Write(b[:]); err != nil {
			return
		}
	}
}

// A subject is the whole server in a process of its own: this test binary, with
// the transport, the chain and every op as the program has them. It has two
// processors on every machine, since what walks in parallel allocates for each,
// and never collects garbage, so that what is pooled stays there.
type subject struct {
	*testing.T
	*server
	dir                string
	questions, answers *os.File
}

func newSubject(t *testing.T) *subject {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Responses tell paths, so these are of one length everywhere.
	const length = 120
	s := &subject{T: t, dir: filepath.Join(base, strings.Repeat("x", max(1, length-len(base))))}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	questions, ask, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answer, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.questions, s.answers = ask, answer
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Dir = s.dir
	c.Env = environment(measured+"=1", "GOMAXPROCS=2", "GOGC=off", "GOMEMLIMIT=off", "CONDUIT_ALLOWED_PATHS="+s.dir,
		"CONDUIT_LOG_FILE_PATH=NONE", "CONDUIT_JOURNAL_DIR="+filepath.Join(base, "journal"))
	c.ExtraFiles = []*os.File{questions, answers}
	s.server, err = start(c)
	questions.Close()
	answers.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		ask.Close()
		answer.Close()
	})
	return s
}

func (s *subject) file(name string, content []byte) {
	s.Helper()
	name = filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		s.Fatal(err)
	}
}

// allocated is how many objects and bytes the server has allocated so far.
func (s *subject) allocated() (objects, bytes uint64) {
	s.Helper()
	var b [16]byte
	if _, err := s.questions.Write(b[:1]); err != nil {
		s.Fatal(err)
	}
	if _, err := io.ReadFull(s.answers, b[:]); err != nil {
		s.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])
}

// A figure is one number of the baseline; less is better.
type figure struct {
	name   string // "what: of which kind"
	value  uint64
	spared uint64 // growth by so much is never a failure
}

// measure runs one request often enough to tell what it costs when everything
// is warm: the middle one of several means.
func (s *subject) measure(name string, times int, request func(i int) (reply, error)) []figure {
	s.Helper()
	i, size := 0, 0
	run := func() {
		for range times {
			r, err := request(i)
			if err != nil {
				s.Fatalf("%s: %v", name, err)
			}
			size = max(size, r.size)
			i++
		}
	}
	const warm, rounds = 3, 7
	for range warm {
		run()
	}
	var objects, bytes []uint64
	for range rounds {
		size = 0
		o, b := s.allocated()
		run()
		o2, b2 := s.allocated()
		objects, bytes = append(objects, (o2-o)/uint64(times)), append(bytes, (b2-b)/uint64(times))
	}
	slices.Sort(objects)
	slices.Sort(bytes)
	if spread := objects[rounds-1] - objects[0]; spread > 10 {
		s.Logf("%s: %d to %d allocations", name, objects[0], objects[rounds-1])
	}
	return []figure{{name + ": allocations", objects[rounds/2], 10}, {name + ": bytes allocated", bytes[rounds/2], 4 << 10},
		{name + ": bytes of the response", uint64(size), 64}}
}

// text is size bytes of lines, each different.
func text(size int) []byte {
	var b bytes.Buffer
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "line %06d of a text with \"quotes\" and some words\n", n)
	}
	return b.Bytes()[:size]
}

func (s *subject) figures() []figure {
	small := make([]string, 200)
	for i := range small {
		small[i] = fmt.Sprintf("small/f%03d.txt", i)
		s.file(small[i], text(2000))
	}
	s.file("large.txt", text(1<<20))
	s.file("edited.txt", text(20000))
	s.file("other.txt", bytes.ReplaceAll(text(20000), []byte("line 0001"), []byte("verse 0001")))
	for i := range 100 {
		s.file(fmt.Sprintf("flat/f%03d.txt", i), text(100))
	}
	for i := range 1000 {
		content := text(500)
		if i%10 == 0 {
			content = append(content, "a needle\n"...)
		}
		s.file(fmt.Sprintf("tree/d%02d/e%d/f%04d.txt", i%50, i%10, i), content)
	}
	entries := make([]map[string]string, 20)
	for i := range entries {
		entries[i] = map[string]string{"path": fmt.Sprintf("put/f%02d.txt", i), "content": string(text(2000))}
	}
	type object = map[string]any
	find := func(criterion object) object {
		return object{"base_path": "tree", "match_criteria": []object{criterion}}
	}
	var all []figure
	for _, c := range []struct {
		name  string
		times int
		tool  string
		args  object
	}{
		{"read a text of 2 kB", 50, "read", object{"operation": "content", "sources": small[:1]}},
		{"read a text of 1 MB", 5, "read", object{"operation": "content", "sources": []string{"large.txt"}}},
		{"read the last 20 lines of 1 MB", 20, "read", object{"operation": "content", "sources": []string{"large.txt"}, "start_line": -20}},
		{"read 1 MB as base64", 5, "read", object{"operation": "content", "sources": []string{"large.txt"}, "format": "base64"}},
		{"read 200 texts in one call", 5, "read", object{"operation": "content", "sources": small}},
		{"checksum of 1 MB", 20, "read", object{"operation": "content", "sources": []string{"large.txt"}, "format": "checksum"}},
		{"metadata of 200 files", 5, "read", object{"operation": "metadata", "sources": small}},
		{"diff of two texts of 20 kB", 10, "read", object{"operation": "diff", "sources": []string{"edited.txt", "other.txt"}}},
		{"list 100 entries", 20, "list", object{"operation": "entries", "path": "flat"}},
		{"list a tree of 1,000 files", 5, "list", object{"operation": "entries", "path": "tree", "recursive_depth": 5}},
		{"size of a tree of 1,000 files", 5, "list", object{"operation": "entries", "path": "tree", "calculate_recursive_size": true}},
		{"find 100 of 1,000 files by name", 5, "find", find(object{"type": "name_pattern", "pattern": "*0.txt"})},
		{"find 100 of 1,000 files by a text", 5, "find", find(object{"type": "content_pattern", "pattern": "Needle"})},
		{"find 100 of 1,000 files by an expression", 5, "find", find(object{"type": "content_pattern", "pattern": `a\s+needle`, "is_regex": true})},
		{"put a file of 2 kB", 10, "write", object{"action": "put", "entries": entries[:1]}},
		{"put 20 files of 2 kB in one call", 3, "write", object{"action": "put", "entries": entries}},
	} {
		all = append(all, s.measure(c.name, c.times, func(int) (reply, error) {
			var response json.RawMessage
			r, err := s.call(c.tool, c.args, &response)
			if err == nil && bytes.Contains(response, []byte(`"status":"error"`)) {
				err = fmt.Errorf("%.300s", response)
			}
			return r, err
		})...)
	}
	all = append(all, s.measure("change a line of 20 kB", 10, func(i int) (reply, error) {
		lines := []string{"line 000200 of a text", "line 000200 of a tale"}
		var response json.RawMessage
		return s.call("edit", object{"operation": "apply", "changes": []object{{"path": "edited.txt",
			"edits": []object{{"old_text": lines[i%2], "new_text": lines[(i+1)%2]}}}}}, &response)
	})...)
	return append(all, s.measure("tools/list", 10, func(int) (reply, error) { return s.request("tools/list", struct{}{}) })...)
}

// binarySize is what the program is shipped as, for one system.
func binarySize(t *testing.T) uint64 {
	t.Helper()
	name := filepath.Join(t.TempDir(), "conduit-mcp")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", name, "../../cmd/conduit-mcp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(fi.Size())
}

const baseline = "../../testdata/bench/baseline.json"

// TestRegressions holds what calls allocate and answer against figures that
// were accepted. Times are not looked at.
func TestRegressions(t *testing.T) {
	figures := append(newSubject(t).figures(), figure{"binary for linux/amd64: bytes", binarySize(t), 0})
	if *update {
		values := map[string]uint64{}
		for _, f := range figures {
			values[f.name] = f.value
		}
		b, err := json.MarshalIndent(values, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(baseline, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	accepted := map[string]uint64{}
	if err := json.Unmarshal(b, &accepted); err != nil {
		t.Fatal(err)
	}
	failures, gains := compare(figures, accepted)
	for _, gain := range gains {
		t.Log(gain)
	}
	for _, failure := range failures {
		t.Error(failure)
	}
	if t.Failed() {
		t.Log("Find out what made it grow. Where that is wanted, run make baseline and review the difference of testdata/bench/baseline.json.")
	}
}

// compare returns a line for each figure more than a tenth above what was
// accepted, and for each as much below it.
func compare(figures []figure, accepted map[string]uint64) (failures, gains []string) {
	accepted = maps.Clone(accepted)
	for _, f := range figures {
		was, known := accepted[f.name]
		delete(accepted, f.name)
		switch {
		case !known:
			failures = append(failures, fmt.Sprintf("%s is %d, and the baseline does not have it", f.name, f.value))
		case f.value > was+was/10 && f.value > was+f.spared:
			failures = append(failures, fmt.Sprintf("%s is %d, accepted is %d (%+.0f %%)", f.name, f.value, was, 100*(float64(f.value)/float64(was)-1)))
		case f.value+f.value/10 < was && f.value+f.spared < was:
			gains = append(gains, fmt.Sprintf("better: %s is %d, accepted is %d (%+.0f %%)", f.name, f.value, was, 100*(float64(f.value)/float64(was)-1)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(accepted)) {
		failures = append(failures, fmt.Sprintf("%s is in the baseline and is no longer measured", name))
	}
	return failures, gains
}

func TestCompare(t *testing.T) {
	accepted := map[string]uint64{"a": 1000, "b": 1000, "few": 4, "more": 1000, "less": 1000, "zero": 0, "gone": 1}
	failures, gains := compare([]figure{{"a", 1100, 10}, {"b", 950, 10}, {"few", 14, 10}, {"more", 1101, 10}, {"less", 800, 10}, {"zero", 11, 10}, {"new", 1, 10}}, accepted)
	for i, want := range []string{"more is 1101", "zero is 11", "new is 1,", "gone is in"} {
		if i >= len(failures) || !strings.HasPrefix(failures[i], want) {
			t.Errorf("failures are %q; number %d is not %q", failures, i, want)
		}
	}
	if len(failures) != 4 || len(gains) != 1 || !strings.HasPrefix(gains[0], "better: less is 800") {
		t.Errorf("failures %q, gains %q", failures, gains)
	}
}
