//go:build linux || darwin

package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

// accessACL is the attribute in which Linux keeps a file's access list.
const accessACL = "system.posix_acl_access"

// keep gives f the owner, access list and extended attributes of old, the file
// called name that it will replace, as far as the system allows, and reports
// whether the owner is the same.
func (d *Dir) keep(f *os.File, name string, old *fileinfo.Info) bool {
	same := true
	if now, err := fileinfo.OfFile(f); err != nil || now.UID != old.UID || now.GID != old.GID {
		if same = f.Chown(int(old.UID), int(old.GID)) == nil; !same {
			f.Chown(-1, int(old.GID)) // a group of ours may still be possible
		}
	}
	if from, _, err := d.Child(name).Open(); err == nil {
		keepAttributes(f, from)
		from.Close()
	}
	return same
}

// CopyOwner gives to the owner, access list and extended attributes of from, as
// far as the system allows.
func CopyOwner(to, from *os.File) {
	if i, err := fileinfo.OfFile(from); err == nil && to.Chown(int(i.UID), int(i.GID)) != nil {
		to.Chown(-1, int(i.GID))
	}
	keepAttributes(to, from)
}

// keepAttributes copies the extended attributes of the open file from to f.
func keepAttributes(f, from *os.File) {
	// One inherited from the directory would otherwise stay.
	unix.Fremovexattr(int(f.Fd()), accessACL)
	for _, name := range attributes(int(from.Fd())) {
		if strings.HasPrefix(name, "security.") && name != "security.selinux" {
			continue // capabilities and signatures hold for the old content alone
		}
		if value, err := attribute(int(from.Fd()), name); err == nil {
			unix.Fsetxattr(int(f.Fd()), name, value, 0)
		}
	}
}

func attributes(fd int) []string {
	b, err := grow(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) })
	if err != nil {
		return nil
	}
	var names []string
	for name := range bytes.SplitSeq(b, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	return names
}

func attribute(fd int, name string) ([]byte, error) {
	return grow(func(b []byte) (int, error) { return unix.Fgetxattr(fd, name, b) })
}

// grow calls read with larger buffers until what it reads fits.
func grow(read func([]byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 4 {
		b := make([]byte, size)
		n, err := read(b)
		if errors.Is(err, unix.ERANGE) && size < 1<<20 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return b[:n], nil
	}
}

func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// syncDir makes the names in a directory durable where the file system can.
func syncDir(f *os.File) error {
	if err := f.Sync(); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
