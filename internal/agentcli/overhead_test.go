package agentcli_test

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/agenttest"
)

// BenchmarkOverhead is what a task takes beyond its agent, in a repository of
// 5,000 files of which the agent changes one; the median is reported.
func BenchmarkOverhead(b *testing.B) {
	x := newBench(b, plays("fake", "codex-jsonl", "stdin", "say codex", "write note.txt hi"))
	for i := range 5000 {
		x.write(b, fmt.Sprintf("dir%d/sub%d/file%d.txt", i%50, i%7, i), fmt.Sprintf("file %d\n", i))
	}
	x.repository(b)
	var bare, whole []time.Duration
	for b.Loop() {
		began := time.Now()
		cmd := exec.Command(agenttest.Fake, "stdin", "say codex", "write note.txt hi")
		cmd.Dir = x.dir
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(began))
		x.git(b, "clean", "-qfd", "-e", ".mcp-conduit")
		began = time.Now()
		if r := x.do(b, func(r *agentcli.Request) {}); !r.OK || len(r.Result.Paths) != 1 {
			b.Fatal(pretty(r))
		}
		whole = append(whole, time.Since(began))
		x.git(b, "clean", "-qfd", "-e", ".mcp-conduit")
	}
	slices.Sort(bare)
	slices.Sort(whole)
	b.ReportMetric(float64(bare[len(bare)/2].Microseconds())/1000, "bare-ms")
	b.ReportMetric(float64((whole[len(whole)/2]-bare[len(bare)/2]).Microseconds())/1000, "overhead-ms")
}
