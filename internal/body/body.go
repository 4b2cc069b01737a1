// Package body carries large texts past the JSON encoders. Whoever builds a
// message puts a token where a text belongs; whoever writes the message has the
// text written there, escaped for the JSON strings round it, in one pass and
// constant memory.
package body

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Text is a text whose exact length is settled before it is handed over. One
// that has a method EscapedSize(layers int) int64 spares [Store.Len] a pass; one
// that has a method Verbatim() consists of characters that are escaped nowhere.
type Text interface {
	// WriteTo writes the text, valid UTF-8, or returns an error where it cannot
	// be produced in full. A text that stands in two places is written twice.
	WriteTo(w io.Writer) (int64, error)
	// Close releases what the text holds. The store calls it once.
	Close() error
}

// A Token stands for a text in a message. It consists of letters and digits,
// which no encoder changes.
type Token string

// Nested is the form that stands in a JSON string inside a JSON string, such as
// the JSON text of a tool result.
func (t Token) Nested() string { return string(t) + "2" }

// Plain is the form that stands in one JSON string, such as a plain text block
// or structured content.
func (t Token) Plain() string { return string(t) + "1" }

// A Store holds the texts of messages under way. Its methods may be called
// concurrently.
type Store struct {
	prefix string // 128 random bits, so that no content can forge a token
	mu     sync.Mutex
	last   uint64
	texts  map[uint64]Text
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{prefix: rand.Text(), texts: map[uint64]Text{}}
}

// Put takes charge of t: [Store.Expand] or [Store.Drop] closes it.
func (s *Store) Put(t Text) Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.texts[s.last] = t
	return Token(fmt.Sprintf("%s%016x", s.prefix, s.last))
}

// A Failure reports texts that could not be written in full.
type Failure struct{ Err error }

func (f *Failure) Error() string { return "writing a text: " + f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Expand writes line to w with each token replaced by its text, then closes
// the texts. It returns the error of w or, after the whole line was written,
// a [*Failure] where a text failed under way.
//
// Such a text leaves what it wrote so far, and its failure shows to the reader:
// the first "status":"success" after the token, in the token's own layer of
// escapes and before another token, becomes an error status with
// ERR_FS_READ_FAILED. An object must therefore have its status after its
// texts. Where none follows, as in a plain text block, a last line of the text
// says it.
func (s *Store) Expand(w io.Writer, line []byte) error {
	if !bytes.Contains(line, []byte(s.prefix)) {
		_, err := w.Write(line)
		return err
	}
	defer s.Drop(line)
	out := writers.Get().(*bufio.Writer)
	out.Reset(w)
	defer func() {
		out.Reset(nil)
		writers.Put(out)
	}()
	var failed error
	before, p, line := s.cut(line)
	for ; p.layers != 0; before, p, line = s.cut(line) {
		out.Write(before)
		err := s.copy(out, p)
		if err == nil {
			continue
		}
		failed = errors.Join(failed, err)
		next, _, _ := s.cut(line)
		if i := bytes.Index(next, []byte(success[p.layers])); i >= 0 {
			out.Write(line[:i])
			out.WriteString(readFailed[p.layers])
			line = line[i+len(success[p.layers]):]
		} else {
			e := escaper{out: out, layers: p.layers}
			fmt.Fprintf(&e, "\n%s: %s", fault.FSReadFailed, readFailure)
		}
	}
	out.Write(before)
	if err := out.Flush(); err != nil {
		return err
	}
	if failed != nil {
		return &Failure{failed}
	}
	return nil
}

// writers are the buffers of Expand.
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

const readFailure = "reading the source failed while it was being sent; the content above is incomplete"

// success and readFailed are the status of an item before and after a failure,
// by layers of escapes.
var (
	success    = layered(`"status":"success"`)
	readFailed = layered(`"status":"error","error_code":"` + string(fault.FSReadFailed) + `","error_message":"` + readFailure + `"`)
)

// layered returns JSON as it stands in a message (1) and in a string of it (2).
func layered(json string) [3]string { return [3]string{1: json, 2: again(json)} }

// Len is the length of line once it is expanded.
func (s *Store) Len(line []byte) int64 {
	var n int64
	before, p, line := s.cut(line)
	for ; p.layers != 0; before, p, line = s.cut(line) {
		n += int64(len(before)) + s.size(p)
	}
	return n + int64(len(before))
}

// Drop closes the texts whose tokens line contains. It is for a message, or a
// part of one, that will not be sent.
func (s *Store) Drop(line []byte) {
	for _, p, rest := s.cut(line); p.layers != 0; _, p, rest = s.cut(rest) {
		s.drop(p.number)
	}
}

// Prune closes the texts whose tokens are in tokens and not in line, which is
// the message, or the part of it, that they were meant for.
func (s *Store) Prune(tokens, line []byte) {
	stand := map[uint64]bool{}
	for _, p, rest := s.cut(line); p.layers != 0; _, p, rest = s.cut(rest) {
		stand[p.number] = true
	}
	for _, p, rest := s.cut(tokens); p.layers != 0; _, p, rest = s.cut(rest) {
		if !stand[p.number] {
			s.drop(p.number)
		}
	}
}

func (s *Store) drop(number uint64) {
	s.mu.Lock()
	t := s.texts[number]
	delete(s.texts, number)
	s.mu.Unlock()
	if t != nil {
		t.Close()
	}
}

// OneLayer returns a copy of text, JSON with tokens in their nested form, with
// the tokens in their plain form: what was the content of a string is then part
// of the message itself.
func (s *Store) OneLayer(text []byte) []byte {
	out := bytes.Clone(text)
	for _, p, rest := s.cut(out); p.layers != 0; _, p, rest = s.cut(rest) {
		out[len(out)-len(rest)-1] = '1'
	}
	return out
}

// A place is where a token stands.
type place struct {
	number uint64
	layers int // 0: there is none
}

// cut splits line at its first token. Without one, before is all of line.
func (s *Store) cut(line []byte) (before []byte, p place, after []byte) {
	i := bytes.Index(line, []byte(s.prefix))
	end := i + len(s.prefix) + 17
	if i < 0 || end > len(line) {
		return line, place{}, nil
	}
	number, err := strconv.ParseUint(string(line[end-17:end-1]), 16, 64)
	layers := int(line[end-1] - '0')
	if err != nil || layers < 1 || layers > 2 {
		return line, place{}, nil
	}
	return line[:i], place{number, layers}, line[end:]
}

func (s *Store) text(number uint64) Text {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[number]
}

// copy writes the text that stands at p. Its error is the text's.
func (s *Store) copy(out *bufio.Writer, p place) error {
	t := s.text(p.number)
	if t == nil {
		return errors.New("the text is no longer in the store")
	}
	e := escaper{out: out, layers: p.layers}
	defer e.finish()
	w := io.Writer(&e)
	if _, ok := t.(interface{ Verbatim() }); ok {
		w = out
	}
	return panics.Try(func() error {
		_, err := t.WriteTo(w)
		return err
	})
}

// size is the escaped length of the text that stands at p.
func (s *Store) size(p place) int64 {
	switch t := s.text(p.number).(type) {
	case nil:
		return 0
	case interface{ EscapedSize(layers int) int64 }:
		return t.EscapedSize(p.layers)
	default:
		var n counter
		out := bufio.NewWriterSize(&n, 64<<10)
		s.copy(out, p)
		out.Flush()
		return int64(n)
	}
}

// A counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// An escaper writes text for the inside of nested JSON strings. A character
// split between two writes waits for its rest.
type escaper struct {
	out    *bufio.Writer
	layers int
	split  []byte
}

func (e *escaper) Write(p []byte) (int, error) {
	n := len(p)
	if len(e.split) > 0 {
		for len(p) > 0 && !utf8.FullRune(e.split) {
			e.split, p = append(e.split, p[0]), p[1:]
		}
		if !utf8.FullRune(e.split) {
			return n, nil
		}
		e.put(e.split)
		e.split = e.split[:0]
	}
	whole := len(p)
	for i := len(p) - 1; i >= max(0, len(p)-utf8.UTFMax); i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				whole = i
			}
			break
		}
	}
	e.split = append(e.split, p[whole:]...)
	return n, e.put(p[:whole])
}

// finish writes U+FFFD for a character whose rest never came.
func (e *escaper) finish() {
	if len(e.split) > 0 {
		e.out.WriteRune(utf8.RuneError)
	}
}

// put writes whole characters. Its error is that of the underlying writer.
func (e *escaper) put(b []byte) error {
	for {
		space := e.out.AvailableBuffer()
		n, done := escape(space[:cap(space)], b, e.layers)
		_, err := e.out.Write(space[:n])
		if b = b[done:]; len(b) == 0 || err != nil {
			return err
		}
		if err := e.out.Flush(); err != nil {
			return err
		}
	}
}
