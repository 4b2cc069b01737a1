// Package fileinfo tells what the system knows of a file, birth time included,
// without following links.
package fileinfo

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Info describes one file, directory or link.
type Info struct {
	Mode     fs.FileMode
	Size     int64
	Modified time.Time
	Created  time.Time // change time where the file system keeps no birth time
	Accessed time.Time
	Changed  time.Time // last change of content or attributes
	ID       ID
	Links    uint64 // names the file has
	UID, GID uint32
}

// An ID tells files apart: two names with one ID are one file.
type ID struct{ Device, Inode uint64 }

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.Mode.IsDir() }

// IsLink reports whether it is a symbolic link.
func (i Info) IsLink() bool { return i.Mode&fs.ModeSymlink != 0 }

// Type is "directory" or "file", as results tell it; special files and links
// whose target is not known count as files.
func (i Info) Type() string {
	if i.IsDir() {
		return "directory"
	}
	return "file"
}

// Octal is the permissions with a leading zero, such as "0644", setuid, setgid
// and sticky bits included ("04755").
func (i Info) Octal() string { return fmt.Sprintf("0%03o", Bits(i.Mode)) }

// Bits is the permissions of mode as Unix numbers them.
func Bits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

// ParseMode reads permissions as Unix numbers them: three octal digits, or four
// with setuid, setgid and sticky bits in the first. Anything else is
// ERR_INVALID_PARAMETER.
func ParseMode(octal string) (fs.FileMode, error) {
	bits, err := strconv.ParseUint(octal, 8, 32)
	if err != nil || len(octal) < 3 || len(octal) > 4 {
		return 0, fault.New(fault.InvalidParameter, "mode is %.20q; give three or four octal digits, such as \"644\" or \"0755\"", octal)
	}
	mode := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode, nil
}

// String is the permissions in the form "rwxr-xr-x".
func (i Info) String() string {
	s := []byte(i.Mode.Perm().String()[1:])
	mark := func(flag fs.FileMode, at int, with, without byte) {
		if i.Mode&flag == 0 {
			return
		}
		if s[at] == 'x' {
			s[at] = with
		} else {
			s[at] = without
		}
	}
	mark(fs.ModeSetuid, 2, 's', 'S')
	mark(fs.ModeSetgid, 5, 's', 'S')
	mark(fs.ModeSticky, 8, 't', 'T')
	return string(s)
}

// ISO is the form of every timestamp in results: ISO 8601 in UTC with
// milliseconds.
func ISO(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Of describes what p is, without opening it.
func Of(p place.Place) (Info, error) {
	if dir, err := p.Root.Open(filepath.Dir(p.Name)); err == nil {
		defer dir.Close()
		if i, err := At(p.Root, dir, p.Name, filepath.Base(p.Name)); err == nil {
			return i, nil
		}
	}
	fi, err := p.Root.Lstat(p.Name)
	if err != nil {
		return Info{}, p.Explain(err)
	}
	return From(fi), nil
}

// OfFile describes an open file.
func OfFile(f *os.File) (Info, error) {
	fi, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	return From(fi), nil
}
