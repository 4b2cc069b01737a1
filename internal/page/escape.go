package page

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Characters that stand, in text, for those that HTML in Markdown is made of,
// until it is known whether they need a backslash.
const (
	less, more, ampersand = '\uE0F0', '\uE0F1', '\uE0F2'
	lineEnd               = '\uE0F3' // a line end that the author set
	underscore            = '\uE0F4'
)

// protect hides from the converter the characters of HTML, which it would spell
// as entities, and underscores within words, which mean nothing there.
func protect(s string) string {
	if strings.ContainsAny(s, "<>&") {
		s = angles.Replace(s)
	}
	if strings.IndexByte(s, '_') < 0 {
		return s
	}
	var b strings.Builder
	before := ' '
	for i, r := range s {
		if r == '_' && isWord(before) {
			if after, _ := utf8.DecodeRuneInString(s[i+1:]); isWord(after) {
				r = underscore
			}
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

var angles = strings.NewReplacer("<", string(less), ">", string(more), "&", string(ampersand))
