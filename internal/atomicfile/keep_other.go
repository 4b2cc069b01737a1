//go:build !linux && !darwin

package atomicfile

import (
	"os"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

// keep has nothing to do here: files take what their directory hands down.
func (d *Dir) keep(*os.File, string, *fileinfo.Info) bool { return true }

// CopyOwner has nothing to do here, for the same reason.
func CopyOwner(to, from *os.File) {}

// syncDir has no counterpart here.
func syncDir(*os.File) error { return nil }
