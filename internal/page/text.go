package page

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns s without the characters that a reader does not see but a
// model reads: zero-width ones, tags, overrides of the writing direction,
// controls. Joiners stay where scripts and emoji need them, tags in the flags
// of England, Scotland and Wales, variation selectors one to a character, and
// directional embeddings and isolates.
func visible(s string) string {
	i := 0
	for i < len(s) && plain(s[i:]) {
		i++
	}
	if i == len(s) {
		return s
	}
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	var embeddings []bool // open ones, whether they were kept
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		rest := s[i+size:]
		keep := true
		switch {
		case r == blackFlag:
			tags := flagTags(rest)
			b.WriteRune(r)
			b.WriteString(rest[:tags])
			i += size + tags
			before = r
			continue
		case r == zwnj || r == zwj:
			after, n := utf8.DecodeRuneInString(rest)
			keep = (before == utf8.RuneError || joins(before)) && (n == 0 || joins(after)) && before != r
			if i == 0 {
				keep = n > 0 && joins(after)
			}
		case r == lre || r == rle:
			embeddings = append(embeddings, true)
		case r == lro || r == rlo:
			embeddings = append(embeddings, false)
			keep = false
		case r == pdf:
			keep = len(embeddings) > 0 && embeddings[len(embeddings)-1]
			embeddings = embeddings[:max(len(embeddings)-1, 0)]
		case unicode.Is(unicode.Variation_Selector, r):
			keep = !unicode.Is(unicode.Variation_Selector, before) && (before >= 0xA0 || before == '#' || before == '*' || before >= '0' && before <= '9') &&
				before != utf8.RuneError && (r < 0xE0100 || unicode.Is(unicode.Ideographic, before))
		default:
			keep = !unseen(r)
		}
		if keep {
			b.WriteString(s[i : i+size])
			before = r
		}
		i += size
	}
	return b.String()
}

const (
	zwnj, zwj               = '\u200C', '\u200D'
	lre, rle, pdf, lro, rlo = '\u202A', '\u202B', '\u202C', '\u202D', '\u202E'

	blackFlag = '\U0001F3F4' // the base of flags that tags spell
	lastTag   = '\U000E007F'
)

// plain reports whether the byte that s begins with is surely no part of a
// character that visible looks at. It errs for some.
func plain(s string) bool {
	switch c := s[0]; {
	case c < ' ':
		return c == '\t' || c == '\n' || c == '\r' || c == '\f'
	case c < 0x7F:
		return true
	case c == 0x7F, c >= 0xEE:
		return false
	case c == 0xC2:
		return len(s) > 1 && s[1] >= 0xA0 && s[1] != 0xAD
	case c == 0xCD:
		return len(s) > 1 && s[1] != 0x8F
	case c == 0xE1:
		return len(s) > 2 && (s[1] != 0xA0 || s[2]&^3 != 0x8C)
	case c == 0xE2:
		return len(s) > 2 && (s[1] != 0x80 && s[1] != 0x81 || s[2] >= 0x90 && s[2] <= 0xA7 && s[1] == 0x80 || s[1] == 0x80 && s[2] == 0xAF)
	}
	return true
}

// unseen reports whether r has no width, no meaning for a script, or is one
// that the converter to Markdown takes for its own.
func unseen(r rune) bool {
	switch {
	case r < ' ':
		return r != '\t' && r != '\n' && r != '\r' && r != '\f'
	case r >= 0x7F && r < 0xA0,
		r == 0xAD, r == 0x34F, r >= 0x180B && r <= 0x180E, r == 0x200B,
		r >= 0x2060 && r <= 0x2065, r >= 0x206A && r <= 0x206F,
		r == 0xFEFF, r >= 0xFFF9 && r <= 0xFFFB,
		r == 0xF002, r >= less && r <= underscore,
		r >= 0xE0000 && r <= 0xE007F:
		return true
	}
	return false
}

// joins reports whether r may stand beside a joiner: the letters and signs of
// the scripts from Hebrew on, and emoji.
func joins(r rune) bool {
	return r >= 0x0590 && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.In(r, unicode.So, unicode.Sk)) ||
		unicode.Is(unicode.Variation_Selector, r)
}

// flagTags returns how many bytes of s, which follows the flag, spell a part of
// the United Kingdom.
func flagTags(s string) int {
	var name strings.Builder
	for i, r := range s {
		if r == lastTag {
			switch name.String() {
			case "gbeng", "gbsct", "gbwls":
				return i + utf8.RuneLen(r)
			}
			break
		}
		if r < 0xE0020 || r > lastTag || name.Len() > 5 {
			break
		}
		name.WriteByte(byte(r - 0xE0000))
	}
	return 0
}
