//go:build unix

package task

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the open file f for this handle alone, until it is closed, and
// reports whether it could.
func tryLock(f *os.File) bool {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
