//go:build linux || darwin

package pack

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setLinkTime gives the symbolic link called name in dir a modification time.
func setLinkTime(dir *os.Root, name string, at time.Time) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	stamp, err := unix.TimeToTimespec(at)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(int(f.Fd()), name, []unix.Timespec{stamp, stamp}, unix.AT_SYMLINK_NOFOLLOW)
}
