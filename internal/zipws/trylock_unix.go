//go:build unix

package zipws

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the open file f, for this handle alone where exclusive is set,
// until it is closed, and reports whether it could.
func tryLock(f *os.File, exclusive bool) bool {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
