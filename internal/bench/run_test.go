//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun measures a little with the real program; the script of other servers
// is played by one of the test's own.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "conduit-mcp")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/conduit-mcp").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write := func(name, content string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("package/package.json", `{"name": "@some/server", "version": "3.2.1"}`)
	script := write("package/lib/index.js", "")
	answer := write("sample.json", measurements)
	write("bin/python3", `#!/bin/sh
[ "$1" = compare.py ] || exit 9
if [ "$2" = --list ]; then
	echo "conduit    $CONDUIT_BIN"
	echo "other      `+binary+` `+dir+`"
	echo "third      node `+script+` --allow /"
	echo "absent     (not installed)"
	echo "cli        sh"
else
	[ "$2 $3 $4" = "--rounds 3 --json" ] && cp "`+answer+`" "$5"
fi
`)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Chdir(dir)
	write("compare.py", "")
	p := plan{parts: []string{"side", "growth"}, dir: dir, files: 2000, bytes: 2_000_000, script: "compare.py", rounds: 3, out: "out"}
	if err := p.run(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("out/BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{
		"| other | conduit-mcp 1.0.0 |\n", "| third | @some/server 3.2.1 |\n", "| zeta | first | 3 ms |", "| SHA-256 | 2 MB | ", "| find 1,000 files by a text | 2,000 | ",
		"](testdata/bench/growth.svg)", "## Go benchmarks\n\nNot measured in this run.\n", "| Cores | ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, dir) || strings.Contains(text, "("+host+")") || strings.Contains(text, "| "+host+" |") {
		t.Errorf("the file tells where it was made:\n%s", text)
	}
	if picture, err := os.ReadFile("out/testdata/bench/growth.svg"); err != nil || !strings.HasSuffix(string(picture), "</svg>\n") {
		t.Errorf("the picture: %v, %d bytes", err, len(picture))
	}
	cmd := exec.Command(binary, dir)
	cmd.Env = environment("CONDUIT_LOG_FILE_PATH=NONE")
	s, err := start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	var response []object
	for _, args := range []object{{"operation": "metadata", "sources": []string{filepath.Join(dir, "nowhere")}}, {"operation": "none"}} {
		if _, err := s.call("read", args, &response); err == nil || !strings.Contains(err.Error(), "ERR_") {
			t.Errorf("%v: %v, want an error of the tool", args, err)
		}
	}
	if left, err := filepath.Glob("conduit-bench-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestNothingToCompareWith(t *testing.T) {
	for _, p := range []plan{{}, {script: filepath.Join(t.TempDir(), "none.py")}} {
		if c, err := p.besideOthers(t.Context(), "binary"); c != nil || err != nil {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if text := (results{plan: plan{parts: []string{"side"}}}).markdown(); !strings.Contains(text, "it needs `python3` and a script") {
		t.Errorf("the file does not say why:\n%s", text)
	}
}

// TestChecksAreMade sees that work that was not done is not measured.
func TestChecksAreMade(t *testing.T) {
	good := []object{{"size_bytes": float64(treeBytes(1000)), "content": "a " + needle, "checksum": "?"}}
	for _, o := range append(append([]operation{}, overTrees...), overFiles...) {
		if err := o.check(1000, nil); err == nil {
			t.Errorf("%s: no result is accepted", o.name)
		}
		err := o.check(1000, good)
		if wanted := strings.HasPrefix(o.name, "read") || o.name == "sizes of all directories" || o.name == "find a text at its end"; (err == nil) != wanted {
			t.Errorf("%s: %v", o.name, err)
		}
	}
}
