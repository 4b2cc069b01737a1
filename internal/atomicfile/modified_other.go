//go:build !linux

package atomicfile

import (
	"os"
	"time"
)

// SetModified gives the file called name in root, which is open as f, that
// modification time.
func SetModified(_ *os.File, root *os.Root, name string, at time.Time) error {
	return root.Chtimes(name, time.Time{}, at)
}
