package mux

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Time is that of the bubble, so the test takes none.
func TestProgressIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var sent []string
		p := newPacer(func(done, total int64, message string) {
			sent = append(sent, fmt.Sprintf("%d of %d %s at %dms", done, total, message, time.Since(begun).Milliseconds()))
		})
		at := func(ms int, done int64) {
			time.Sleep(begun.Add(time.Duration(ms) * time.Millisecond).Sub(time.Now()))
			p.report(done, 9, "m")
		}
		at(0, 1)
		at(100, 2)  // takes the place of the first
		at(510, 3)  // 2 was sent at 500
		at(530, 4)  // the last of a burst
		at(1000, 5) // long after: at once
		at(1001, 6) // not sent before the end
		p.end()
		if took := time.Since(begun); took != 1020*time.Millisecond {
			t.Errorf("the reply comes after %v", took)
		}
		p.report(7, 9, "late")
		time.Sleep(time.Minute)
		want := []string{"2 of 9 m at 500ms", "4 of 9 m at 700ms", "5 of 9 m at 1000ms"}
		if !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
	})
}

func TestShortCallsSendNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		p := newPacer(func(int64, int64, string) { t.Error("sent") })
		p.report(1, 1, "")
		p.end()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the reply waits %v", took)
		}
	})
}
