package atomicfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

func renameAt(from *Dir, old string, to *Dir, new string, replace bool) error {
	var flags uint32
	if !replace {
		flags = unix.RENAME_EXCL
	}
	err := retry(func() error { return unix.RenameatxNp(int(from.file.Fd()), old, int(to.file.Fd()), new, flags) })
	if !replace && errors.Is(err, unix.ENOTSUP) {
		return linkAnew(from, old, to, new)
	}
	return err
}
