package stdio

import (
	"sync"
	"time"
)

// A watchdog calls late once where what was begun is not ended within the limit.
// Its timer runs on from one thing to the next, since to set one wakes a thread, and
// rests when nothing was begun for as long as the limit.
type watchdog struct {
	limit time.Duration
	late  func()

	mu    sync.Mutex
	timer *time.Timer
	begun time.Time // zero: nothing is under way
	fresh bool      // something was begun since the timer was set
	set   bool
}

func watch(limit time.Duration, late func()) *watchdog {
	return &watchdog{limit: limit, late: late}
}

func (w *watchdog) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.fresh = time.Now(), true
	if !w.set {
		w.wait(w.limit)
	}
}

func (w *watchdog) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = time.Time{}
}

// stop ends the watch for good.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// wait sets the timer; w.mu is held.
func (w *watchdog) wait(d time.Duration) {
	w.set, w.fresh = true, false
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.look)
	} else {
		w.timer.Reset(d)
	}
}

// look is what happens when the time is up.
func (w *watchdog) look() {
	w.mu.Lock()
	left := w.limit - time.Since(w.begun)
	late := !w.begun.IsZero() && left <= 0
	switch {
	case late:
		w.begun, w.set = time.Time{}, false
	case !w.begun.IsZero():
		w.wait(left)
	case w.fresh:
		w.wait(w.limit)
	default:
		w.set = false
	}
	w.mu.Unlock()
	if late {
		w.late()
	}
}
