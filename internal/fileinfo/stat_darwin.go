package fileinfo

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// At describes name below root; dir and base are for systems with a call of
// their own for it.
func At(root *os.Root, _ *os.File, name, _ string) (Info, error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return From(fi), nil
}

// From converts what package os tells.
func From(fi fs.FileInfo) Info {
	i := Info{Mode: fi.Mode(), Size: fi.Size(), Modified: fi.ModTime(), Created: fi.ModTime(), Accessed: fi.ModTime(), Changed: fi.ModTime(), Links: 1}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		i.Created = time.Unix(st.Birthtimespec.Unix())
		i.Accessed, i.Changed = time.Unix(st.Atimespec.Unix()), time.Unix(st.Ctimespec.Unix())
		i.ID = ID{uint64(st.Dev), st.Ino}
		i.Links, i.UID, i.GID = uint64(st.Nlink), st.Uid, st.Gid
	}
	return i
}
