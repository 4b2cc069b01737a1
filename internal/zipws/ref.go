package zipws

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
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
func (v *survey) pick(ref string, w Words) (metadata, error) {
	list := v.sessions
	if ref == "" {
		switch len(list) {
		case 0:
			return metadata{}, w.missing(ref, nil)
		case 1:
			return list[0], nil
		}
		return metadata{}, fault.New(AmbiguousSession, "%d sessions are open; say which with %s: %s", len(list), w.Session, names(list))
	}
	d, found := lookup(list, ref)
	switch {
	case found == 1:
		return d, nil
	case found > 1:
		return metadata{}, fault.New(AmbiguousSession, "the ids of %d sessions begin with %s; give more of it, or a name: %s", found, ref, names(list))
	case slices.Contains(v.broken, ref):
		return metadata{}, fault.New(SessionNotFound, "the metadata of the session %s cannot be read, so nothing can be done with it; its files are in the directory %s, and %s removes it", clip(ref), filepath.Join(workspacesDir, ref, contentsDir), w.Prune)
	}
	if d, found := lookup(v.others, ref); found > 0 {
		return metadata{}, fault.New(SessionNotFound, "%s was made by another program, and only that one knows what in it is unsaved; sync and close it there, then open the archive here", clip(d.Name))
	}
	return metadata{}, w.missing(ref, list)
}

// lookup finds the one of list that ref means, and how many there are.
func lookup(list []metadata, ref string) (d metadata, found int) {
	for _, e := range list {
		if e.Name == ref || e.ID != "" && e.ID == strings.ToLower(ref) {
			return e, 1
		}
		if len(ref) >= minPrefix && strings.HasPrefix(e.ID, strings.ToLower(ref)) {
			d = e
			found++
		}
	}
	return d, found
}

func (w Words) missing(ref string, list []metadata) error {
	switch {
	case ref == "":
		return fault.New(NoSessions, "no session is open; open an archive with %s first", w.Open)
	case len(list) == 0:
		return fault.New(SessionNotFound, "there is no session %s, and none is open; open an archive with %s first", clip(ref), w.Open)
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
