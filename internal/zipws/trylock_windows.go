package zipws

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the open file f, for this handle alone where exclusive is set,
// until it is closed, and reports whether it could.
func tryLock(f *os.File, exclusive bool) bool {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped)) == nil
}
