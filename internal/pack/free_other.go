//go:build !linux && !darwin && !windows

package pack

import "os"

// freeSpace is how many bytes may still be written where the directory dir is;
// ok is false where the system does not tell.
func freeSpace(*os.File) (n int64, ok bool) { return 0, false }
