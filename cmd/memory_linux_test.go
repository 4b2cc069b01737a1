package cmd_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// resident returns a line of the kernel's account of the process, in bytes.
func (p *process) resident(line string) (bytes int64) {
	p.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), line+":")
	if _, err := fmt.Sscanf(rest, "%d kB", &bytes); err != nil {
		p.Fatalf("%s: %v", line, err)
	}
	return bytes << 10
}

// A large text is in memory once on its way from the client to the file, and what
// else the server needs fits beside it.
func TestMemoryOfALargePut(t *testing.T) {
	const size = 8 << 20
	for name, unit := range map[string]string{"plain": "a", "lines": `a line of text and its end\n`, "escapes": `\"é\u00e9 \\ \t`} {
		t.Run(name, func(t *testing.T) {
			p := start(t, nil)
			p.handshake()
			p.send(toolCall(1, "write", `{"action":"put","entries":[{"path":"small","content":"x"}]}`))
			p.reply()
			idle := p.resident("VmRSS")
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0o200); err != nil {
				t.Fatal(err) // the peak is from the start else
			}
			p.send(toolCall(2, "write", `{"action":"put","entries":[{"path":"large","content":"`+strings.Repeat(unit, size/len(unit))+`"}]}`))
			if r := p.reply(); r.Error != nil || r.Result.IsError {
				t.Fatalf("%+v", r)
			}
			if peak := p.resident("VmHWM") - idle; float64(peak) > 2.2*size {
				t.Errorf("a put of %d bytes takes %d above what the server takes idle", size, peak)
			} else {
				t.Logf("%.2f times its size", float64(peak)/size)
			}
			p.in.Close()
			p.ends(0)
		})
	}
}
