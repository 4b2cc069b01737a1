package roots

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An absolute is a rule that begins at the root of a file system: path, which
// need not exist, and all below, or what matches glob below it.
type absolute struct {
	path  string
	glob  string
	state bool // of the server's own files
}

// places hold where the absolute rules lead. What they name may be reached by
// other names too, through links, and these change while the server runs: a
// directory may be made later, or become a link.
type places struct {
	mu      sync.Mutex
	current atomic.Pointer[located]
}

// located are the absolute rules by every name that is known.
type located struct {
	literal, state []string // absolute paths
	anchored       []string // absolute globs, with "/"

	ends     map[string]struct{} // last elements of the rules without wildcards
	endGlobs []string            // those of the others
	anyEnd   bool                // there are rules whose last element is not known

	traces []trace // of the absolute rules
	seen   []seen  // the directories looked into
}

// A trace is how a rule was resolved.
type trace struct {
	real string
	via  []int // directories looked into, as numbers in seen
}

// seen is a directory as it was before a look into it.
type seen struct {
	dir     string
	name    sysName
	stamp   stamp
	settled bool // a further change would show
}

// A stamp tells a directory, and whether a name in it was changed.
type stamp struct {
	device, inode uint64
	changed       int64 // nanoseconds since 1970
}

// tick is longer than the clocks of file systems stand still.
const tick = 20 * time.Millisecond

func see(dir string) seen {
	name := nameFor(dir)
	s := stampOf(name)
	return seen{dir, name, s, time.Since(time.Unix(0, s.changed)) > tick}
}

func (p *places) now() *located { return p.current.Load() }

// refresh resolves the absolute rules again where a directory has changed in
// which they were looked up.
func (r *rules) refresh() {
	if r.now().changed(nil) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.locate(r.now())
	}
}

// changed reports whether a directory is not what was seen. Where list is not
// nil it learns which.
func (l *located) changed(list []bool) (any bool) {
	for i := range l.seen {
		s := &l.seen[i]
		if !s.settled || stampOf(s.name) != s.stamp {
			if list == nil {
				return true
			}
			list[i], any = true, true
		}
	}
	return any
}

// locate resolves the absolute rules: anew where old is nil, else those that
// were looked up in a directory that has changed.
func (r *rules) locate(old *located) {
	l := &located{ends: map[string]struct{}{}}
	var changed []bool
	if old != nil {
		changed = make([]bool, len(old.seen))
		if !old.changed(changed) {
			return // others were faster
		}
	}
	for i, a := range r.absolute {
		var t trace
		note := func(s seen) {
			n := slices.IndexFunc(l.seen, func(have seen) bool { return have.dir == s.dir })
			if n < 0 {
				n = len(l.seen)
				l.seen = append(l.seen, s)
			}
			t.via = append(t.via, n)
		}
		if old != nil && !slices.ContainsFunc(old.traces[i].via, func(n int) bool { return changed[n] }) {
			t.real = old.traces[i].real
			for _, n := range old.traces[i].via {
				note(old.seen[n])
			}
		} else {
			real, err := follow(filepath.VolumeName(a.path)+string(os.PathSeparator), a.path, func(dir string) { note(see(dir)) })
			if t.real = real; err != nil {
				t.real = a.path
			}
		}
		l.traces = append(l.traces, t)
		l.add(a, a.path)
		if t.real != a.path {
			l.add(a, t.real)
		}
	}
	for _, p := range r.names {
		l.ends[filepath.Base(p)] = struct{}{}
	}
	for _, list := range [][]string{l.anchored, r.runs, r.elements} {
		for _, p := range list {
			if strings.ContainsAny(p, "{\\") || strings.Contains(p, "**") {
				l.anyEnd = true // its end is more than what follows the last slash
			}
			l.endGlobs = append(l.endGlobs, p[strings.LastIndexByte(p, '/')+1:])
		}
	}
	r.current.Store(l)
}

// add notes that a is at path.
func (l *located) add(a absolute, path string) {
	path = fold(path)
	switch {
	case a.glob != "":
		l.anchored = append(l.anchored, strings.TrimSuffix(escape(filepath.ToSlash(path)), "/")+"/"+fold(a.glob))
		return
	case a.state:
		l.state = append(l.state, path)
	default:
		l.literal = append(l.literal, path)
	}
	l.ends[filepath.Base(path)] = struct{}{}
}

// escape makes path a glob that matches it alone.
func escape(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, `\`, `\\`).Replace(path)
}
