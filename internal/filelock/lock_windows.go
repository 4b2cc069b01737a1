package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// beyond is the byte that is locked, after any content: locks keep others from
// reading and writing here.
var beyond = windows.Overlapped{Offset: 0, OffsetHigh: 1 << 30}

func tryLock(f *os.File, m Mode) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if m == Exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := beyond
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

func unlock(f *os.File) error {
	at := beyond
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
