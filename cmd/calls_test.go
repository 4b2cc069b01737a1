package cmd

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A thousand calls at once leave nothing behind: neither goroutines nor memory.
func TestAThousandCallsLeaveNothingBehind(t *testing.T) {
	dir, path := smallFile(t)
	c := start(t, dir)
	var lines strings.Builder
	for id := range 1000 {
		fmt.Fprintln(&lines, readCall(id, path))
	}
	round := func() {
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(c.in, lines.String())
			sent <- err
		}()
		for range 1000 {
			c.receive(t)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	memory := func() uint64 {
		runtime.GC()
		runtime.GC() // what the first one has left in pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	c.send(t, readCall(0, path))
	c.receive(t)
	idle := runtime.NumGoroutine()
	round()
	before := memory()
	for range 2 {
		round()
	}
	for end := time.Now().Add(5 * time.Minute); runtime.NumGoroutine() > idle; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), idle)
		}
	}
	if after := memory(); after > before+1<<20 {
		t.Errorf("%d bytes are in use, %d before", after, before)
	}
}
