//go:build unix

package cmd_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// BenchmarkColdStart is from the start of the program to its answer to
// initialize, its end included.
func BenchmarkColdStart(b *testing.B) {
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	dir := b.TempDir()
	for b.Loop() {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), "CONDUIT_ALLOWED_PATHS="+dir, "CONDUIT_LOG_FILE_PATH=NONE")
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := io.WriteString(in, initialize+"\n"); err != nil {
			b.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"protocolVersion"`) {
			b.Fatal(line, err)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
