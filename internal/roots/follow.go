package roots

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// follow resolves the links of a clean absolute path as far as it exists; what
// does not exist is appended as it stands, and is not found where a link has it
// go on upwards from there. On an error the path returned is how far it came, so
// that the caller can tell inside from outside.
func (r *Roots) follow(path string) (string, error) {
	if d := r.holding(path); d != nil {
		return follow(d.abs, path, nil) // an allowed directory's own path has no links
	}
	return follow(filepath.VolumeName(path)+string(os.PathSeparator), path, nil)
}

// follow is that of Roots; real is how much of path has no links. Where visit is
// not nil it is called before each look into a directory.
func follow(real, path string, visit func(dir string)) (string, error) {
	rest := split(path[min(len(real), len(path)):])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." { // only link targets have it
			if fi, err := os.Lstat(real); err != nil || !fi.IsDir() {
				return real, cmp.Or(err, notDirectory(real, path))
			}
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		if visit != nil {
			visit(real)
		}
		fi, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			real = filepath.Join(append([]string{next}, rest...)...)
			if !slices.Contains(rest, "..") {
				return real, nil
			}
			return real, &fs.PathError{Op: "lstat", Path: path, Err: fs.ErrNotExist}
		case err != nil:
			if parent, perr := os.Lstat(real); perr == nil && !parent.IsDir() {
				err = notDirectory(real, path)
			}
			return next, err
		case fi.Mode()&fs.ModeSymlink == 0:
			real = next
			continue
		}
		if links++; links > maxLinks {
			return next, fault.New(fault.FSPathResolution, "%s: too many symbolic links; they may form a loop", path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return next, err
		}
		if filepath.IsAbs(target) {
			real = filepath.VolumeName(target) + string(os.PathSeparator)
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = append(split(target), rest...)
	}
	return real, nil
}

func notDirectory(abs, path string) error {
	return fault.New(fault.FSPathResolution, "%s is a file, so nothing lies below it (%s)", abs, path)
}

// split returns the elements of path without the empty ones and ".".
func split(path string) []string {
	var list []string
	for e := range strings.FieldsFuncSeq(path, func(c rune) bool { return c < utf8.RuneSelf && os.IsPathSeparator(uint8(c)) }) {
		if e != "." {
			list = append(list, e)
		}
	}
	return list
}

// foldCase tells whether names that differ only in case are usually one file.
const foldCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"
