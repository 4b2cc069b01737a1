//go:build !linux

package fileinfo

import "os"

// At describes name below root; dir and base are for systems with a call of
// their own for it.
func At(root *os.Root, _ *os.File, name, _ string) (Info, error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return From(fi), nil
}
