package fileinfo

import (
	"io/fs"
	"syscall"
	"time"
)

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
