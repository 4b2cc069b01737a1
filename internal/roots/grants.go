package roots

import (
	"path/filepath"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Allow makes path an allowed directory until Revoke, though it is among the
// server's own files, which otherwise are denied. What is allowed is the
// directory that is there now, by device and inode: another that takes its name
// later is not. Configured rules hold in it as everywhere. To allow it again
// changes nothing.
func (r *Roots) Allow(path string) error {
	d, err := r.allow(path)
	if err != nil {
		return err
	}
	d.grant, d.asked = true, filepath.Clean(path)
	r.grants.Lock()
	defer r.grants.Unlock()
	for i, have := range r.grants.dirs {
		if have.abs == d.abs {
			if _, err := have.handle(); err != nil {
				r.grants.dirs[i] = d
			}
			return nil
		}
	}
	r.grants.dirs = append(r.grants.dirs, d)
	return nil
}

// Revoke takes back what Allow did for path, which may be gone.
func (r *Roots) Revoke(path string) {
	r.grants.Lock()
	defer r.grants.Unlock()
	r.grants.dirs = slices.DeleteFunc(r.grants.dirs, func(d *dir) bool { return d.asked == filepath.Clean(path) })
}

// granted returns the directory of Allow that holds abs.
func (r *Roots) granted(abs string) *dir {
	r.grants.RLock()
	defer r.grants.RUnlock()
	for _, d := range r.grants.dirs {
		if place.Within(abs, d.abs) {
			if _, err := d.handle(); err == nil {
				return d
			}
		}
	}
	return nil
}
