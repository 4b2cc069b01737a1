//go:build interop && linux

package all_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// The tests called ...Against... hold what the tools find against what other
// programs do in the same tree: GNU find, grep and du, and ripgrep. A missing
// one fails them. The trees are the sources of the Go distribution, and one of
// oddities that grow makes.
//
// Where ours differs on purpose, the answer of the other program is changed
// under a name that tells the reason (see [reasons]); after that, both must be
// the same to the last entry.

// A server serves the reading tools, and those of zipfs, over one directory.
type server struct {
	dir string // without links
	app *app.App
}

// serve allows dir but for what rules deny.
func serve(t *testing.T, dir string, env map[string]string, rules ...string) *server {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	must(t, err)
	set, err := registry.Linked(func(tool registry.Tool, op registry.Desc) bool {
		return tool.Toolset == "zipfs" || tool.Toolset != "agent" && op.Effect == registry.ReadOnly
	})
	must(t, err)
	settings := map[string]string{"CONDUIT_ALLOWED_PATHS": dir, "CONDUIT_PROJECT_ROOT": dir, "CONDUIT_DENIED_PATHS": strings.Join(rules, string(os.PathListSeparator)),
		"CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_JOURNAL_DIR": "NONE", "CONDUIT_MAX_RESPONSE_BYTES": "0"}
	maps.Copy(settings, env)
	a, err := app.New(app.Options{Environ: settings, Set: set})
	t.Cleanup(a.Close)
	must(t, err)
	return &server{dir, a}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type object map[string]any

// call decodes the response of a tool into v and returns the remarks.
func (s *server) call(t *testing.T, tool string, args object, v any) string {
	t.Helper()
	asked, err := json.Marshal(args)
	must(t, err)
	res, err := s.app.Call(t.Context(), tool, asked)
	must(t, err)
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		t.Fatalf("%s %s: %.500s", tool, asked, text)
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s %s: %v: %.500s", tool, asked, err, text)
	}
	if len(res.Content) > 1 {
		return res.Content[1].(*mcp.TextContent).Text
	}
	return ""
}

// goSources is the directory src of the Go distribution.
var goSources = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "src"), err
})

// output runs another program in dir and returns what it says. done are the exit
// codes besides 0 that do not mean that it failed.
func output(t *testing.T, dir string, done []int, name string, args ...string) []byte {
	t.Helper()
	var out, said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &said
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC")
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && (slices.Contains(done, exit.ExitCode()) || onlyDenied(said.String())) {
		err = nil
	}
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, said.String())
	}
	return out.Bytes()
}

// onlyDenied reports whether a program complains of nothing but what it may not
// read, as of the closed directory in the tree of oddities.
func onlyDenied(said string) bool {
	if said == "" {
		return false
	}
	for line := range strings.Lines(said) {
		if !strings.Contains(strings.ToLower(line), "permission denied") {
			return false
		}
	}
	return true
}

// fields splits what ends in NUL bytes.
func fields(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(b, []byte{0})), "\x00")
}

// paths is output of names that end in NUL, without the "./" in front.
func paths(t *testing.T, dir string, done []int, name string, args ...string) []string {
	t.Helper()
	list := fields(output(t, dir, done, name, args...))
	for i := range list {
		list[i] = strings.TrimPrefix(list[i], "./")
	}
	return list
}

// reasons are those for which ours differs from others in one test. Each must
// explain something there, or the test fails: a reason that has become none is
// to be deleted.
type reasons struct {
	t    *testing.T
	used map[string]int
}

// because declares the reasons of a test.
func because(t *testing.T, names ...string) *reasons {
	r := &reasons{t, map[string]int{}}
	for _, name := range names {
		if why[name] == "" {
			t.Fatalf("nothing is said about the reason %q", name)
		}
		r.used[name] = 0
	}
	t.Cleanup(func() {
		for _, name := range names {
			if r.used[name] == 0 && !t.Failed() {
				t.Errorf("%q explains nothing (%s)", name, why[name])
			}
			t.Logf("%s: %d", name, r.used[name])
		}
	})
	return r
}

// note counts that a reason explained n entries.
func (r *reasons) note(reason string, n int) {
	r.t.Helper()
	if _, ok := r.used[reason]; !ok {
		r.t.Fatalf("%q is no declared reason of this test", reason)
	}
	r.used[reason] += n
}

// without leaves out of theirs what ours does not have for a reason.
func without[E any](r *reasons, reason string, theirs []E, drop func(E) bool) []E {
	r.t.Helper()
	var kept []E
	for _, e := range theirs {
		if !drop(e) {
			kept = append(kept, e)
		}
	}
	r.note(reason, len(theirs)-len(kept))
	return kept
}

// with adds to theirs what only ours has for a reason.
func with[E any](r *reasons, reason string, theirs []E, more ...E) []E {
	r.t.Helper()
	r.note(reason, len(more))
	return append(slices.Clip(theirs), more...)
}

// instead takes what pick chooses from another witness.
func instead[E comparable](r *reasons, reason string, theirs, others []E, pick func(E) bool) []E {
	r.t.Helper()
	not := func(e E) bool { return !pick(e) }
	chosen := slices.DeleteFunc(slices.Clone(others), not)
	list := slices.DeleteFunc(slices.Clone(theirs), func(e E) bool {
		if pick(e) && !slices.Contains(chosen, e) {
			r.note(reason, 1)
		}
		return pick(e)
	})
	for _, e := range chosen {
		if !slices.Contains(theirs, e) {
			r.note(reason, 1)
		}
	}
	return append(list, chosen...)
}

// exchanged gives entries of theirs the form that they have in ours.
func exchanged[E comparable](r *reasons, reason string, theirs []E, form func(E) E) []E {
	r.t.Helper()
	list := make([]E, len(theirs))
	for i, e := range theirs {
		if list[i] = form(e); list[i] != e {
			r.note(reason, 1)
		}
	}
	return list
}

// same compares two lists without regard to order.
func same[E comparable](t *testing.T, what string, ours, theirs []E) {
	t.Helper()
	count := map[E]int{}
	for _, e := range theirs {
		count[e]++
	}
	var more, missing []E
	for _, e := range ours {
		if count[e]--; count[e] < 0 {
			more = append(more, e)
		}
	}
	for e, n := range count {
		for range n {
			missing = append(missing, e)
		}
	}
	if len(more)+len(missing) > 0 {
		t.Errorf("%s: ours has %d, theirs %d\nonly ours: %s\nonly theirs: %s", what, len(ours), len(theirs), some(more), some(missing))
	}
}

// some shows the first entries of a list.
func some[E any](list []E) string {
	const most = 12
	var b strings.Builder
	fmt.Fprintf(&b, "%d", len(list))
	for _, e := range list[:min(len(list), most)] {
		fmt.Fprintf(&b, "\n\t%.200q", fmt.Sprint(e))
	}
	return b.String()
}

// A hit is a match in a file: the line, counted by "\n", and the character in it
// where the match begins, from 1.
type hit struct {
	file         string
	line, column int
}

func (h hit) String() string { return fmt.Sprintf("%s:%d:%d", h.file, h.line, h.column) }

// A text is what JSON of ripgrep calls arbitrary data.
type text struct {
	Text  string
	Bytes []byte
}

func (t text) string() string { return cmp.Or(t.Text, string(t.Bytes)) }

// rg returns every match that ripgrep has in dir. In what is no text it looks
// too, and so in what is hidden or ignored.
func rg(t *testing.T, r *reasons, dir string, args ...string) []hit {
	t.Helper()
	args = append([]string{"--no-config", "--json", "--text", "--hidden", "--no-ignore", "--crlf"}, args...)
	var hits []hit
	for line := range bytes.Lines(output(t, dir, []int{1}, "rg", append(args, "./")...)) {
		var m struct {
			Type string
			Data struct {
				Path, Lines text
				Line        int `json:"line_number"`
				Submatches  []struct{ Start int }
			}
		}
		must(t, json.Unmarshal(line, &m))
		if m.Type != "match" {
			continue
		}
		rest, at, h := m.Data.Lines.string(), 0, hit{strings.TrimPrefix(m.Data.Path.string(), "./"), m.Data.Line, 1}
		for _, sub := range m.Data.Submatches {
			h = r.behind(h, rest[:sub.Start-at])
			rest, at = rest[sub.Start-at:], sub.Start
			hits = append(hits, h)
		}
	}
	return hits
}

// behind is where h is after the text between.
func (r *reasons) behind(h hit, between string) hit {
	if n := strings.Count(between, "\n"); n > 0 {
		h.line, h.column = h.line+n, 1
		between = between[strings.LastIndexByte(between, '\n')+1:]
	}
	n := utf8.RuneCountInString(between)
	if n != len(between) {
		r.note("columns", 1)
	}
	h.column += n
	return h
}

// grep returns the matches that are not empty which GNU grep has in dir, binary
// files included.
func grep(t *testing.T, r *reasons, dir string, args ...string) []hit {
	t.Helper()
	args = append([]string{"--recursive", "--text", "--line-number", "--byte-offset", "--only-matching", "--null", "--color=never"}, args...)
	var hits []hit
	content := map[string][]byte{}
	out := string(output(t, dir, []int{1}, "grep", append(args, "./")...))
	for out != "" {
		name, rest, _ := strings.Cut(out, "\x00")
		number, rest, _ := strings.Cut(rest, ":")
		offset, rest, _ := strings.Cut(rest, ":")
		_, out, _ = strings.Cut(rest, "\n") // the match
		n, err := strconv.Atoi(number)
		must(t, err)
		at, err := strconv.Atoi(offset)
		must(t, err)
		if content[name] == nil {
			content[name], err = os.ReadFile(filepath.Join(dir, name))
			must(t, err)
		}
		begin := bytes.LastIndexByte(content[name][:at], '\n') + 1
		hits = append(hits, r.behind(hit{strings.TrimPrefix(name, "./"), n, 1}, string(content[name][begin:at])))
	}
	return hits
}

// firsts leaves of the matches of each line the first one, which is what find
// tells.
func firsts(hits []hit) []hit {
	hits = slices.Clone(hits)
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	return slices.CompactFunc(hits, func(a, b hit) bool { return a.file == b.file && a.line == b.line })
}

// lines forgets columns.
func lines(hits []hit) []hit {
	list := firsts(hits)
	for i := range list {
		list[i].column = 0
	}
	return list
}
