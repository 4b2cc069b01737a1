package registry

import (
	"cmp"
	"io"
	"net/url"
	"os"
	"path"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Path is a local path named by the caller: absolute, "~", "~/…" or relative
// to the project root. Only the path guard can turn it into something a handler
// may open; until then everything but String fails.
type Path struct {
	raw   string
	place place.Place
	err   error
	known bool

	inner string // where it continues into an archive, the slash-separated name in there
}

// Place returns the place the path leads to, every link followed, or the
// guard's reason to refuse it.
func (p Path) Place() (place.Place, error) {
	if !p.known {
		return place.Place{}, fault.New(fault.FSAccessDenied, "path %q was never checked", p.raw)
	}
	if p.inner != "" {
		return place.Place{}, fault.New(fault.FSBadPathInput, "%s names something inside an archive; give the path of a file or directory on disk", p.raw)
	}
	return p.place, p.err
}

// Entry returns the place of the name itself: of the link where the path ends
// in a symbolic link. A link whose target may not be used is refused, and so is
// one written with a trailing slash, which names the target.
func (p Path) Entry() (place.Place, error) {
	target, err := p.Place()
	if err != nil {
		return place.Place{}, err
	}
	entry, err := target.Entry()
	if err != nil {
		return place.Place{}, err
	}
	last := p.raw[strings.LastIndexAny(p.raw, "/"+string(os.PathSeparator))+1:]
	if entry.Abs != target.Abs && (last == "" || last == ".") {
		return place.Place{}, fault.New(fault.FSBadPathInput, "%s ends in a slash and so names the directory that a symbolic link points to; leave the slash out to name the link", p.raw)
	}
	return entry, nil
}

// NamesDirectory reports whether p is written as only a directory is: with a
// slash at its end.
func (p Path) NamesDirectory() bool {
	return p.raw != "" && os.IsPathSeparator(p.raw[len(p.raw)-1])
}

// ReadFile reads the whole file at p unless it is larger than max bytes.
func (p Path) ReadFile(max int64) ([]byte, error) {
	at, err := p.Place()
	if err != nil {
		return nil, err
	}
	f, _, err := at.OpenFileOnly()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		return nil, fault.New(fault.LimitExceeded, "File read exceeds CONDUIT_MAX_FILE_READ_BYTES: %s is larger than %d bytes", p, max)
	}
	return b, err
}

// String returns the path as the caller wrote it.
func (p Path) String() string { return p.raw }

// Vet records resolve's verdict on p. The path guard calls it once per path.
func (p *Path) Vet(resolve func(string) (place.Place, error)) {
	p.place, p.err = resolve(p.raw)
	p.known = true
	if !strings.Contains(p.raw, intoArchive) {
		return
	}
	if p.err == nil {
		if _, err := p.place.Stat(); err == nil {
			return // a file that is called so
		}
	}
	for i := strings.LastIndex(p.raw, intoArchive); i > 0; i = strings.LastIndex(p.raw[:i], intoArchive) {
		at, err := resolve(p.raw[:i])
		if err != nil {
			continue
		}
		if fi, err := at.Stat(); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		p.place, p.err, p.inner = at, nil, cmp.Or(path.Clean("/" + p.raw[i+len(intoArchive):])[1:], ".")
		return
	}
}

// intoArchive stands between the path of an archive and a name inside it.
const intoArchive = "!/"

// UnmarshalText sets the path as the caller wrote it, not yet vetted.
func (p *Path) UnmarshalText(b []byte) error {
	*p = Path{raw: string(b)}
	return nil
}

// MarshalText returns the path as the caller wrote it.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.raw), nil }

// JSONSchema makes Path a plain string in schemas.
func (Path) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

// A Member is a Path that may continue into an archive: archive.zip!/inner/path.
// A file or directory of that very name comes first. Path refuses the form, and
// so do Place and what is built on it; see Archive.
type Member struct{ Path }

// Archive returns the place of the archive that m continues into and the
// slash-separated name in there, "." for all of it; or false where m is a plain
// path.
func (m Member) Archive() (at place.Place, name string, ok bool) {
	return m.place, m.inner, m.inner != ""
}

// UnmarshalText sets the path as the caller wrote it, not yet vetted.
func (m *Member) UnmarshalText(b []byte) error {
	*m = Member{Path{raw: string(b)}}
	return nil
}

// JSONSchema makes Member a plain string in schemas.
func (Member) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

// A Source is a Member or a URL.
type Source struct {
	Member
	url *url.URL
	bad error
}

// URL returns the source's http or https URL, or nil where it is a path. A
// source written as a URL that is none, or of another scheme (file: included),
// fails with ERR_HTTP_INVALID_URL.
func (s Source) URL() (*url.URL, error) { return s.url, s.bad }

// Type is "url" or "file", as results tell it.
func (s Source) Type() string {
	if s.url != nil || s.bad != nil {
		return "url"
	}
	return "file"
}

// UnmarshalText sets the source as the caller wrote it.
func (s *Source) UnmarshalText(b []byte) error {
	*s = Source{Member: Member{Path{raw: string(b)}}}
	scheme, rest, ok := strings.Cut(s.raw, "://")
	if !ok || !isScheme(scheme) {
		return nil
	}
	if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		s.bad = fault.New(fault.HTTPInvalidURL, "%s: only http and https URLs are read; name a local file by its path alone", fault.Clip(s.raw))
		return nil
	}
	u, err := url.Parse(s.raw)
	if err != nil || u.Host == "" || rest == "" {
		s.bad = fault.New(fault.HTTPInvalidURL, "%s is not a valid URL; write it as https://host/path", fault.Clip(s.raw))
		return nil
	}
	s.url = u
	return nil
}

func isScheme(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return s != ""
}

// JSONSchema makes Source a plain string in schemas.
func (Source) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

var (
	pathType   = reflect.TypeFor[Path]()
	sourceType = reflect.TypeFor[Source]()
)

// Paths calls f for every local Path reachable from input, a pointer to a
// struct. Sources that are URLs are left out.
func Paths(input any, f func(*Path)) { walkPaths(reflect.ValueOf(input), f) }

func walkPaths(v reflect.Value, f func(*Path)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walkPaths(v.Elem(), f)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			walkPaths(v.Index(i), f)
		}
	case reflect.Struct:
		switch {
		case v.Type() == pathType && v.CanAddr():
			f(v.Addr().Interface().(*Path))
			return
		case v.Type() == sourceType && v.CanAddr():
			if s := v.Addr().Interface().(*Source); s.Type() == "file" {
				f(&s.Path)
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walkPaths(v.Field(i), f)
			}
		}
	}
}
