package walk

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

var direntBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// readDir returns what is in the open directory f, in no order. It asks the
// system itself: for a directory opened through an [os.Root] package os would
// stat every entry.
func readDir(f *os.File) ([]Entry, error) {
	buf := direntBuffers.Get().(*[64 << 10]byte)
	defer direntBuffers.Put(buf)
	defer runtime.KeepAlive(f)
	fd := int(f.Fd())
	var list []Entry
	for {
		n, err := unix.Getdents(fd, buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "readdir", Path: f.Name(), Err: err}
		case n <= 0:
			return list, nil
		}
		if list, err = appendEntries(list, buf[:n], func(name string) (fs.FileMode, error) { return typeOf(fd, name) }); err != nil {
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

// appendEntries adds the entries in b, a series of struct linux_dirent64. Where a
// file system does not tell what an entry is, lookup does.
func appendEntries(list []Entry, b []byte, lookup func(string) (fs.FileMode, error)) ([]Entry, error) {
	for len(b) > nameAt {
		length := int(binary.NativeEndian.Uint16(b[lengthAt:]))
		if length <= nameAt || length > len(b) {
			break
		}
		record := b[:length]
		b = b[length:]
		name := record[nameAt:]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if s := string(name); s != "." && s != ".." && s != "" {
			kind, known := kinds[record[typeAt]]
			if !known {
				var err error
				if kind, err = lookup(s); err == unix.ENOENT {
					continue // gone meanwhile
				} else if err != nil {
					return nil, &fs.PathError{Op: "lstat", Path: s, Err: err}
				}
			}
			list = append(list, Entry{s, kind})
		}
	}
	return list, nil
}

var kinds = map[byte]fs.FileMode{
	unix.DT_REG: 0, unix.DT_DIR: fs.ModeDir, unix.DT_LNK: fs.ModeSymlink, unix.DT_FIFO: fs.ModeNamedPipe,
	unix.DT_SOCK: fs.ModeSocket, unix.DT_BLK: fs.ModeDevice, unix.DT_CHR: fs.ModeDevice | fs.ModeCharDevice,
}

func typeOf(fd int, name string) (fs.FileMode, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	return kinds[byte(st.Mode&unix.S_IFMT>>12)], nil // the numbers of both are the same
}
