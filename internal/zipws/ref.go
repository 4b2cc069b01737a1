package zipws

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

const (
	maxSessionName = 64
	minPrefix      = 4 // characters of an id that may stand for it
)

// badSessionName says what is wrong with a name, "" where nothing is.
func badSessionName(name string) string {
	if name == "" || len(name) > maxSessionName {
		return fmt.Sprintf("must have 1 to %d characters", maxSessionName)
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return "may only have letters, digits, _ and -"
		}
	}
	if idPrefix(name) {
		return "reads like the start of a session id; add a letter other than a to f"
	}
	return ""
}

// idPrefix reports whether s could be the start of an id.
func idPrefix(s string) bool {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(s) < minPrefix || len(s) > len(form) {
		return false
	}
	for i, c := range []byte(strings.ToLower(s)) {
		if dash := form[i] == '-'; dash != (c == '-') || !dash && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// nameFor makes a name for a session out of that of the archive.
func nameFor(path string, taken func(string) bool) string {
	base := filepath.Base(path)
	base, _, _ = strings.Cut(strings.TrimLeft(base, "."), ".")
	base = strings.Map(func(c rune) rune {
		if c < 0x80 && badSessionName(string(c)) == "" {
			return c
		}
		return '-'
	}, base)
	base = strings.Trim(base, "-")
	base = base[:min(len(base), maxSessionName-8)]
	if badSessionName(base) != "" {
		base = strings.Trim(base+"-zip", "-")
	}
	for n, name := 2, base; ; n++ {
		if !taken(name) {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// pick finds the session that ref means: a name, an id, or the start of one.
// Where ref is empty it is the only one.
func pick(list []metadata, ref string) (metadata, error) {
	if ref == "" {
		switch len(list) {
		case 0:
			return metadata{}, missing(ref, nil)
		case 1:
			return list[0], nil
		}
		return metadata{}, fault.New(AmbiguousSession, "%d sessions are open; say which with session: %s", len(list), names(list))
	}
	var found []metadata
	for _, d := range list {
		if d.Name == ref || d.ID == strings.ToLower(ref) {
			return d, nil
		}
		if len(ref) >= minPrefix && strings.HasPrefix(d.ID, strings.ToLower(ref)) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return metadata{}, missing(ref, list)
	case 1:
		return found[0], nil
	}
	return metadata{}, fault.New(AmbiguousSession, "the ids of %d sessions begin with %s; give more of it, or a name: %s", len(found), ref, names(found))
}

func missing(ref string, list []metadata) error {
	switch {
	case ref == "":
		return fault.New(NoSessions, "no session is open; open an archive with zipfs_open first")
	case len(list) == 0:
		return fault.New(SessionNotFound, "there is no session %s, and none is open; open an archive with zipfs_open first", clip(ref))
	}
	return fault.New(SessionNotFound, "there is no session %s; the open ones are: %s", clip(ref), names(list))
}

func names(list []metadata) string {
	var all []string
	for _, d := range list {
		all = append(all, d.Name)
	}
	return strings.Join(all, ", ")
}

// clip keeps what a message repeats of the caller's input short.
func clip(s string) string { return entryname.Shown(s) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
