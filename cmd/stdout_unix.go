//go:build unix

package cmd

import (
	"os"

	"golang.org/x/sys/unix"
)

// takeStdout hands out the process's stdout and stderr and points their
// descriptors at the null device, so that nothing else can write where only
// protocol messages may be.
func takeStdout() (stdout, stderr *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	var taken [3]*os.File
	for std := 1; std <= 2; std++ {
		fd, err := unix.FcntlInt(uintptr(std), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, nil, err
		}
		if err := replaceFD(int(null.Fd()), std); err != nil {
			return nil, nil, err
		}
		taken[std] = os.NewFile(uintptr(fd), "standard stream")
	}
	return taken[1], taken[2], nil
}
