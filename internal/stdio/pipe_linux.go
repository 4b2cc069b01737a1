package stdio

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// widen lets a pipe hold 1 MiB, so that a long reply is not written and read in
// turns of 64 KiB. A system that does not grant so much leaves it as it is.
func widen(w io.Writer) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	if raw, err := f.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}
