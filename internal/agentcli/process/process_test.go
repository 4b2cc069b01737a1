package process_test

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
)

const asked = "PROCESS_TEST_ASKED"

func TestMain(m *testing.M) {
	if os.Getenv(asked) != "" {
		fmt.Print(process.Inherited("PROCESS_TEST_DEPTH"))
		return
	}
	os.Exit(m.Run())
}

func TestInherited(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // other systems do not tell
	}
	cmd := exec.Command("/bin/sh", "-c", `env -u PROCESS_TEST_DEPTH "$0"; true`, os.Args[0])
	cmd.Env = append(os.Environ(), asked+"=1", "PROCESS_TEST_DEPTH=7")
	if out, err := cmd.Output(); err != nil || string(out) != "7" {
		t.Errorf("hidden from it: %q, %v", out, err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asked+"=1")
	if out, err := cmd.Output(); err != nil || string(out) != "" {
		t.Errorf("there is none: %q, %v", out, err)
	}
}

func TestEnds(t *testing.T) {
	var all strings.Builder
	for i := range 400 {
		fmt.Fprintf(&all, "%d,", i)
	}
	text := all.String()
	random := rand.New(rand.NewSource(1))
	for range 200 {
		size, most := random.Intn(len(text)), 1+random.Intn(600)
		e := &process.Ends{Max: most}
		for rest := text[:size]; rest != ""; {
			n := min(1+random.Intn(200), len(rest))
			if _, err := e.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		want := text[:size]
		if left := size - 2*most; left > 0 {
			want = fmt.Sprintf("%s\n… %d bytes left out …\n%s", text[:most], left, text[size-most:size])
		}
		if got := e.String(); got != want || e.Left() != int64(max(0, size-2*most)) {
			t.Fatalf("%d bytes, %d kept of each end:\n%s\nwant\n%s", size, most, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	text := "one\r\n\n" + strings.Repeat("x", 20) + "\ntwo\nthree"
	for size := 1; size <= len(text); size++ {
		var got []string
		l := &process.Lines{Max: 10, F: func(b []byte) { got = append(got, string(b)) }}
		for i := 0; i < len(text); i += size {
			if _, err := l.Write([]byte(text[i:min(i+size, len(text))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if want := []string{"one", "", "two", "three"}; !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

func TestNotStarted(t *testing.T) {
	if _, err := process.Run(t.Context(), process.Spec{Path: "/no/such/program", Stdin: []byte("x")}); err == nil {
		t.Error("a program that is not there ran")
	}
}
