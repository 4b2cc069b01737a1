package pack

import (
	"os"

	"golang.org/x/sys/windows"
)

// freeSpace is how many bytes may still be written where the directory dir is;
// ok is false where the system does not tell.
func freeSpace(dir *os.File) (n int64, ok bool) {
	name, err := windows.UTF16PtrFromString(dir.Name())
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(free, 1<<62)), true
}
