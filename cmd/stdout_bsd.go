//go:build unix && !linux

package cmd

import (
	"os"

	"golang.org/x/sys/unix"
)

func replaceFD(with, fd int) error { return unix.Dup2(with, fd) }

func isTTY(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA)
	return err == nil
}
