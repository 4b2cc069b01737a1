package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func TestRedactor(t *testing.T) {
	r := audit.NewRedactor([]string{"API_KEY=hunter2", "API_KEY_2=hunter2hunter3", "MODE=testing", "URL=https://user:pw@example.org", "PIN_TOKEN=123", "PEM_KEY=line one\nline two", `Q_SECRET=a"b\c`})
	for in, want := range map[string]string{
		"say hunter2!":                 "say [hidden]!",
		"hunter2hunter3":               "[hidden]",
		"hunter2hunter2":               "[hidden][hidden]",
		"testing 123":                  "testing 123", // too short to be told from words
		"https://user:pw@example.org/": "[hidden]/",
		"x\nline two\n":                "x\n[hidden]\n",
		`{"v":"a\"b\\c"}`:              `{"v":"[hidden]"}`,
		`{"v":"line one\nline two"}`:   `{"v":"[hidden]"}`,
		"nothing":                      "nothing",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
		for size := 1; size <= len(in); size++ {
			var out bytes.Buffer
			w := r.Writer(&out)
			for i := 0; i < len(in); i += size {
				if _, err := w.Write([]byte(in[i:min(i+size, len(in))])); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"hunter2", "hunter3", "user:pw", "line two", `a\"b`} {
				if strings.Contains(out.String(), secret) {
					t.Errorf("%q in pieces of %d became %q", in, size, out.String())
				}
			}
		}
	}
}

func cwd(t *testing.T) place.Place {
	t.Helper()
	dir := t.TempDir()
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Resolve(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDirectories(t *testing.T) {
	p := cwd(t)
	if _, err := audit.Open(p, ".state/audit", false); err == nil {
		t.Error("a directory that is not there was opened")
	}
	d, err := audit.Open(p, ".state/audit", true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Replace("a.json", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := d.Replace("a.json", []byte("two")); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(d.Abs)
	if err != nil || len(names) != 1 || d.Abs != filepath.Join(p.Abs, ".state", "audit") {
		t.Errorf("%v %v in %s", names, err, d.Abs)
	}
	if b, err := os.ReadFile(d.Path("a.json")); err != nil || string(b) != "two" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(p.Abs, ".state", ".gitignore")); err != nil || string(b) != "*\n" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := audit.Open(p, "../up", true); err == nil {
		t.Error("records outside the working directory")
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(p.Abs, "away")); err != nil {
		t.Fatal(err)
	}
	for _, create := range []bool{true, false} {
		if _, err := audit.Open(p, "away", create); err == nil {
			t.Error("records through a link that leads outside")
		}
	}
	abs, err := audit.Open(p, filepath.Join(t.TempDir(), "x", "y"), true)
	if err != nil {
		t.Fatal(err)
	}
	abs.Close()
	for in, want := range map[string]string{".mcp-conduit/audit": ".mcp-conduit/tasks", "audit": "tasks", "/var/a/audit": "/var/a/tasks"} {
		if got := filepath.ToSlash(audit.Beside(filepath.FromSlash(in), "tasks")); got != want {
			t.Errorf("beside %s is %s", in, got)
		}
	}
}

func TestNames(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 8, 9, 123e6, time.UTC)
	if got := audit.Name(at, "my/agent", "../x y"); got != "2026-11-21T07-08-09-123Z__my_agent__.._x_y" {
		t.Error(got)
	}
	for in, want := range map[string]string{"": "_", ".": "_", "..": "_", "a-b_c.d": "a-b_c.d"} {
		if got := audit.Segment(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestLog(t *testing.T) {
	d, err := audit.Open(cwd(t), "logs", true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	red := audit.NewRedactor([]string{"KEY=secret"})
	l, err := audit.Create(d, "a.md", audit.Header{Task: "t", Provider: "p", Cwd: "/w", Started: time.Unix(0, 0), Idle: time.Minute, Hard: time.Hour, Attempts: 2}, red)
	if err != nil {
		t.Fatal(err)
	}
	l.Printf("\n## Attempt %d\n\n", 1)
	out, errs := red.Writer(l.Stream("stdout")), red.Writer(l.Stream("stderr"))
	for _, w := range []struct {
		to   interface{ Write([]byte) (int, error) }
		text string
	}{{out, "one\nhalf of "}, {errs, "an error, sec"}, {errs, "ret\n"}, {out, "a line\n"}, {out, "end"}} {
		if _, err := w.to.Write([]byte(w.text)); err != nil {
			t.Fatal(err)
		}
	}
	out.Close()
	errs.Close()
	l.Printf("done with %s\n", "secret")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := `# Run log

- Task: t
- Provider: p
- Cwd: /w
- Started: 1970-01-01T00:00:00.000Z
- Idle timeout: 1m0s
- Time limit: 1h0m0s
- Max attempts: 2

## Attempt 1

[stdout] one
[stdout] half of 
[stderr] an error, 
[stderr] [hidden]
[stdout] a line
[stdout] end
done with [hidden]
`
	got, err := os.ReadFile(d.Path("a.md"))
	if flat := strings.ReplaceAll(string(got), "[stderr] an error, [hidden]\n", "[stderr] an error, \n[stderr] [hidden]\n"); err != nil || flat != want {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := audit.Create(d, "a.md", audit.Header{}, nil); err == nil {
		t.Error("a log was overwritten")
	}
	none := &audit.Log{}
	none.Printf("x")
	none.Flush()
	if _, err := none.Stream("x").Write([]byte("y")); err != nil || none.Close() != nil {
		t.Error("the zero Log fails")
	}
}
