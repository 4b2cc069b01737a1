package mux

import (
	"sync"
	"time"
)

// The notifications of one call come no sooner than progressFirst after its
// start, no closer together than progressEvery, and none in the progressQuiet
// before its reply: a client that finds both in one read may take the first for
// one of a call that it does not know.
const (
	progressFirst = 500 * time.Millisecond
	progressEvery = 200 * time.Millisecond
	progressQuiet = 20 * time.Millisecond
)

// A pacer spaces the progress notifications of one call; of a burst the last one
// is sent.
type pacer struct {
	send func(done, total int64, message string)

	mu          sync.Mutex
	next        time.Time // when another may be sent
	last        time.Time // when one was sent
	done, total int64     // the latest report
	message     string
	later       *time.Timer // sends it; nil where nothing is left to send
	ended       bool
}

func newPacer(send func(done, total int64, message string)) *pacer {
	return &pacer{send: send, next: time.Now().Add(progressFirst)}
}

// report takes a report of progress.
func (p *pacer) report(done, total int64, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total, p.message = done, total, message
	if p.later != nil || p.ended {
		return
	}
	if wait := time.Until(p.next); wait > 0 {
		p.later = time.AfterFunc(wait, p.flush)
		return
	}
	p.notify()
}

// flush sends what was reported last.
func (p *pacer) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later = nil
	if !p.ended {
		p.notify()
	}
}

// notify sends the latest report. The caller holds the lock.
func (p *pacer) notify() {
	p.send(p.done, p.total, p.message)
	p.last = time.Now()
	p.next = p.last.Add(progressEvery)
}

// end has nothing sent any more, and returns once the reply may be.
func (p *pacer) end() {
	p.mu.Lock()
	p.ended = true
	if p.later != nil {
		p.later.Stop()
	}
	quiet := progressQuiet - time.Since(p.last)
	p.mu.Unlock()
	time.Sleep(quiet)
}
