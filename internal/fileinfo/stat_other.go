//go:build !linux && !darwin

package fileinfo

import (
	"io/fs"
)

// From converts what package os tells.
func From(fi fs.FileInfo) Info {
	return Info{Mode: fi.Mode(), Size: fi.Size(), Modified: fi.ModTime(), Created: created(fi), Accessed: accessed(fi), Changed: fi.ModTime(), Links: 1}
}
