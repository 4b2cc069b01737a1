// Package entryname judges and shows the names that archives give their
// entries. Nothing of such a name can be trusted.
package entryname

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
	MaxLen    = 4096           // bytes of a whole name, and of the text of a link
	MaxLevels = walk.MaxLevels // directories that a file may be in, each in another

	maxElement = 255 // bytes of one element, as file systems have it
)

// Bad says what makes the name of an entry unfit to be written below a
// directory, "" where nothing does. Names are relative, "/"-separated, without
// a slash at the end.
func Bad(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > MaxLen:
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
	case strings.Count(name, "/") > MaxLevels:
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

// Escapes reports whether a name leads out of the directory that it is put into,
// on one system or another.
func Escapes(name string) bool {
	name = strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':' && letter(name[0]) {
		return true
	}
	depth := 0
	for e := range strings.SplitSeq(name, "/") {
		switch e {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// Clean gives the name of an entry the form that [Bad] judges: "./" and
// doubled slashes are harmless and go, the slash of a directory too. The
// directory that all entries are in is "". What is dangerous stays.
func Clean(name string) string {
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

// Decode returns name as UTF-8. What is not is taken for code page 437 in a
// zip, as its specification says, and for Latin-1 elsewhere.
func Decode(name string, zip bool) string {
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

// Shown is a name from an archive as messages show it: UTF-8, and not too long.
func Shown(name string) string {
	return fault.ClipTo(strings.ToValidUTF8(name, "\uFFFD"), 200)
}

// LinkStays is [place.Stays] for the text of a link in an archive, which must also
// mean the same everywhere.
func LinkStays(text, dir string) bool {
	if text == "" || path.IsAbs(text) || filepath.IsAbs(text) || strings.ContainsAny(text, "\\\x00") || len(text) > MaxLen || !utf8.ValidString(text) || filepath.VolumeName(text) != "" {
		return false
	}
	return place.Stays(text, dir)
}
