package task_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
)

func TestLockIsHeldByOne(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	var inside atomic.Int32
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for done := 0; done < 50; {
				l, ok, err := task.TryLock(name)
				if err != nil {
					t.Error(err)
					return
				}
				if !ok {
					time.Sleep(time.Microsecond)
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold it", n)
				}
				inside.Add(-1)
				if err := l.Unlock(); err != nil {
					t.Error(err)
				}
				done++
			}
		})
	}
	g.Wait()
	if _, err := os.Stat(name); err == nil {
		t.Error("the file is left")
	}
}
