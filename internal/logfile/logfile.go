// Package logfile writes the server's log: JSON records in a file of its own,
// never on stdout or stderr.
package logfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	slogmulti "github.com/samber/slog-multi"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
)

const (
	// LevelTrace is finer than DEBUG.
	LevelTrace = slog.Level(-8)
	// LevelFatal is for what ends the server.
	LevelFatal = slog.Level(12)

	// rotateAt is the size above which a log is set aside when a server starts.
	rotateAt = 32 << 20

	// kept is how many grave records are remembered in memory.
	kept = 32
)

// Off is the CONDUIT_LOG_FILE_PATH that switches logging off, in any case.
const Off = "NONE"

// Levels are the names that LOG_LEVEL takes.
var Levels = map[string]slog.Level{
	"TRACE": LevelTrace, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo,
	"WARN": slog.LevelWarn, "ERROR": slog.LevelError, "FATAL": LevelFatal,
}

// Default returns where the log goes when no file is set.
func Default() string { return filepath.Join(os.TempDir(), "conduit-mcp.log") }

// A Log is an open log, or the memory of why it could not be opened.
type Log struct {
	*slog.Logger
	Path string   // "NONE" where logging is off
	Err  error    // why the file could not be opened
	file *os.File // nil where nothing is written
	mem  *memory
}

// Open opens the log at path, "" for the default, and sets a file above 32 MiB
// aside. It never fails: a file that cannot be written (a link, another user's,
// no permission) leaves a log that only remembers grave records, Err among them.
func Open(path, level string) *Log {
	l := &Log{Path: path, mem: &memory{}}
	if l.Path == "" {
		l.Path = Default()
	}
	if abs, err := filepath.Abs(l.Path); err == nil {
		l.Path = abs
	}
	if strings.EqualFold(path, Off) {
		l.Path = Off
		l.Logger = slog.New(slog.DiscardHandler)
		return l
	}
	options := &slog.HandlerOptions{Level: Levels[strings.ToUpper(level)], ReplaceAttr: words}
	handlers := []slog.Handler{slog.NewJSONHandler(l.mem, &slog.HandlerOptions{Level: slog.LevelError, ReplaceAttr: words})}
	if l.file, l.Err = open(l.Path); l.Err == nil {
		handlers = append(handlers, slog.NewJSONHandler(l.file, options))
	}
	l.Logger = slog.New(slogmulti.Fanout(handlers...)).With("pid", os.Getpid()) // servers may share a file
	if l.Err != nil {
		l.Log(context.Background(), LevelFatal, "the log file cannot be written; logging is off", "path", l.Path, "err", l.Err)
	}
	return l
}

// File returns the open file, or nil.
func (l *Log) File() *os.File { return l.file }

// Remembered returns the latest records of level ERROR and above.
func (l *Log) Remembered() []string { return l.mem.list() }

// Close closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// words names the two levels that slog has none for, and writes times in UTC.
func words(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.LevelKey:
		if level, ok := a.Value.Any().(slog.Level); ok {
			for name, l := range Levels {
				if l == level {
					a.Value = slog.StringValue(name)
				}
			}
		}
	case slog.TimeKey:
		a.Value = slog.StringValue(fileinfo.ISO(a.Value.Time()))
	}
	return a
}

// open opens the file for appending one record a write, after setting a large
// one aside.
func open(path string) (*os.File, error) {
	f, err := openOwn(path)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil && !fileinfo.Own(fi) {
		err = fmt.Errorf("%s belongs to another user", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	if fi.Size() <= rotateAt {
		return f, nil
	}
	err = rotate(f, path)
	f.Close()
	if err != nil {
		return nil, err
	}
	return openOwn(path)
}

// rotate renames the open log f at path to path+".1", unless another server has
// done so since f was opened.
func rotate(f *os.File, path string) error {
	// Where it cannot be locked, what is at path decides alone.
	if filelock.Lock(context.Background(), f, filelock.Exclusive) == nil {
		defer filelock.Unlock(f)
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !os.SameFile(mine, now) {
		return nil
	}
	return os.Rename(path, path+".1")
}

// Tail returns at most n bytes from the end of the log at path, whole lines.
func Tail(path string, n int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, fi.Size()-n)
	b, err := io.ReadAll(io.NewSectionReader(f, from, fi.Size()-from))
	if err != nil {
		return "", err
	}
	text := string(b)
	if from > 0 {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text, nil
}

// memory remembers the last records written to it.
type memory struct {
	mu    sync.Mutex
	lines []string
}

func (m *memory) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lines) == kept {
		m.lines = m.lines[1:]
	}
	m.lines = append(m.lines, strings.TrimSpace(string(b)))
	return len(b), nil
}

func (m *memory) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.lines...)
}
