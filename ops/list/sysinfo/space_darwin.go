package sysinfo

import (
	"os"

	"golang.org/x/sys/unix"
)

func spaceOf(f *os.File) (space, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return space{}, err
	}
	unit := uint64(s.Bsize)
	return space{s.Blocks * unit, s.Bfree * unit, s.Bavail * unit, (s.Blocks - s.Bfree) * unit}, nil
}
