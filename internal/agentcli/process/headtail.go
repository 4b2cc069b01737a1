package process

import (
	"bytes"
	"fmt"
	"sync"
)

// HeadTail keeps the beginning and the end of what is written to it. It may be used
// from several goroutines.
type HeadTail struct {
	Max int // bytes kept of each end

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	at    int    // where the ring goes on
	total int64
}

// Write keeps b as far as it belongs to an end. It never fails.
func (e *HeadTail) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(b)
	e.total += int64(n)
	room := min(e.Max-len(e.head), len(b))
	e.head = append(e.head, b[:room]...)
	b = b[room:]
	if len(b) > e.Max {
		b = b[len(b)-e.Max:]
	}
	grow := min(e.Max-len(e.tail), len(b))
	e.tail = append(e.tail, b[:grow]...)
	for b = b[grow:]; len(b) > 0; {
		k := copy(e.tail[e.at:], b)
		b = b[k:]
		e.at = (e.at + k) % e.Max
	}
	return n, nil
}

// Left is how many bytes between the ends were not kept.
func (e *HeadTail) Left() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.total - int64(len(e.head)+len(e.tail))
}

// String returns what was kept, with a line that tells of a gap.
func (e *HeadTail) String() string {
	left := e.Left()
	e.mu.Lock()
	defer e.mu.Unlock()
	var b bytes.Buffer
	b.Write(e.head)
	if left > 0 {
		fmt.Fprintf(&b, "\n… %d bytes left out …\n", left)
	}
	b.Write(e.tail[e.at:])
	b.Write(e.tail[:e.at])
	return string(bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD")))
}

// Lines calls f with each line written to it, without its end. A line longer
// than Max is left out. Close gives the last one where it has no end.
type Lines struct {
	Max int
	F   func(line []byte)

	part []byte
	long bool
}

// Write never fails.
func (l *Lines) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.add(b)
			break
		}
		if len(l.part) == 0 && !l.long && i <= l.Max {
			l.F(trimCR(b[:i]))
		} else {
			l.add(b[:i])
			l.flush()
		}
		b = b[i+1:]
	}
	return n, nil
}

func (l *Lines) add(b []byte) {
	if l.long || len(l.part)+len(b) > l.Max {
		l.long, l.part = true, nil
		return
	}
	l.part = append(l.part, b...)
}

func (l *Lines) flush() {
	if !l.long {
		l.F(trimCR(l.part))
	}
	l.part, l.long = l.part[:0], false
}

// Close gives the last line where it has no end.
func (l *Lines) Close() error {
	if len(l.part) > 0 {
		l.flush()
	}
	return nil
}

func trimCR(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\r")) }
