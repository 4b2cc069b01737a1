//go:build unix

package fileinfo

import (
	"io/fs"
	"os"
	"syscall"
)

// Own reports whether the file belongs to the user of this process. Where the
// system does not tell it does.
func Own(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}
