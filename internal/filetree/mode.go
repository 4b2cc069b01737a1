package filetree

import (
	"io/fs"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Chmod gives the file or directory p, not what is in it, the permissions of
// mode, setuid, setgid and sticky bits included.
func Chmod(p place.Place, mode fs.FileMode) error {
	if err := changeable(p); err != nil {
		return err
	}
	return atomicfile.Failed(p, p.Chmod(mode))
}

// Chown gives the file or directory p, not what is in it, to the user and group
// with these numbers.
func Chown(p place.Place, uid, gid int) error {
	if err := changeable(p); err != nil {
		return err
	}
	return atomicfile.Failed(p, p.Chown(uid, gid))
}

// changeable refuses what has no permissions of its own to change: special files
// and the allowed directories.
func changeable(p place.Place) error {
	fi, err := p.Stat()
	if err != nil {
		return err
	}
	if p.Guard.HoldsRoot(p.Abs) {
		return fault.New(fault.FSAccessDenied, "%s is an allowed directory or contains one, and its permissions and owner stay as they are", p.Abs)
	}
	return place.Ordinary(p.Abs, fi.Mode())
}
