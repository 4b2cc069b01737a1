//go:build !unix

package fileinfo

import "io/fs"

// Own reports whether the file belongs to the user of this process. Where the
// system does not tell it does.
func Own(fs.FileInfo) bool { return true }
