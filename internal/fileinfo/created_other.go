//go:build !linux && !darwin && !windows

package fileinfo

import (
	"io/fs"
	"time"
)

func created(fi fs.FileInfo) time.Time { return fi.ModTime() }

func accessed(fi fs.FileInfo) time.Time { return fi.ModTime() }
