package zipws

import (
	"io/fs"
	"syscall"
)

// changeTime is when the system last changed anything of the file.
func changeTime(fi fs.FileInfo) int64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
