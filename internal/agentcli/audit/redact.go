// Package audit keeps what happened: the records and logs of runs, without the
// secrets of their environment.
package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
)

// A Redactor takes known values out of texts, also where they are written as
// JSON writes them, at any depth, or with their blanks folded.
type Redactor struct {
	values []secret
	begins [256]bool // bytes that a value may begin with
	reach  int       // bytes that the longest may take
}

// A secret is a value as it is matched: each run of blanks or of backslashes in
// it stands for any such run.
type secret struct {
	runes  []rune
	needle []byte // a part that is written the same everywhere
	lead   int    // bytes that what comes before it may take
}

var (
	secretName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|COOKIE|(^|_)(KEYS?|PASS|CREDS?|AUTH|PRIVATE|SESSION|PW|DSN|PAT)(_|$|\d)|KEY$`)
	})
	// What is no secret whatever its name: switches and addresses.
	harmless = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|none|null|auto|default|disabled|enabled|always|never|[a-z][a-z0-9+.-]*://[^@\s?]*)$`)
	})
	// A run of this is a token, not a word or a name.
	dense = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_+=]{24,}$`) })
)

// isSecret judges an entry of the environment by its name, or by the shape of
// its value: a credential of a well-known kind, a URL with a password, letters
// of both kinds mixed with digits.
func isSecret(name, value string) bool {
	switch {
	case harmless().MatchString(value) || filepath.IsAbs(value) && exists(value):
		return false
	case secretName().MatchString(name) || policy.Credentials(value) != nil || password(value) != "":
		return true
	}
	return dense().MatchString(value) && strings.ContainsAny(value, "0123456789") &&
		strings.ToLower(value) != value && strings.ToUpper(value) != value
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// password is the one in a URL.
func password(value string) string {
	if u, err := url.Parse(value); err == nil && u.User != nil {
		p, _ := u.User.Password()
		return p
	}
	return ""
}

// shortest is what a value must have, in bytes, to be told from ordinary words.
const shortest = 4

// NewRedactor returns one for those of env, entries NAME=value, that are secrets.
// A value counts line by line as well.
func NewRedactor(env []string) *Redactor {
	r := &Redactor{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if !isSecret(name, value) {
			continue
		}
		r.add(value)
		r.add(password(value))
		for line := range strings.Lines(value) {
			r.add(line)
		}
	}
	// The longer first: one may be part of another.
	slices.SortFunc(r.values, func(a, b secret) int {
		return cmp.Or(cmp.Compare(len(b.runes), len(a.runes)), slices.Compare(a.runes, b.runes))
	})
	r.values = slices.CompactFunc(r.values, func(a, b secret) bool { return slices.Equal(a.runes, b.runes) })
	return r
}

func (r *Redactor) add(value string) {
	value = strings.TrimSpace(value)
	if len(value) < shortest {
		return
	}
	var v secret
	for _, c := range value {
		if unicode.IsSpace(c) {
			c = ' '
		}
		if n := len(v.runes); n > 0 && (c == ' ' || c == '\\') && v.runes[n-1] == c {
			continue
		}
		v.runes = append(v.runes, c)
	}
	// The longest part of which no writer makes anything else.
	start := 0
	for i := 0; i <= len(v.runes); i++ {
		if i < len(v.runes) && isPlain(v.runes[i]) {
			continue
		}
		if i-start > len(v.needle) {
			v.needle, v.lead = []byte(string(v.runes[start:i])), start*widest
		}
		start = i + 1
	}
	first := v.runes[0]
	r.begins['\\'] = r.begins['\\'] || !isPlain(first)
	if first == '\\' {
		r.begins['\\'] = true
	}
	r.begins[string(first)[0]] = true
	r.reach = max(r.reach, len(v.runes)*widest)
	r.values = append(r.values, v)
}

// widest is what one rune may take: an escape behind backslashes that are
// escaped themselves, or as much indentation.
const widest = 16

func isPlain(c rune) bool {
	return c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("-_.:=@#%*!?", c))
}

// match returns how many bytes at the beginning of b are v, or 0. open tells that
// b ends before that is decided.
func (v *secret) match(b []byte) (n int, open bool) {
	for _, want := range v.runes {
		var took int
		switch {
		case n == len(b):
			return 0, true
		case want == ' ':
			for {
				k, c, more := next(b[n+took:])
				if more {
					return 0, true
				}
				if k == 0 || !unicode.IsSpace(c) {
					break
				}
				took += k
			}
		case want == '\\':
			for n+took < len(b) && b[n+took] == '\\' {
				took++
			}
			if took == 0 {
				if k, c, more := next(b[n:]); more {
					return 0, true
				} else if c == '\\' {
					took = k
				}
			}
		default:
			k, c, more := next(b[n:])
			if more {
				return 0, true
			}
			if c == want {
				took = k
			}
		}
		if took == 0 {
			return 0, false
		}
		n += took
	}
	return n, false
}

// next reads one rune as it is, or as an escape of JSON behind one backslash or
// more. more tells that b ends within it.
func next(b []byte) (n int, c rune, more bool) {
	slashes := 0
	for slashes < len(b) && b[slashes] == '\\' {
		slashes++
	}
	if slashes == 0 {
		if len(b) == 0 || !utf8.FullRune(b) {
			return 0, 0, true
		}
		c, n = utf8.DecodeRune(b)
		return n, c, false
	}
	if slashes == len(b) {
		return 0, 0, len(b) < widest
	}
	n = slashes + 1
	switch e := b[slashes]; e {
	case 'n', 'r', 't', 'f':
		return n, ' ', false
	case '"', '/', '\'':
		return n, rune(e), false
	case 'u':
		if len(b) < n+4 {
			return 0, 0, true
		}
		c, ok := hex(b[n:])
		if !ok {
			return 0, 0, false
		}
		n += 4
		if utf16.IsSurrogate(c) {
			rest := bytes.TrimLeft(b[n:], `\`)
			skip := len(b) - n - len(rest)
			if len(rest) < 5 {
				return 0, 0, true
			}
			low, ok := hex(rest[1:])
			if rest[0] != 'u' || !ok {
				return 0, 0, false
			}
			c, n = utf16.DecodeRune(c, low), n+skip+5
		}
		return n, c, false
	}
	return 0, 0, false
}

func hex(b []byte) (rune, bool) {
	u, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(u), err == nil
}

// find returns where the first value in b is, of several at one place the
// longest; length is 0 where there is none.
func (r *Redactor) find(b []byte) (at, length int) {
	at = len(b)
	for i := range r.values {
		v := &r.values[i]
		for from := 0; from < at; {
			hit := from
			if len(v.needle) > 0 {
				k := bytes.Index(b[from:], v.needle)
				if k < 0 {
					break
				}
				hit += k
			}
			start, n := max(from, hit-v.lead), 0
			end := hit
			if len(v.needle) == 0 {
				end = len(b) - 1
			}
			for ; start <= end && start < at; start++ {
				if r.begins[b[start]] {
					if n, _ = v.match(b[start:]); n > 0 {
						break
					}
				}
			}
			if n > 0 {
				at, length = start, n
				break
			}
			from = end + 1
		}
	}
	return at, length
}

// Text returns s without the values.
func (r *Redactor) Text(s string) string {
	b := []byte(s)
	at, length := r.find(b)
	if length == 0 {
		return s
	}
	var out strings.Builder
	for ; length > 0; at, length = r.find(b) {
		out.Write(b[:at])
		out.WriteString(policy.Hidden)
		b = b[at+length:]
	}
	out.Write(b)
	return out.String()
}

// Line returns a line of an agent's output without the values. A JSON object
// stays one.
func (r *Redactor) Line(line []byte) []byte {
	text := string(line)
	clean := r.Text(text)
	if clean == text {
		return line
	}
	var object map[string]any
	if json.Valid([]byte(clean)) || json.Unmarshal(line, &object) != nil {
		return []byte(clean)
	}
	b, err := json.Marshal(r.inside(object)) // a number was taken for one, or more than a string
	if err != nil {
		return nil
	}
	return b
}

func (r *Redactor) inside(v any) any {
	switch v := v.(type) {
	case string:
		return r.Text(v)
	case []any:
		for i := range v {
			v[i] = r.inside(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = r.inside(v[name])
		}
	}
	return v
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
	open := f.r.undecided(held)
	var out []byte
	for at := 0; ; {
		match, length := f.r.find(held[at:])
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

// undecided is where the first end of b begins that may be the beginning of a
// value, or the length of b.
func (r *Redactor) undecided(b []byte) int {
	for at := max(0, len(b)-r.reach); at < len(b); at++ {
		if !r.begins[b[at]] {
			continue
		}
		for i := range r.values {
			if _, open := r.values[i].match(b[at:]); open {
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
