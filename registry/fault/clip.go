package fault

import "strings"

// Clip is what a message repeats of a caller's input: at most 80 bytes of it;
// see [ClipTo].
func Clip(s string) string { return ClipTo(s, 80) }

// ClipTo returns s or, where it has more than most bytes, the whole characters
// that it begins with and an ellipsis.
func ClipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
