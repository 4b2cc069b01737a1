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
	names      []string // runs of elements without wildcards, "/" in front ("/.env", "/.config/gh")
	elements   []string // globs on any one element ("*.pem")
	runs       []string // globs on any run of elements ("secrets/*.key")
	configured []string

	absolute []absolute // those that begin at the root
	places              // where these lead
}

// newRules reads deny patterns: an absolute or "~" path or glob; a pattern
// without a slash matches a name anywhere; a relative one with slashes matches
// anywhere too.
func newRules(denied []string, expand func(string) (string, error)) (*rules, error) {
	r := &rules{}
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
	return r, nil
}

// protect adds files of the server's own, literal where they are absolute, and
// patterns otherwise.
func (r *rules) protect(state []string) {
	for _, p := range state {
		if filepath.IsAbs(p) {
			r.absolute = append(r.absolute, absolute{path: filepath.Clean(p), state: true})
		} else {
			r.add(filepath.ToSlash(p))
		}
	}
	r.locate(nil)
}

// add takes in a valid pattern with "/" between its elements.
func (r *rules) add(p string) {
	abs := filepath.IsAbs(filepath.FromSlash(p))
	switch {
	case abs && !strings.ContainsAny(p, "*?[{\\"):
		r.absolute = append(r.absolute, absolute{path: filepath.Clean(filepath.FromSlash(p))})
	case abs:
		base, glob := doublestar.SplitPattern(strings.TrimSuffix(p, "/"))
		r.absolute = append(r.absolute, absolute{path: filepath.Clean(filepath.FromSlash(base)), glob: glob})
	case !strings.ContainsAny(p, "*?[{\\"):
		r.names = append(r.names, fold("/"+strings.TrimSuffix(p, "/")))
	case !strings.Contains(strings.TrimSuffix(p, "/"), "/"):
		r.elements = append(r.elements, fold(strings.TrimSuffix(p, "/")))
	default:
		r.runs = append(r.runs, fold(strings.TrimSuffix(p, "/")))
	}
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
	return slices.ContainsFunc(r.now().state, func(p string) bool { return place.Within(abs, p) })
}

// cover reports whether a configured rule matches abs or a directory above it.
func (r *rules) cover(abs string) bool {
	abs = fold(abs)
	now := r.now()
	for _, p := range now.literal {
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
	for _, p := range now.anchored {
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
	name, now := fold(name), r.now()
	if _, ok := now.ends[name]; ok || now.anyEnd {
		return true
	}
	return slices.ContainsFunc(now.endGlobs, func(glob string) bool {
		ok, _ := doublestar.Match(glob, name)
		return ok
	})
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
	now := r.now()
	if slices.ContainsFunc(now.literal, below) || slices.ContainsFunc(now.state, below) {
		return true
	}
	slashed := filepath.ToSlash(abs)
	for _, p := range now.anchored {
		base, _ := doublestar.SplitPattern(p)
		if place.Within(base, slashed) || place.Within(slashed, base) {
			return true
		}
	}
	return false
}
