package roots

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// rules are the paths denied within the allowed directories. A rule covers what
// it matches and everything below.
type rules struct {
	literal    []string // absolute paths
	state      []string // likewise, of the server's own files
	anchored   []string // absolute globs, with "/"
	names      []string // runs of elements without wildcards, "/" in front ("/.env", "/.config/gh")
	elements   []string // globs on any one element ("*.pem")
	runs       []string // globs on any run of elements ("secrets/*.key")
	configured []string

	ends     map[string]struct{} // last elements of the rules without wildcards
	endGlobs []string            // those of the others
	anyEnd   bool                // there are rules whose last element is not known
}

// newRules reads deny patterns: an absolute or "~" path or glob; a pattern
// without a slash matches a name anywhere; a relative one with slashes matches
// anywhere too.
func newRules(denied []string, expand func(string) (string, error)) (rules, error) {
	var r rules
	for _, raw := range denied {
		p, err := expand(raw)
		if err != nil {
			return r, fault.New(fault.ConfigInvalid, "CONDUIT_DENIED_PATHS: %s", err)
		}
		p = filepath.ToSlash(p)
		if !doublestar.ValidatePattern(p) || strings.Count(p, "{") > 4 {
			return r, fault.New(fault.ConfigInvalid, "CONDUIT_DENIED_PATHS: %q is no valid glob", raw)
		}
		r.configured = append(r.configured, filepath.FromSlash(p))
		r.add(p)
	}
	r.learnEnds()
	return r, nil
}

// protect adds files of the server's own, literal where they are absolute, and
// patterns otherwise.
func (r *rules) protect(state []string) {
	for _, p := range state {
		if filepath.IsAbs(p) {
			r.state = addLiteral(r.state, p)
		} else {
			r.add(filepath.ToSlash(p))
		}
	}
	r.learnEnds()
}

// add takes in a valid pattern with "/" between its elements.
func (r *rules) add(p string) {
	abs := filepath.IsAbs(filepath.FromSlash(p))
	switch {
	case abs && !strings.ContainsAny(p, "*?[{\\"):
		r.literal = addLiteral(r.literal, filepath.FromSlash(p))
	case abs:
		r.anchored = append(r.anchored, fold(strings.TrimSuffix(p, "/")))
	case !strings.ContainsAny(p, "*?[{\\"):
		r.names = append(r.names, fold("/"+strings.TrimSuffix(p, "/")))
	case !strings.Contains(strings.TrimSuffix(p, "/"), "/"):
		r.elements = append(r.elements, fold(strings.TrimSuffix(p, "/")))
	default:
		r.runs = append(r.runs, fold(strings.TrimSuffix(p, "/")))
	}
}

// addLiteral adds p to list, as written and where its links lead.
func addLiteral(list []string, p string) []string {
	p = filepath.Clean(p)
	list = append(list, fold(p))
	real, err := filepath.EvalSymlinks(p)
	if err != nil { // it need not exist; its directory may
		var dir string
		if dir, err = filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			real = filepath.Join(dir, filepath.Base(p))
		}
	}
	if err == nil && real != p {
		list = append(list, fold(real))
	}
	return list
}

func fold(p string) string {
	if foldCase {
		return strings.ToLower(p)
	}
	return p
}

// coverState reports whether abs is, or lies in, a file of the server's own.
func (r *rules) coverState(abs string) bool {
	abs = fold(abs)
	return slices.ContainsFunc(r.state, func(p string) bool { return place.Within(abs, p) })
}

// cover reports whether a configured rule matches abs or a directory above it.
func (r *rules) cover(abs string) bool {
	abs = fold(abs)
	for _, p := range r.literal {
		if place.Within(abs, p) {
			return true
		}
	}
	slashed := filepath.ToSlash(abs)
	for _, name := range r.names {
		if holdsRun(slashed, name) {
			return true
		}
	}
	// A trailing ** stands for what lies below, so that one match does for abs
	// and every directory above it.
	for _, p := range r.anchored {
		if ok, _ := doublestar.Match(p+"/**", slashed); ok {
			return true
		}
	}
	for _, p := range r.runs {
		if ok, _ := doublestar.Match("**/"+p+"/**", strings.TrimPrefix(slashed, "/")); ok {
			return true
		}
	}
	for _, p := range r.elements {
		for e := range strings.SplitSeq(slashed, "/") {
			if ok, _ := doublestar.Match(p, e); ok && e != "" {
				return true
			}
		}
	}
	return false
}

// end reports whether a rule could match a path that ends in name, and none of
// the directories above it.
func (r *rules) end(name string) bool {
	name = fold(name)
	if _, ok := r.ends[name]; ok || r.anyEnd {
		return true
	}
	return slices.ContainsFunc(r.endGlobs, func(glob string) bool {
		ok, _ := doublestar.Match(glob, name)
		return ok
	})
}

// learnEnds notes the last elements of all rules for end.
func (r *rules) learnEnds() {
	r.ends = map[string]struct{}{}
	for _, list := range [][]string{r.literal, r.state, r.names} {
		for _, p := range list {
			r.ends[filepath.Base(p)] = struct{}{}
		}
	}
	for _, list := range [][]string{r.anchored, r.runs, r.elements} {
		for _, p := range list {
			if strings.ContainsAny(p, "{\\") || strings.Contains(p, "**") {
				r.anyEnd = true // its end is more than what follows the last slash
			}
			r.endGlobs = append(r.endGlobs, p[strings.LastIndexByte(p, '/')+1:])
		}
	}
}

// holdsRun reports whether path has the elements of run, which begins with "/",
// one after another.
func holdsRun(path, run string) bool {
	for {
		i := strings.Index(path, run)
		if i < 0 {
			return false
		}
		path = path[i+len(run):]
		if path == "" || path[0] == '/' {
			return true
		}
	}
}

// reach reports whether a rule could match something below abs.
func (r *rules) reach(abs string) bool {
	if len(r.names)+len(r.elements)+len(r.runs) > 0 {
		return true
	}
	abs = fold(abs)
	below := func(p string) bool { return place.Within(p, abs) }
	if slices.ContainsFunc(r.literal, below) || slices.ContainsFunc(r.state, below) {
		return true
	}
	slashed := filepath.ToSlash(abs)
	for _, p := range r.anchored {
		base, _ := doublestar.SplitPattern(p)
		if place.Within(base, slashed) || place.Within(slashed, base) {
			return true
		}
	}
	return false
}
