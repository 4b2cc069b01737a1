package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// everywhere is the host of a person, who may use what the system lets them.
type everywhere struct{}

// Resolve places a path, below the deepest directory of it that exists.
func (everywhere) Resolve(path string) (place.Place, error) {
	if path == "" {
		return place.Place{}, fault.New(fault.FSBadPathInput, "the path is empty; name an archive")
	}
	asked, err := filepath.Abs(path)
	if err != nil {
		return place.Place{}, err
	}
	dir, rest := asked, ""
	for {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			if fi, serr := os.Stat(real); serr == nil && fi.IsDir() && rest != "" {
				root, err := os.OpenRoot(real)
				return place.Place{Root: root, Name: rest, Abs: filepath.Join(real, rest), Asked: asked}, err
			}
			dir = real
		} else if !errors.Is(err, fs.ErrNotExist) {
			return place.Place{}, err
		}
		if filepath.Dir(dir) == dir {
			return place.Place{}, fault.New(fault.FSIsDirectory, "%s is a directory; name an archive", path)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = filepath.Dir(dir)
	}
}

// Allow does nothing: there is nobody else to let in.
func (everywhere) Allow(string) error { return nil }

// Revoke does nothing.
func (everywhere) Revoke(string) {}
