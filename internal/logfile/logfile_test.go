package logfile_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/logfile"
)

func opened(t *testing.T, path, level string) *logfile.Log {
	t.Helper()
	l := logfile.Open(path, level)
	t.Cleanup(func() { l.Close() })
	return l
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func TestLevels(t *testing.T) {
	order := []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
	for least, name := range order {
		path := filepath.Join(t.TempDir(), "log")
		l := opened(t, path, strings.ToLower(name))
		for _, level := range order {
			l.Log(t.Context(), logfile.Levels[level], "said at "+level, "n", 1)
		}
		var got []string
		for _, line := range lines(t, path) {
			var record struct{ Time, Level, Msg string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if record.Msg != "said at "+record.Level || len(record.Time) != 24 || !strings.HasSuffix(record.Time, "Z") {
				t.Errorf("%s", line)
			}
			got = append(got, record.Level)
		}
		if want := strings.Join(order[least:], " "); strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
		if n := len(l.Remembered()); n != 2 { // ERROR and FATAL
			t.Errorf("%s: %d records remembered", name, n)
		}
	}
}

func TestOff(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"NONE", "none", "None"} {
		l := opened(t, path, "TRACE")
		l.Error("lost")
		if l.Path != "NONE" || l.File() != nil || l.Err != nil || len(l.Remembered()) != 0 {
			t.Errorf("%s: %+v", path, l)
		}
	}
	if list, err := os.ReadDir("."); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestPathAndMode(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l := opened(t, "", "INFO")
	if l.Path != filepath.Join(os.TempDir(), "conduit-mcp.log") || l.Err != nil {
		t.Errorf("%s, %v", l.Path, l.Err)
	}
	fi, err := os.Stat(l.Path)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if l := opened(t, "relative.log", "INFO"); !filepath.IsAbs(l.Path) || l.File() == nil {
		t.Errorf("%s", l.Path)
	}
}

func TestAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for n := range 3 {
		l := opened(t, path, "INFO")
		l.Info("run", "n", n)
		l.Close()
	}
	if got := lines(t, path); len(got) != 3 || !strings.Contains(got[2], `"n":2`) {
		t.Errorf("%v", got)
	}
}

// A record is one write of one line, so that servers may share a file.
func TestOneRecordOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var writers sync.WaitGroup
	for w := range 4 {
		l := opened(t, path, "INFO")
		writers.Go(func() {
			for n := range 200 {
				l.Info("line\nbreak", "w", w, "n", n, "pad", strings.Repeat("é\n", 500))
			}
		})
	}
	writers.Wait()
	got := lines(t, path)
	if len(got) != 800 {
		t.Errorf("%d lines", len(got))
	}
	for _, line := range got {
		if !json.Valid([]byte(line)) {
			t.Fatalf("%.200s", line)
		}
	}
}

func TestRotation(t *testing.T) {
	const limit = 32 << 20
	for size, rotated := range map[int64]bool{limit: false, limit + 1: true} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".1", []byte("older"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		servers := 1
		if rotated {
			servers = 4 // that start at the same time
		}
		var starters sync.WaitGroup
		for n := range servers {
			starters.Go(func() {
				l := logfile.Open(path, "INFO")
				defer l.Close()
				if l.Err != nil {
					t.Error(l.Err)
				}
				l.Info("new", "n", n)
			})
		}
		starters.Wait()
		now, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		aside, err := os.Stat(path + ".1")
		if err != nil {
			t.Fatal(err)
		}
		if rotated && (now.Size() > 1<<20 || aside.Size() < size) || !rotated && (now.Size() <= size || aside.Size() != 5) {
			t.Errorf("%d bytes: the log has %d now, what was set aside %d", size, now.Size(), aside.Size())
		}
	}
}

func TestRemembersTheLatestFailures(t *testing.T) {
	l := opened(t, filepath.Join(t.TempDir(), "log"), "FATAL")
	for n := range 100 {
		l.Log(t.Context(), slog.LevelError, "failed", "n", n)
		l.Info("fine")
	}
	got := l.Remembered()
	if len(got) != 32 || !strings.Contains(got[0], `"n":68`) || !strings.Contains(got[31], `"n":99`) {
		t.Errorf("%d records, from %s", len(got), got[0])
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var all strings.Builder
	for n := range 10 {
		fmt.Fprintf(&all, "line %d\n", n)
	}
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]string{1000: all.String(), 20: "line 8\nline 9\n", 3: ""} {
		if got, err := logfile.Tail(path, n); err != nil || got != want {
			t.Errorf("%d: %q, %v", n, got, err)
		}
	}
	if _, err := logfile.Tail(path+".none", 10); err == nil {
		t.Error("a tail of nothing")
	}
}
