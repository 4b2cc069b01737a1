//go:build linux || darwin

package pack

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace is how many bytes may still be written where the directory dir is;
// ok is false where the system does not tell.
func freeSpace(dir *os.File) (n int64, ok bool) {
	var s unix.Statfs_t
	c, err := dir.SyscallConn()
	if err != nil {
		return 0, false
	}
	cerr := c.Control(func(fd uintptr) { err = unix.Fstatfs(int(fd), &s) })
	if cerr != nil || err != nil || s.Blocks == 0 {
		return 0, false
	}
	return int64(min(s.Bavail, 1<<40)) * int64(s.Bsize), true
}
