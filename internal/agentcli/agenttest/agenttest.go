// Package agenttest builds the program that plays agents in tests.
package agenttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Fake is the program, once Main runs.
var Fake string

// fakeVar names it to other processes of the same tests.
const fakeVar = "AGENTCLI_TEST_FAKE"

// Main builds [Fake] and runs m with a home directory of its own. It returns
// the exit code. The program is built once, also where tests run themselves.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "agenttest-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if Fake = os.Getenv(fakeVar); Fake == "" {
		Fake = filepath.Join(dir, "fakecli.exe")
		build := exec.Command("go", "build", "-o", Fake, "github.com/conduit-mcp/conduit-mcp/internal/agentcli/testdata/fakecli")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintln(os.Stderr, string(out))
			return 1
		}
		os.Setenv(fakeVar, Fake)
	}
	// Nothing of the tests belongs to the user, and nothing of the user's counts.
	os.Unsetenv("XDG_STATE_HOME")
	os.Setenv("HOME", dir)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	return m.Run()
}

// WaitFor returns once the file name is there. It has no limit of its own: that
// of the test is the one.
func WaitFor(t testing.TB, name string) {
	t.Helper()
	for t.Context().Err() == nil {
		if _, err := os.Stat(name); err == nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("%s did not appear", name)
}
