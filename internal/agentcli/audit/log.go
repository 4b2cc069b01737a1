package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A Log is the Markdown log of one run: a header, and for each attempt all that
// the agent printed. The zero Log writes nothing. It may be used from several
// goroutines.
type Log struct {
	mu  sync.Mutex
	f   *os.File
	w   *bufio.Writer
	red *Redactor

	unended *labelled // the stream whose line has no end yet
}

// A Header is what a log begins with.
type Header struct {
	Task, Provider, Cwd string
	Started             time.Time
	Idle, Hard          time.Duration
	Attempts            int
}

// Create starts the log name in d.
func Create(d *Dir, name string, h Header, red *Redactor) (*Log, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Log{f: f, w: bufio.NewWriterSize(f, 256<<10), red: red}
	l.Printf("# Run log\n\n- Task: %s\n- Provider: %s\n- Cwd: %s\n- Started: %s\n- Idle timeout: %s\n- Time limit: %s\n- Max attempts: %d\n",
		h.Task, h.Provider, h.Cwd, ISO(h.Started), h.Idle, h.Hard, h.Attempts)
	return l, nil
}

// Printf adds a line or more of its own, written out at once.
func (l *Log) Printf(format string, args ...any) {
	if l.f == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLine(nil)
	_, _ = io.WriteString(l.w, l.red.Text(fmt.Sprintf(format, args...)))
	_ = l.w.Flush()
}

// Stream returns a writer whose lines appear in the log, each after label in
// brackets. What is written to it is without secrets already.
func (l *Log) Stream(label string) io.Writer {
	if l.f == nil {
		return io.Discard
	}
	return &labelled{log: l, prefix: []byte("[" + label + "] ")}
}

// Flush writes out what is buffered.
func (l *Log) Flush() {
	if l.f == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.w.Flush()
}

// Close ends the log.
func (l *Log) Close() error {
	if l.f == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLine(nil)
	return errors.Join(l.w.Flush(), l.f.Close())
}

// endLine ends the line of a stream other than s.
func (l *Log) endLine(s *labelled) {
	if l.unended != nil && l.unended != s {
		_ = l.w.WriteByte('\n')
		l.unended = nil
	}
}

// A labelled writes lines after a prefix. Where another stream comes between,
// the piece of a line ends there and goes on in a line of its own.
type labelled struct {
	log    *Log
	prefix []byte
}

func (s *labelled) Write(b []byte) (int, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line = b[:i+1]
		}
		b = b[len(line):]
		s.log.endLine(s)
		if s.log.unended == nil {
			_, _ = s.log.w.Write(s.prefix)
		}
		if _, err := s.log.w.Write(line); err != nil {
			return 0, err
		}
		if s.log.unended = nil; line[len(line)-1] != '\n' {
			s.log.unended = s
		}
	}
	return n, nil
}
