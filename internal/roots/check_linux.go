package roots

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pathOf returns the path by which the system knows an open file.
func pathOf(f *os.File) (string, bool) {
	defer runtime.KeepAlive(f)
	var buf [maxPath]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), buf[:])
	if err != nil || n == len(buf) || n == 0 || buf[0] != '/' {
		return "", false
	}
	return strings.TrimSuffix(string(buf[:n]), " (deleted)"), true
}
