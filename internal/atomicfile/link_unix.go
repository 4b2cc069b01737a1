//go:build linux || darwin

package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// LinkAt gives the file called old in the open directory from a further name
// new in the open directory to. A symbolic link is not followed. The error is
// the bare one of the system, [errors.ErrUnsupported] where it has no call.
func LinkAt(from *os.File, old string, to *os.File, new string) error {
	return retry(func() error { return unix.Linkat(int(from.Fd()), old, int(to.Fd()), new, 0) })
}
