package roots

import (
	"os"
	"strconv"
	"strings"
)

// pathOf returns the path by which the system knows an open file.
func pathOf(f *os.File) (string, bool) {
	c, err := f.SyscallConn()
	if err != nil {
		return "", false
	}
	var path string
	cerr := c.Control(func(fd uintptr) { path, err = os.Readlink("/proc/self/fd/" + strconv.FormatUint(uint64(fd), 10)) })
	if cerr != nil || err != nil || !strings.HasPrefix(path, "/") {
		return "", false
	}
	return strings.TrimSuffix(path, " (deleted)"), true
}
