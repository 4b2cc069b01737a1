package edit

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Result is what became of one file.
type Result struct {
	registry.Outcome
	Path         string `json:"path"`
	Edits        int    `json:"edits_applied,omitempty"`
	Replacements *int   `json:"replacements,omitempty"`
	Matched      string `json:"matched,omitempty"` // "whitespace" where an old text was found with other white space only
	Charset      string `json:"charset,omitempty"` // where it is not UTF-8
	Added        int    `json:"lines_added,omitempty"`
	Removed      int    `json:"lines_removed,omitempty"`
	Diff         string `json:"diff,omitempty"`
	ETag         string `json:"etag,omitempty"` // of the file as it is after the call
	journal.Mark
	Message string `json:"message,omitempty"`
}

// Trim leaves out the diff, for which the response has no room. What was done to
// the file is told all the same.
func (r *Result) Trim(err error) {
	_, why := fault.Of(err)
	r.Diff = ""
	r.say("The diff is left out: " + why + ".")
}

// say adds a sentence to the message.
func (r *Result) say(s string) {
	if s = strings.TrimSpace(s); s == "" {
		return
	}
	if r.Message != "" {
		r.Message += " "
	}
	r.Message += s
}

// Results are what became of several files.
type Results []Result

// Lean writes the bare diffs. A file that failed is told by its error, and one
// that has no diff by its message.
func (list Results) Lean(w io.Writer) error {
	for _, r := range list {
		text := r.Diff
		switch {
		case r.Failed():
			text = string(r.ErrorCode) + ": " + r.ErrorMessage + "\n"
		case text == "":
			text = r.Path + ": " + r.Message + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// nameIn returns how diffs call a file that the caller named path: by that where
// it is relative, else by the name below the allowed directory that holds it.
func nameIn(path, below string) string {
	if clean := filepath.Clean(path); filepath.IsLocal(clean) && !strings.HasPrefix(path, "~") {
		return filepath.ToSlash(clean)
	}
	return filepath.ToSlash(below)
}
