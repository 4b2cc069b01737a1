//go:build !linux

package roots

import (
	"os"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

type sysName string

func nameFor(dir string) sysName { return sysName(dir) }

// stampOf returns the stamp of a directory, none where there is none any more.
func stampOf(name sysName) stamp {
	fi, err := os.Lstat(string(name))
	if err != nil {
		return stamp{}
	}
	id := fileinfo.From(fi).ID
	return stamp{id.Device, id.Inode, fi.ModTime().UnixNano()}
}
