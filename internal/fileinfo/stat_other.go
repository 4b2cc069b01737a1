//go:build !linux && !darwin

package fileinfo

import (
	"io/fs"
	"os"
)

// At describes name below root; dir and base are for systems with a call of
// their own for it.
func At(root *os.Root, _ *os.File, name, _ string) (Info, error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return From(fi), nil
}

// From converts what package os tells.
func From(fi fs.FileInfo) Info {
	return Info{Mode: fi.Mode(), Size: fi.Size(), Modified: fi.ModTime(), Created: created(fi), Accessed: accessed(fi), Changed: fi.ModTime(), Links: 1}
}
