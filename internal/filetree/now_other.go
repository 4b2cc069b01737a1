//go:build !linux

package filetree

import (
	"os"
	"time"
)

// setNow sets the times of name in root to now.
func setNow(root *os.Root, name string) error {
	now := time.Now()
	return root.Chtimes(name, now, now)
}
