//go:build unix

package logfile

import (
	"os"
	"syscall"
)

// openOwn opens path without following a link and without waiting for the
// other end of a FIFO.
func openOwn(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}
