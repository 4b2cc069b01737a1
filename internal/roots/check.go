package roots

import (
	"os"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Check refuses f, opened at abs, where a deny rule covers what was opened: a
// link may have been put in the way after abs was judged.
func (r *Roots) Check(f *os.File, abs string) error {
	if d := r.holding(abs); d != nil && !r.DeniedBelow(d.abs) && !r.Denied(d.abs) {
		return nil // os.Root kept f below d, where no rule matches
	}
	real, ok := pathOf(f)
	if !ok {
		// Resolving once more is the next best: the link must still be there.
		var err error
		if real, err = filepath.EvalSymlinks(abs); err != nil {
			return nil
		}
	}
	if real != abs && r.Denied(real) {
		return place.Refused(abs)
	}
	return nil
}
