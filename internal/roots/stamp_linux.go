package roots

import (
	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/dirfd"
)

// A sysName is a path as the system wants it: nothing is allocated to look it up.
type sysName []byte

func nameFor(dir string) sysName { return append([]byte(dir), 0) }

// stampOf returns the stamp of a directory, none where there is none any more.
func stampOf(name sysName) stamp {
	var x unix.Statx_t
	if dirfd.StatxPath(name, unix.STATX_INO|unix.STATX_MTIME, &x) != nil {
		return stamp{}
	}
	return stamp{unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino, x.Mtime.Sec*1e9 + int64(x.Mtime.Nsec)}
}
