package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTour(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "conduit-mcp.exe") // a name that every system takes
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/conduit-mcp")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	scratch := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, scratch)
	}
	t.Setenv("CONDUIT_READ_ONLY", "true") // must not reach the server
	var out bytes.Buffer
	if err := tour(binary, repository, true, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, s := range steps {
		if !strings.Contains(out.String(), s.title) {
			t.Errorf("the output lacks the step %q", s.title)
		}
	}
	for _, want := range []string{"→ zipfs_open {", "ms ", " tokens\n", "All ", "steps ended as they should", "the longest: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	full := out.Len()
	out.Reset()
	if err := tour(binary, repository, false, &out); err != nil || strings.Count(out.String(), "\n") > len(steps)+10 || out.Len() > full/2 {
		t.Errorf("%v; the short form is\n%s", err, out.String())
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := tour(filepath.Join(scratch, "none"), repository, false, &out); err == nil {
		t.Error("a binary that does not exist is no error")
	}
}

func TestReadable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"a":[1]}`, "{\n    \"a\": [\n      1\n    ]\n  }"},
		{"plain\ntext\n", "plain\n  text"},
		{strings.Repeat("é", columns+1), strings.Repeat("é", columns) + " …"},
		{strings.Repeat("x\n", lines+2), strings.TrimSpace(strings.Repeat("x\n  ", lines)) + "\n  … (2 more)"},
	} {
		if got := readable(c.text); got != c.want {
			t.Errorf("readable(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
