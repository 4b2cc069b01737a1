package app_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestEnvironmentFile(t *testing.T) {
	dir := t.TempDir()
	have := app.Environ{"HOME": dir, "USERPROFILE": dir, "HAVE": "mine", "EMPTY": " "}
	for text, want := range map[string]map[string]string{
		"":                                      {},
		"# comment\n\n  # A=1\nA=1\nB = 2 \r\n": {"A": "1", "B": "2"},
		"\ufeffexport A=x=y#z \nA=":             {"A": ""},
		"A='it # is' \nB=\"two\\nlines\"":       {"A": "it # is", "B": "two\nlines"},
		"HAVE=other\nEMPTY=full":                {"EMPTY": "full"},
		"A=C:\\new\\dir":                        {"A": `C:\new\dir`},
	} {
		if err := os.WriteFile(filepath.Join(dir, "env"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, added, err := have.WithFile("~/env")
		all := maps.Clone(have)
		maps.Copy(all, want)
		if err != nil || !maps.Equal(got, all) || len(added) != len(want) {
			t.Errorf("%q: %q, %v, %v", text, got, added, err)
		}
	}
	for text, want := range map[string]string{"A=1\nnonsense": "line 2", "1A=2": "line 1", "=x": "line 1", "A='": "quotes of A", "A=\"x": "quotes of A", "A='x'y": "quotes of A"} {
		if err := os.WriteFile(filepath.Join(dir, "env"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := have.WithFile(filepath.Join(dir, "env")); !maps.Equal(got, have) || !strings.Contains(message(err), want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, _, err := have.WithFile(filepath.Join(dir, "none")); !strings.Contains(message(err), "cannot be read") {
		t.Error(err)
	}
	// The example is one, with every setting as it is by default.
	if _, added, err := have.WithFile("../../.env.example"); err != nil || len(added) > 0 {
		t.Errorf("%v, %v", added, err)
	}
	b, err := os.ReadFile("../../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	var set strings.Builder
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "# "); ok && strings.Contains(strings.SplitN(text, " ", 2)[0], "=") {
			set.WriteString(text)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "env"), []byte(set.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, added, err := have.WithFile("~/env"); err != nil || len(added) < 30 || !added["CONDUIT_READ_ONLY"] {
		t.Errorf("%v, %v", added, err)
	}
}

func message(err error) string { _, m := fault.Of(err); return m }
