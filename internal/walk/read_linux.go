package walk

import (
	"context"
	"encoding/binary"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

var direntBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// readDir returns what is in the directory open as fd, in no order. It asks the
// system itself: for a directory opened through an [os.Root] package os would
// stat every entry.
func readDir(ctx context.Context, fd int) ([]Entry, error) {
	buf := direntBuffers.Get().(*[64 << 10]byte)
	defer direntBuffers.Put(buf)
	var list []Entry
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := unix.Getdents(fd, buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "readdir", Path: ".", Err: err}
		case n <= 0:
			return list, nil
		}
		if list, err = appendEntries(list, string(buf[:n]), func(name string) (fs.FileMode, error) { return typeOf(fd, name) }); err != nil {
			return nil, err
		}
	}
}

// Where the fields of struct linux_dirent64 are.
const (
	lengthAt = 16
	typeAt   = 18
	nameAt   = 19
)

// appendEntries adds the entries in b, a series of struct linux_dirent64, and
// keeps b for their names: one piece of memory for many. Where a file system does
// not tell what an entry is, lookup does.
func appendEntries(list []Entry, b string, lookup func(string) (fs.FileMode, error)) ([]Entry, error) {
	list = slices.Grow(list, len(b)/typicalRecord)
	for len(b) > nameAt {
		length := int(binary.NativeEndian.Uint16([]byte(b[lengthAt : lengthAt+2])))
		if length <= nameAt || length > len(b) {
			break
		}
		kind, known := typeOfRecord(b[typeAt])
		name := b[nameAt:length]
		b = b[length:]
		if end := strings.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if name == "." || name == ".." || name == "" {
			continue
		}
		if !known {
			var err error
			if kind, err = lookup(name); err == unix.ENOENT {
				continue // gone meanwhile
			} else if err != nil {
				return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
			}
		}
		list = append(list, Entry{name, kind})
	}
	return list, nil
}

// typicalRecord is about what an entry takes, in bytes.
const typicalRecord = 32

// typeOfRecord returns the type bits for a DT_ constant, false where it tells
// nothing.
func typeOfRecord(kind byte) (fs.FileMode, bool) {
	switch kind {
	case unix.DT_REG:
		return 0, true
	case unix.DT_DIR:
		return fs.ModeDir, true
	case unix.DT_LNK:
		return fs.ModeSymlink, true
	case unix.DT_FIFO:
		return fs.ModeNamedPipe, true
	case unix.DT_SOCK:
		return fs.ModeSocket, true
	case unix.DT_BLK:
		return fs.ModeDevice, true
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice, true
	}
	return 0, false
}

func typeOf(fd int, name string) (fs.FileMode, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	kind, _ := typeOfRecord(byte(st.Mode & unix.S_IFMT >> 12)) // the numbers of both are the same
	return kind, nil
}
