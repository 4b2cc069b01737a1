//go:build !linux && !darwin

package atomicfile

import (
	"path/filepath"
	"syscall"
)

// renameAt renames within one allowed directory; between two of them it fails
// as between devices, so that callers copy.
func renameAt(from *Dir, old string, to *Dir, new string, replace bool) error {
	switch {
	case from.place.Root != to.place.Root:
		return syscall.EXDEV
	case !replace:
		return linkAnew(from, old, to, new)
	case from == to:
		return from.root.Rename(old, new)
	}
	return from.place.Root.Rename(filepath.Join(from.place.Name, old), filepath.Join(to.place.Name, new))
}
