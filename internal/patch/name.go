package patch

import (
	"path"
	"strings"
	"time"
)

// devNull stands for the side on which a file does not exist.
const devNull = "/dev/null"

// longestName is more than any file system takes, in bytes.
const longestName = 4096

// unquote reads a name at the start of s that git has put in quotes, and
// returns what follows it.
func unquote(s string) (name, rest string, ok bool) {
	if len(s) == 0 || s[0] != '"' {
		return "", s, false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			i++
			if i == len(s) {
				return "", s, false
			}
			if n := strings.IndexByte(`abtnvfr"\`, s[i]); n >= 0 {
				b.WriteByte("\a\b\t\n\v\f\r\"\\"[n])
				continue
			}
			if i+2 >= len(s) {
				return "", s, false
			}
			n := 0
			for _, d := range []byte(s[i : i+3]) {
				if d < '0' || d > '7' {
					return "", s, false
				}
				n = n*8 + int(d-'0')
			}
			if n > 255 {
				return "", s, false
			}
			b.WriteByte(byte(n))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return "", s, false
}

// quote writes a name as git does: in quotes where it holds control
// characters, quotes or backslashes.
func quote(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(name) {
		switch n := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); {
		case n >= 0:
			b.WriteByte('\\')
			b.WriteByte(`abtnvfr"\`[n])
		case c < ' ' || c == 0x7f:
			b.WriteByte('\\')
			b.WriteByte('0' + c>>6)
			b.WriteByte('0' + c>>3&7)
			b.WriteByte('0' + c&7)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// headerName reads the name of a --- or +++ line, and reports whether a time
// after it is the one of a file that does not exist.
func headerName(s string) (name string, never bool) {
	if quoted, rest, ok := unquote(s); ok {
		return quoted, epoch(strings.TrimSpace(rest))
	}
	name, stamp, _ := strings.Cut(s, "\t")
	if stamp == "" {
		name, stamp = cutTime(name)
	}
	return strings.TrimRight(name, " "), epoch(strings.TrimSpace(stamp))
}

// timeForms are the times that diff programs write after names.
var timeForms = []string{"2006-01-02 15:04:05.999999999 -0700", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05"}

// cutTime splits a time from the end of a name that no tab parts from it.
func cutTime(s string) (name, stamp string) {
	cut := len(s)
	for range 3 {
		if cut = strings.LastIndexByte(s[:cut], ' '); cut <= 0 {
			break
		}
		for _, form := range timeForms {
			if _, err := time.Parse(form, s[cut+1:]); err == nil {
				return s[:cut], s[cut+1:]
			}
		}
	}
	return s, ""
}

// epoch reports whether a time is the zero of Unix, which diff -N writes for a
// file that does not exist.
func epoch(stamp string) bool {
	for _, form := range timeForms {
		if t, err := time.Parse(form, stamp); err == nil {
			return t.Unix() == 0 && t.Nanosecond() == 0
		}
	}
	return false
}

// cut removes the first n elements of a name.
func cut(name string, n int) string {
	for range n {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return name
		}
		name = strings.TrimLeft(rest, "/")
	}
	return name
}

// clean removes what means nothing in a name: "." elements and double slashes.
// A name that is absolute or climbs stays one that is refused later.
func clean(name string) string {
	if name == "" {
		return ""
	}
	for strings.HasPrefix(name, "./") {
		name = strings.TrimLeft(name[2:], "/")
	}
	if strings.Contains("/"+name+"/", "/../") {
		return name
	}
	if name = path.Clean(name); name == "." {
		return ""
	}
	return name
}

// prefixed tells how many leading elements two names of a file have that only
// say which side they are on: a/ and b/, or those of two directories compared.
func prefixed(before, after string) int {
	if before == "" || after == "" {
		if one := before + after; strings.HasPrefix(one, "a/") || strings.HasPrefix(one, "b/") {
			return 1
		}
		return 0
	}
	first, restBefore, ok := strings.Cut(before, "/")
	second, restAfter, also := strings.Cut(after, "/")
	switch {
	case !ok || !also || first == second:
		return 0
	case restBefore == restAfter, side(first) && side(second):
		return 1
	}
	return 0
}

// side reports whether an element is one of those git puts before names.
func side(element string) bool {
	return len(element) == 1 && strings.Contains("abciow", element)
}

// twoNames splits what follows "diff --git": two names that are the same but
// for what is before their first slash, or entirely.
func twoNames(s string) (before, after string, ok bool) {
	if len(s) > 2*longestName {
		return "", "", false
	}
	if first, rest, quoted := unquote(s); quoted {
		rest = strings.TrimPrefix(rest, " ")
		if second, _, quoted := unquote(rest); quoted {
			return first, second, true
		}
		return first, rest, rest != ""
	}
	if i := strings.Index(s, ` "`); i > 0 {
		if second, rest, quoted := unquote(s[i+1:]); quoted && rest == "" {
			return s[:i], second, true
		}
	}
	if n := len(s); n%2 == 1 && s[n/2] == ' ' && cut(s[:n/2], 1) == cut(s[n/2+1:], 1) {
		return s[:n/2], s[n/2+1:], true
	}
	for i := range len(s) {
		if s[i] == ' ' && i > 0 && cut(s[:i], 1) == cut(s[i+1:], 1) {
			return s[:i], s[i+1:], true
		}
	}
	if first, second, ok := strings.Cut(s, " "); ok && !strings.Contains(second, " ") {
		return first, second, true // a rename; the lines that follow say so
	}
	return "", "", false
}
