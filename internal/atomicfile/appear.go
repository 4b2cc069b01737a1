package atomicfile

import (
	"errors"
	"io/fs"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Appear gives what was made as temp in d the name under which it is to be
// found, at the place at. ERR_FS_ALREADY_EXISTS where that is taken by now.
func Appear(d *Dir, temp, name string, at place.Place) error {
	err := Rename(d, temp, d, name, false)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.FSAlreadyExists, "%s was created by someone else meanwhile; look at it and try again", at.Abs)
	}
	return Failed(at, err)
}
