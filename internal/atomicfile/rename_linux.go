package atomicfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

func renameAt(from *Dir, old string, to *Dir, new string, replace bool) error {
	var flags uint
	if !replace {
		flags = unix.RENAME_NOREPLACE
	}
	err := retry(func() error { return unix.Renameat2(int(from.file.Fd()), old, int(to.file.Fd()), new, flags) })
	if !replace && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS)) {
		return linkAnew(from, old, to, new)
	}
	return err
}
