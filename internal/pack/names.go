package pack

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

const (
	maxName    = 4096           // bytes of a whole name, as of every path here
	maxElement = 255            // bytes of one element, as file systems have it
	maxLevels  = walk.MaxLevels // directories that a file may be in, each in another
)

// BadName says what makes the name of an entry unfit to be written below a
// directory, "" where nothing does. Names are relative, "/"-separated, without
// a slash at the end.
func BadName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxName:
		return "is too long"
	case !utf8.ValidString(name) || strings.ContainsRune(name, utf8.RuneError):
		return "is not UTF-8"
	case strings.ContainsRune(name, 0):
		return "contains a NUL character"
	case name[0] == '/':
		return "is absolute"
	case strings.ContainsRune(name, '\\'):
		return "contains a backslash"
	case len(name) > 1 && name[1] == ':' && letter(name[0]):
		return "begins with a drive letter"
	case strings.Count(name, "/") > maxLevels:
		return "is nested too deep"
	}
	for e := range strings.SplitSeq(name, "/") {
		switch {
		case e == "..":
			return "contains .."
		case e == "" || e == ".":
			return "contains an empty element"
		case len(e) > maxElement:
			return "has an element that is too long"
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || runtime.GOOS == "windows" && strings.ContainsAny(name, `<>:"|?*`) {
		return "is not possible on this system"
	}
	return ""
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// tidy gives the name of an entry the form that badName judges: "./" and
// doubled slashes are harmless and go, the slash of a directory too. The
// directory that all entries are in is "". What is dangerous stays.
func tidy(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	elements := strings.Split(name, "/")
	kept := elements[:0]
	for _, e := range elements {
		if e != "" && e != "." {
			kept = append(kept, e)
		}
	}
	return strings.Join(kept, "/")
}

// readable returns name as UTF-8. What is not is taken for code page 437 in a
// zip, as its specification says, and for Latin-1 elsewhere.
func readable(name string, zip bool) string {
	if utf8.ValidString(name) {
		return name
	}
	page := charmap.ISO8859_1
	if zip {
		page = charmap.CodePage437
	}
	s, err := page.NewDecoder().String(name)
	if err != nil {
		return name
	}
	return s
}

// strip removes the first n elements of name; ok is false where nothing is
// left.
func strip(name string, n int) (rest string, ok bool) {
	for range n {
		var more bool
		if _, name, more = strings.Cut(name, "/"); !more {
			return "", false
		}
	}
	return name, name != ""
}

// Shown is a name from an archive as messages show it.
func Shown(name string) string {
	return fault.ClipTo(strings.ToValidUTF8(name, "\uFFFD"), 200)
}

// Stays is [place.Stays] for the text of a link in an archive, which must also
// mean the same everywhere.
func Stays(text, dir string) bool {
	if text == "" || path.IsAbs(text) || filepath.IsAbs(text) || strings.ContainsAny(text, "\\\x00") || len(text) > maxName || !utf8.ValidString(text) || filepath.VolumeName(text) != "" {
		return false
	}
	return place.Stays(text, dir)
}
