// Package audit keeps what happened: the records and logs of runs, without the
// secrets of their environment.
package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
)

// A Redactor takes known values out of texts.
type Redactor struct {
	values  [][]byte
	longest int
}

var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASS|CRED|AUTH|PRIVATE|SESSION|COOKIE|\bPW|_PW|DSN`)
})

// NewRedactor returns one for the values of env, entries NAME=value: those
// whose name speaks of a secret, from 4 bytes on, and all others from 16 bytes
// on, so that an ordinary word stays readable. A value counts in the form that
// JSON gives it and line by line as well.
func NewRedactor(env []string) *Redactor {
	r := &Redactor{}
	add := func(s string, shortest int) {
		if s = strings.TrimSpace(s); len(s) >= shortest {
			r.values = append(r.values, []byte(s))
		}
	}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		shortest := 16
		if secretName().MatchString(name) {
			shortest = 4
		}
		for line := range strings.Lines(value) {
			add(line, shortest)
		}
		if quoted, err := json.Marshal(value); err == nil {
			add(string(quoted[1:len(quoted)-1]), shortest)
		}
	}
	// The longer first: one may be part of another.
	slices.SortFunc(r.values, func(a, b []byte) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b))
	})
	r.values = slices.CompactFunc(r.values, bytes.Equal)
	if len(r.values) > 0 {
		r.longest = len(r.values[0])
	}
	return r
}

// Text returns s without the values.
func (r *Redactor) Text(s string) string {
	for _, v := range r.values {
		if strings.Contains(s, string(v)) {
			s = strings.ReplaceAll(s, string(v), policy.Hidden)
		}
	}
	return s
}

// Writer returns a writer that passes what it gets on to w without the values,
// also where one comes in pieces. Close passes on what it holds back.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	if len(r.values) == 0 {
		return unchanged{w}
	}
	return &filter{r: r, w: w}
}

type unchanged struct{ io.Writer }

func (unchanged) Close() error { return nil }

// A filter holds back the end of what it got, where a value may begin there.
type filter struct {
	r    *Redactor
	w    io.Writer
	held []byte
}

func (f *filter) Write(b []byte) (int, error) {
	held := append(f.held, b...)
	var out []byte
	open := f.r.mayBegin(held)
	for at := 0; ; {
		match, length := f.r.next(held[at:])
		if length == 0 || at+match >= open { // a longer value may begin where a short one does
			out = append(out, held[at:max(at, open)]...)
			f.held = append(f.held[:0:0], held[max(at, open):]...)
			break
		}
		out = append(append(out, held[at:at+match]...), policy.Hidden...)
		at += match + length
	}
	_, err := f.w.Write(out)
	return len(b), err
}

// next finds the first value in b, of several at one place the longest; length
// is 0 where there is none.
func (r *Redactor) next(b []byte) (at, length int) {
	at = len(b)
	for _, v := range r.values {
		if i := bytes.Index(b[:min(len(b), at+len(v))], v); i >= 0 && (i < at || length == 0) {
			at, length = i, len(v)
		}
	}
	return at, length
}

// mayBegin is where the first end of b begins that is the beginning of a value,
// or the length of b.
func (r *Redactor) mayBegin(b []byte) int {
	for at := max(0, len(b)-r.longest+1); at < len(b); at++ {
		for _, v := range r.values {
			if len(v) > len(b)-at && bytes.HasPrefix(v, b[at:]) {
				return at
			}
		}
	}
	return len(b)
}

func (f *filter) Close() error {
	_, err := io.WriteString(f.w, f.r.Text(string(f.held)))
	f.held = nil
	return err
}
