package fileinfo

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/dirfd"
)

const wanted = unix.STATX_BASIC_STATS | unix.STATX_BTIME

// At describes base in the open directory dir; root and name say the same for
// systems that have no call for it.
func At(_ *os.Root, dir *os.File, name, base string) (Info, error) {
	i, err := Below(int(dir.Fd()), base)
	if pe, ok := err.(*fs.PathError); ok {
		pe.Path = name
	}
	return i, err
}

// Below describes the entry called name of the directory open as dir, or what
// is open as dir itself where name is empty.
func Below(dir int, name string) (Info, error) {
	var x unix.Statx_t
	if err := dirfd.Statx(dir, name, wanted, &x); err != nil {
		return Info{}, &fs.PathError{Op: "statx", Path: name, Err: err}
	}
	return fromStatx(&x), nil
}

func fromStatx(x *unix.Statx_t) Info {
	i := Info{
		Mode:     fileMode(uint32(x.Mode)),
		Size:     int64(x.Size),
		Modified: time.Unix(x.Mtime.Sec, int64(x.Mtime.Nsec)),
		Created:  time.Unix(x.Ctime.Sec, int64(x.Ctime.Nsec)),
		Accessed: time.Unix(x.Atime.Sec, int64(x.Atime.Nsec)),
		Changed:  time.Unix(x.Ctime.Sec, int64(x.Ctime.Nsec)),
		ID:       ID{unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino},
		Links:    uint64(x.Nlink),
		UID:      x.Uid,
		GID:      x.Gid,
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		i.Created = time.Unix(x.Btime.Sec, int64(x.Btime.Nsec))
	}
	return i
}

func fileMode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	}
	if m&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// From converts what package os tells; it knows no birth time.
func From(fi fs.FileInfo) Info {
	i := Info{Mode: fi.Mode(), Size: fi.Size(), Modified: fi.ModTime(), Created: fi.ModTime(), Accessed: fi.ModTime(), Changed: fi.ModTime(), Links: 1}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		i.Created = time.Unix(st.Ctim.Unix())
		i.Accessed, i.Changed = time.Unix(st.Atim.Unix()), i.Created
		i.ID = ID{uint64(st.Dev), st.Ino}
		i.Links, i.UID, i.GID = uint64(st.Nlink), st.Uid, st.Gid
	}
	return i
}
