package dirfd

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxName is the longest name of an entry, in bytes, as Linux has it.
const maxName = 255

// A name is the name of an entry as the system wants it, closed by a zero byte.
type name [maxName + 1]byte

func (n *name) set(s string) error {
	if len(s) > maxName {
		return unix.ENAMETOOLONG
	}
	for i := range len(s) {
		if s[i] == 0 {
			return unix.EINVAL
		}
	}
	n[copy(n[:], s)] = 0
	return nil
}

// Open opens the entry called s of the directory dir and returns its descriptor.
// It does not follow a link (ELOOP), nor does it wait for the other end of a
// FIFO. The descriptor is closed when another program is started.
func Open(dir int, s string, flags int) (int, error) {
	var n name
	if err := n.set(s); err != nil {
		return -1, err
	}
	for {
		fd, _, err := syscall.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(&n)),
			uintptr(flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_LARGEFILE), 0, 0, 0)
		switch err {
		case 0:
			return int(fd), nil
		case unix.EINTR:
			continue
		}
		return -1, err
	}
}

// Statx describes the entry called s of the directory dir in x: what mask names.
// Links are not followed. An empty name stands for dir itself, which then can be
// any descriptor.
func Statx(dir int, s string, mask int, x *unix.Statx_t) error {
	var n name
	if err := n.set(s); err != nil {
		return err
	}
	flags := 0
	if s == "" {
		flags = unix.AT_EMPTY_PATH
	}
	return statx(dir, &n[0], flags, mask, x)
}

// StatxPath is Statx for an absolute path of any length, closed by a zero byte.
func StatxPath(path []byte, mask int, x *unix.Statx_t) error {
	return statx(unix.AT_FDCWD, &path[0], 0, mask, x)
}

func statx(dir int, name *byte, flags, mask int, x *unix.Statx_t) error {
	flags |= unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	for {
		_, _, err := syscall.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(flags), uintptr(mask), uintptr(unsafe.Pointer(x)), 0)
		switch err {
		case 0:
			return nil
		case unix.EINTR:
			continue
		}
		return err
	}
}
