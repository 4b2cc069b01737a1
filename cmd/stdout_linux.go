package cmd

import (
	"os"

	"golang.org/x/sys/unix"
)

func replaceFD(with, fd int) error { return unix.Dup3(with, fd, 0) }

func isTTY(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
