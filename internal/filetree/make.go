package filetree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Mkdir makes the directory p, where recursive is set with the directories it
// lies in, and reports whether it did: one that exists is as good.
func Mkdir(p place.Place, recursive bool) (created bool, err error) {
	fi, err := stat(p)
	if err == nil && fi == nil {
		if err = p.Mkdir(0o777, recursive); err == nil {
			return true, nil
		}
		if !recursive && errors.Is(err, fs.ErrNotExist) {
			return false, fault.New(fault.FSNotFound, "%s does not exist; set recursive to true to create it too", p.Parent().Abs)
		}
		if errors.Is(err, fs.ErrExist) { // someone else was faster
			fi, err = p.Stat()
		}
	}
	if err != nil {
		return false, atomicfile.Failed(p, err)
	}
	if !fi.IsDir() {
		return false, fault.New(fault.FSIsFile, "%s is a file; choose another name for the directory", p.Abs)
	}
	return false, nil
}

// Touch sets the access and modification times of p to now, or creates it as an
// empty file, with the directories it lies in, and reports whether it did that.
func Touch(w *atomicfile.Writer, p place.Place) (created bool, err error) {
	d, err := w.Open(p.Parent(), true)
	if err != nil {
		return false, err
	}
	defer d.Close()
	name := filepath.Base(p.Name)
	f, err := d.Root().OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		return true, atomicfile.Failed(p, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return false, atomicfile.Failed(p, err)
	}
	fi, err := d.Child(name).Stat()
	if err != nil {
		return false, err
	}
	if err := place.Ordinary(p.Abs, fi.Mode()); err != nil {
		return false, err
	}
	return false, atomicfile.Failed(p, setNow(d.Root(), name))
}
