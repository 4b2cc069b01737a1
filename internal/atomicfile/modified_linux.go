package atomicfile

import (
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetModified gives the file called name in root, which is open as f, that
// modification time.
func SetModified(f *os.File, _ *os.Root, _ string, at time.Time) error {
	defer runtime.KeepAlive(f)
	modified, err := unix.TimeToTimespec(at)
	if err != nil {
		return err
	}
	times := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, modified}
	return retry(func() error {
		// Without a path it is the open file itself.
		if _, _, err := unix.Syscall6(unix.SYS_UTIMENSAT, f.Fd(), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0); err != 0 {
			return err
		}
		return nil
	})
}
