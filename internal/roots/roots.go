// Package roots holds the allowed directories as open handles and places the
// paths of callers in them.
package roots

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// maxPath is the longest path accepted, in bytes.
const maxPath = 4096

// maxLinks bounds the links followed for one path, as Linux does.
const maxLinks = 40

// Config is what a server allows.
type Config struct {
	Allowed []string // directories; "~" and "~/…" stand for Home
	Home    string   // may be empty where it is unknown
	Project string   // absolute base of relative paths, in an allowed directory; may be empty
	Working string   // without Project, stands for it where it is in an allowed directory; else the first of those does
	Denied  []string // paths or globs that are denied below the allowed directories
	State   []string // the server's own files, denied in every configuration: absolute paths, and globs that match anywhere
}

// Roots are the allowed directories of a server.
type Roots struct {
	dirs    []*dir
	home    string
	project string
	rules   *rules

	grants struct { // directories among the server's own files that are allowed for a time
		sync.RWMutex
		dirs []*dir
	}

	outer *Roots // of those that below has, the ones they were made from
	below struct {
		sync.Mutex
		*Roots // whose one directory is the project root; made on first use
	}
}

// A dir is one allowed directory.
type dir struct {
	abs   string // without links
	grant bool   // allowed for a time: the directory that was opened alone, whatever has its name later
	asked string // of a grant, as it was given

	mu   sync.Mutex // held to open it
	open atomic.Pointer[handle]
}

// A handle is an open directory and what it is.
type handle struct {
	*place.Base
	info fs.FileInfo
}

// New opens the allowed directories. Those that are no directories are left out
// and reported in skipped, each with ERR_FS_BAD_ALLOWED_PATH; err says that none
// is left.
func New(c Config) (r *Roots, skipped []error, err error) {
	r = &Roots{home: c.Home}
	for _, name := range c.Allowed {
		d, err := r.allow(name)
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		known := false
		for _, have := range r.dirs {
			known = known || have.abs == d.abs
		}
		if !known {
			r.dirs = append(r.dirs, d)
		}
	}
	if len(r.dirs) == 0 {
		return nil, skipped, fault.New(fault.FSBadAllowedPath, "CONDUIT_ALLOWED_PATHS names no existing directory (%s)", strings.Join(c.Allowed, string(os.PathListSeparator)))
	}
	if r.project, err = r.projectRoot(c); err != nil {
		return nil, skipped, err
	}
	if r.rules, err = newRules(c.Denied, r.expand); err != nil {
		return nil, skipped, err
	}
	r.Protect(c.State)
	return r, skipped, nil
}

// Protect denies further files of the server's own, as Config.State does. It is
// for the time before paths are resolved.
func (r *Roots) Protect(state []string) { r.rules.protect(state) }

// projectRoot returns the base of relative paths.
func (r *Roots) projectRoot(c Config) (string, error) {
	for _, dir := range []string{c.Project, c.Working} {
		if dir == "" {
			continue
		}
		dir = filepath.Clean(dir)
		if real, _ := r.follow(dir); r.holding(real) != nil {
			return dir, nil
		}
		if c.Project != "" {
			return "", fault.New(fault.ConfigInvalid, "CONDUIT_PROJECT_ROOT is %s, which is outside the allowed directories: %s; name one of them or a directory in one, or leave it out", dir, strings.Join(r.Dirs(), ", "))
		}
	}
	return r.dirs[0].abs, nil
}

// Project is the base of relative paths.
func (r *Roots) Project() string { return r.project }

func (r *Roots) allow(name string) (*dir, error) {
	bad := func(why string) error {
		return fault.New(fault.FSBadAllowedPath, "CONDUIT_ALLOWED_PATHS: %q %s", name, why)
	}
	full, err := r.expand(name)
	if err != nil {
		return nil, bad("cannot be resolved: " + err.Error())
	}
	if !filepath.IsAbs(full) {
		return nil, bad("is not absolute")
	}
	abs, err := filepath.EvalSymlinks(full)
	if err != nil {
		return nil, bad("does not exist or cannot be reached")
	}
	d := &dir{abs: abs}
	if _, err := d.handle(); err != nil {
		return nil, bad("is not a directory that can be opened")
	}
	return d, nil
}

// Dirs returns the allowed directories, every link resolved.
func (r *Roots) Dirs() []string {
	var list []string
	for _, d := range r.dirs {
		list = append(list, d.abs)
	}
	return list
}

// Denied reports whether a deny rule covers abs; see [place.Guard].
func (r *Roots) Denied(abs string) bool {
	return r.rules.cover(abs) || r.rules.coverState(abs) && r.granted(abs) == nil
}

// DeniedBelow reports whether a rule could match below abs.
func (r *Roots) DeniedBelow(abs string) bool {
	r.rules.refresh()
	return r.rules.reach(abs)
}

// DeniedName reports whether a rule could match a path that ends in name.
func (r *Roots) DeniedName(name string) bool { return r.rules.end(name) }

// DeniedRules returns the configured deny rules, "~" resolved.
func (r *Roots) DeniedRules() []string { return r.rules.configured }

// HoldsRoot reports whether abs is an allowed directory or contains one.
func (r *Roots) HoldsRoot(abs string) bool {
	for _, d := range r.dirs {
		if place.Within(d.abs, abs) {
			return true
		}
	}
	r.grants.RLock()
	defer r.grants.RUnlock()
	if slices.ContainsFunc(r.grants.dirs, func(d *dir) bool { return place.Within(d.abs, abs) }) {
		return true
	}
	return r.outer != nil && r.outer.HoldsRoot(abs)
}

// handle returns the open directory, opened anew where the path leads elsewhere
// by now: a directory that was removed and made again works.
func (d *dir) handle() (*place.Base, error) {
	now, err := os.Lstat(d.abs)
	if err != nil {
		return nil, err
	}
	current := func() *handle {
		if h := d.open.Load(); h != nil && os.SameFile(now, h.info) {
			return h
		}
		return nil
	}
	if h := current(); h != nil {
		return h.Base, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := current(); h != nil { // others were faster
		return h.Base, nil
	}
	if d.grant && d.open.Load() != nil {
		return nil, &fs.PathError{Op: "open", Path: d.abs, Err: fs.ErrNotExist} // not what was allowed
	}
	if !now.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: d.abs, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(d.abs)
	if err != nil {
		return nil, err
	}
	h := &handle{}
	if h.info, err = root.Stat("."); err == nil && !os.SameFile(h.info, now) {
		err = &fs.PathError{Op: "open", Path: d.abs, Err: errors.New("the directory changed while it was opened")}
	}
	if err == nil {
		h.Base, err = place.NewBase(root)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	// An older handle may still serve calls in flight; it closes when collected.
	d.open.Store(h)
	return h.Base, nil
}

// expand resolves "~" at the start of a path.
func (r *Roots) expand(path string) (string, error) {
	if !strings.HasPrefix(path, "~") {
		return path, nil
	}
	rest := path[1:]
	if rest != "" && !os.IsPathSeparator(rest[0]) {
		return "", fault.New(fault.FSPathResolution, "%s: only ~ and ~/… are understood; write another user's home directory out", path)
	}
	if r.home == "" {
		return "", fault.New(fault.FSPathResolution, "%s: the home directory is not known; write the path out", path)
	}
	return filepath.Join(r.home, rest), nil
}

// Resolve places a caller's path: "~" expanded, made absolute, every link
// followed, found in the allowed directory that holds it. Of a path that is
// refused the place has Asked alone.
func (r *Roots) Resolve(raw string) (place.Place, error) {
	switch {
	case raw == "":
		return place.Place{}, fault.New(fault.FSBadPathInput, "the path is empty; name a file or directory")
	case len(raw) > maxPath:
		return place.Place{}, fault.New(fault.FSBadPathInput, "the path has %d bytes; at most %d are accepted", len(raw), maxPath)
	case strings.ContainsRune(raw, 0):
		return place.Place{}, fault.New(fault.FSBadPathInput, "the path contains a NUL character")
	case strings.ContainsRune(raw, utf8.RuneError):
		return place.Place{}, fault.New(fault.FSBadPathInput, "the path contains U+FFFD, so it was not valid Unicode; a name that is not UTF-8 cannot be addressed")
	}
	if err := badForSystem(raw); err != nil {
		return place.Place{}, err
	}
	asked, err := r.expand(raw)
	if err != nil {
		return place.Place{}, err
	}
	if !filepath.IsAbs(asked) {
		asked = filepath.Join(r.project, asked)
	}
	asked = filepath.Clean(asked)
	real := asked
	d, base := r.straight(asked)
	var resolveErr error
	if base == nil {
		real, resolveErr = r.follow(asked)
		d = r.holding(real)
	}
	if d == nil {
		// Whatever follow met on the way, nothing is told of what lies outside.
		return place.Place{Asked: asked}, r.outside(raw)
	}
	r.rules.refresh()
	if r.Denied(real) || asked != real && r.Denied(asked) {
		return place.Place{Asked: asked}, place.Refused(raw)
	}
	if resolveErr != nil {
		return place.Place{Asked: asked}, resolveErr
	}
	if base == nil {
		if base, err = d.handle(); err != nil {
			return place.Place{Asked: asked}, fault.Hide(fault.FSNotFound, err, "the allowed directory %s is gone", d.abs)
		}
	}
	return place.Place{Root: base.Root(), Name: d.name(real), Abs: real, Asked: asked, Guard: r, Base: base}, nil
}

// straight returns the allowed directory that holds the clean absolute path and
// its handle, where the system can tell at once that no link is on the way.
func (r *Roots) straight(path string) (*dir, *place.Base) {
	d := r.holding(path)
	if d == nil {
		return nil, nil
	}
	if base, err := d.handle(); err == nil && base.FreeOfLinks(d.name(path)) {
		return d, base
	}
	return nil, nil
}

// name returns the name below d of a path that d holds.
func (d *dir) name(path string) string {
	rest := path[len(d.abs):]
	if rest != "" && os.IsPathSeparator(rest[0]) {
		rest = rest[1:]
	}
	return cmp.Or(rest, ".")
}

// ResolveBelow places a path for tools that stay below the project root: it must
// be relative, and that directory, which is in an allowed one, counts as the only
// allowed one. Deny rules hold as everywhere.
func (r *Roots) ResolveBelow(raw string) (place.Place, error) {
	b, err := r.projectAlone()
	if err != nil {
		return place.Place{}, err
	}
	if raw != "" && (filepath.IsAbs(raw) || os.IsPathSeparator(raw[0])) || raw == "~" || strings.HasPrefix(raw, "~") && os.IsPathSeparator(raw[1]) {
		hint := "such as src/main.go"
		for _, root := range []string{r.project, b.dirs[0].abs} {
			if rel, err := filepath.Rel(root, raw); err == nil && filepath.IsLocal(rel) {
				hint = "here " + filepath.ToSlash(rel)
			}
		}
		return place.Place{}, fault.New(fault.FSAccessDenied, "%s is not a relative path; this tool takes paths relative to the project root %s alone, %s", raw, b.dirs[0].abs, hint)
	}
	return b.Resolve(raw)
}

// projectAlone returns the Roots whose one directory is the project root.
func (r *Roots) projectAlone() (*Roots, error) {
	r.below.Lock()
	defer r.below.Unlock()
	if r.below.Roots != nil {
		return r.below.Roots, nil
	}
	b := &Roots{home: r.home, project: r.project, rules: r.rules, outer: r}
	d, err := b.allow(b.project)
	if err != nil {
		return nil, fault.Hide(fault.FSPathResolution, err, "the project root %s is not a directory that can be opened; have the server started in the project, or CONDUIT_PROJECT_ROOT set to it", r.project)
	}
	if r.holding(d.abs) == nil {
		return nil, fault.New(fault.FSAccessDenied, "the project root %s leads outside the allowed directories: %s", r.project, strings.Join(r.Dirs(), ", "))
	}
	b.dirs = []*dir{d}
	r.below.Roots = b
	return b, nil
}

func (r *Roots) outside(raw string) error {
	if r.outer != nil {
		asked := raw
		if !filepath.IsAbs(asked) {
			asked = filepath.Join(r.project, raw)
		}
		return fault.New(fault.FSAccessDenied, "%s (resolved to %s) is outside the project root %s, below which this tool stays", raw, asked, r.dirs[0].abs)
	}
	return fault.New(fault.FSAccessDenied, "%s is outside the allowed directories: %s", raw, strings.Join(r.Dirs(), ", "))
}

// holding returns the innermost allowed directory that holds abs.
func (r *Roots) holding(abs string) *dir {
	var best *dir
	for _, d := range r.dirs {
		if place.Within(abs, d.abs) && (best == nil || len(d.abs) > len(best.abs)) {
			best = d
		}
	}
	if grant := r.granted(abs); grant != nil && (best == nil || len(grant.abs) > len(best.abs)) {
		return grant
	}
	return best
}
