// Package search finds texts and expressions in files of any size.
package search

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
)

// ErrGivenUp says that an expression took more than its share of time.
var ErrGivenUp = errors.New("the search was given up: the expression takes too long")

// MaxPattern is the longest pattern accepted, in bytes.
const MaxPattern = 64 << 10

// A file is searched in windows. What begins in the last margin of one is found
// in the next, which begins a margin earlier.
const (
	window = 1 << 20
	margin = 256 << 10
)

// What an expression may take for one attempt, and for a file.
const (
	attemptTime = 200 * time.Millisecond
	fileTime    = 200 * time.Millisecond
	fileTimeMiB = 20 * time.Millisecond
)

// A Matcher is a [Literal] or an [Expression].
type Matcher interface {
	// each calls yield for the matches in b that begin at start or later, in
	// order, until yield returns false. left is the time it may still take.
	each(b []byte, start int, left *time.Duration, yield func(from, to int) bool) error
}

// Options say what is wanted of the matches.
type Options struct {
	Max     int // lines to return at most; 0 asks only whether there is a match
	Context int // lines to show before and after each
}

// A Line is a line in which a match begins.
type Line struct {
	Line   int      `json:"line"`   // from 1
	Column int      `json:"column"` // of its first match, in characters from 1
	Text   string   `json:"text"`   // without its end; of a long one the part around the match
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// Content searches f, which has size bytes and whose name helps to tell its type.
// A content that is not text has no matches. The error is [ErrGivenUp], the one
// of ctx, or one of reading; what was found by then comes with it. The bytes are
// read in order, but for the first ones up to 1 MiB, which are read several
// times.
func Content(ctx context.Context, f io.ReaderAt, size int64, name string, m Matcher, o Options) (found bool, lines []Line, err error) {
	s := scans.Get().(*scan)
	defer s.release()
	buf := s.buf[:]
	// A file that fits into the window is read once; of others the head first.
	fits := size > 0 && size <= window
	first := int64(mediatype.HeadSize)
	if fits {
		first = size
	}
	n, err := f.ReadAt(buf[:first], 0)
	if err != nil && err != io.EOF {
		return false, nil, err
	}
	head := buf[:min(n, mediatype.HeadSize)]
	s.m, s.o, s.left = m, o, fileTime+fileTimeMiB*time.Duration(size>>20)
	const whole = 1<<63 - 1
	switch big := bytes.HasPrefix(head, []byte("\xfe\xff")); {
	case big, bytes.HasPrefix(head, []byte("\xff\xfe")):
		s.text = &wide{in: io.NewSectionReader(f, 2, whole-2), big: big}
	case bytes.IndexByte(head, 0) >= 0:
		return false, nil, nil
	case fits:
		s.n = copy(buf, bytes.TrimPrefix(buf[:n], mark))
	default:
		s.text = io.NewSectionReader(f, 0, whole)
		if bytes.HasPrefix(head, mark) {
			s.text = io.NewSectionReader(f, int64(len(mark)), whole-int64(len(mark)))
		}
	}
	err = s.run(ctx)
	if s.found {
		// Files with matches are few, so their type is looked at last.
		n, rerr := f.ReadAt(buf[:min(first, mediatype.HeadSize)], 0)
		if rerr != nil && rerr != io.EOF {
			return false, nil, rerr
		}
		if !mediatype.IsText(mediatype.Detect(buf[:n], name)) {
			return false, nil, nil
		}
	}
	return s.found, s.lines, err
}

// mark is the byte order mark in UTF-8.
var mark = []byte("\xef\xbb\xbf")

// A scan is the search of one text.
type scan struct {
	progress
	buf   [window]byte
	yield func(from, to int) bool // what takes a match
}

// progress is what changes from one text to the next.
type progress struct {
	m    Matcher
	o    Options
	text io.Reader // nil where buf holds all of it already
	left time.Duration

	found bool
	lines []Line

	n       int // bytes in buf
	counted int // in buf: newlines before it are counted
	line    int // number of newlines before counted
	column  int // characters in front of buf in the line it begins in

	last  bool // there is no text behind buf
	limit int  // a match that begins from here on is left to the next window, unless this is the last
	end   int  // of the last match
	done  bool // enough was found
}

var scans = sync.Pool{New: func() any {
	s := &scan{}
	s.yield = func(from, to int) bool {
		if !s.last && from >= s.limit {
			return false
		}
		s.end = to
		s.done = s.match(from)
		return !s.done
	}
	return s
}}

func (s *scan) release() {
	s.progress = progress{}
	scans.Put(s)
}

func (s *scan) run(ctx context.Context) error {
	start := 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.last = s.text == nil
		if !s.last {
			n, err := io.ReadFull(s.text, s.buf[s.n:])
			s.n += n
			s.last = err == io.EOF || err == io.ErrUnexpectedEOF
			if err != nil && !s.last {
				return err
			}
		}
		s.limit, s.end = s.n, start
		if !s.last {
			s.limit = boundary(s.buf[:], s.n-margin)
		}
		err := s.m.each(s.buf[:s.n], start, &s.left, s.yield)
		if err != nil || s.done || s.last {
			return err
		}
		cut := boundary(s.buf[:], s.limit-margin)
		s.shift(cut)
		start = max(s.limit, s.end) - cut
	}
}

// match notes a match that begins at from and reports whether that is enough.
func (s *scan) match(from int) bool {
	s.found = true
	if s.o.Max == 0 {
		return true
	}
	s.count(from)
	if k := len(s.lines); k > 0 && s.lines[k-1].Line == s.line+1 {
		return false
	}
	b := s.buf[:s.n]
	begin := bytes.LastIndexByte(b[:from], '\n') + 1
	column := utf8.RuneCount(b[begin:from]) + 1
	if begin == 0 {
		column += s.column
	}
	l := Line{Line: s.line + 1, Column: column, Text: clip(lineAt(b, begin), from-begin, begin == 0 && s.column > 0)}
	for at := begin; at > 0 && len(l.Before) < s.o.Context; {
		end := at - 1
		at = bytes.LastIndexByte(b[:end], '\n') + 1
		l.Before = append(l.Before, clip(b[at:end], 0, at == 0 && s.column > 0))
	}
	for i, j := 0, len(l.Before)-1; i < j; i, j = i+1, j-1 {
		l.Before[i], l.Before[j] = l.Before[j], l.Before[i]
	}
	for at := begin; len(l.After) < s.o.Context; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 || at+i+1 >= len(b) {
			break
		}
		at += i + 1
		l.After = append(l.After, clip(lineAt(b, at), 0, false))
	}
	s.lines = append(s.lines, l)
	return len(s.lines) == s.o.Max
}

// count brings the number of lines up to the position at.
func (s *scan) count(at int) {
	if at > s.counted {
		s.line += bytes.Count(s.buf[s.counted:at], []byte{'\n'})
		s.counted = at
	}
}

// shift drops what is in front of cut.
func (s *scan) shift(cut int) {
	if s.o.Max > 0 {
		s.count(cut)
		s.counted -= cut
		gone := s.buf[:cut]
		if i := bytes.LastIndexByte(gone, '\n'); i >= 0 {
			s.column, gone = 0, gone[i+1:]
		}
		s.column += utf8.RuneCount(gone)
	}
	s.n = copy(s.buf[:], s.buf[cut:s.n])
}

// boundary returns the beginning of the character that at lies in.
func boundary(b []byte, at int) int {
	for i := at; i > at-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return at
}

func lineAt(b []byte, begin int) []byte {
	if i := bytes.IndexByte(b[begin:], '\n'); i >= 0 {
		return b[begin : begin+i]
	}
	return b[begin:]
}

// Of a longer line the part around the match is shown, in characters.
const (
	maxText = 500
	lead    = 100
)

// clip returns what is shown of a line whose match begins at the byte at. cut
// says that its beginning is missing already.
func clip(line []byte, at int, cut bool) string {
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if at = min(at, len(line)); at > maxText-lead {
		for range lead {
			_, n := utf8.DecodeLastRune(line[:at])
			at -= n
		}
		line, cut = line[at:], true
	}
	end, tail := 0, ""
	for chars := 0; end < len(line); chars++ {
		if chars == maxText {
			tail = "…"
			break
		}
		_, n := utf8.DecodeRune(line[end:])
		end += n
	}
	text := string(bytes.ToValidUTF8(line[:end], []byte("\uFFFD"))) + tail
	if cut {
		text = "…" + text
	}
	return text
}
