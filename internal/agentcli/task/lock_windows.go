package task

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the open file f for this handle alone, until it is closed, and
// reports whether it could.
func tryLock(f *os.File) bool {
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped)) == nil
}
