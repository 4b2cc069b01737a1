// Package fileinfo tells what the system knows of a file, birth time included,
// without following links.
package fileinfo

import (
	"io/fs"
	"os"
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
func (i Info) Octal() string {
	bits := Bits(i.Mode)
	b := [...]byte{'0', '0' + byte(bits>>9), '0' + byte(bits>>6&7), '0' + byte(bits>>3&7), '0' + byte(bits&7)}
	if bits < 0o1000 {
		return string(b[1:]) // its own zero leads
	}
	return string(b[:])
}

// Bits is the permissions of mode as Unix numbers them.
func Bits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for _, s := range special {
		if mode&s.flag != 0 {
			bits |= s.bit
		}
	}
	return bits
}

var special = [...]struct {
	flag fs.FileMode
	bit  uint32
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

// ParseMode reads permissions as Unix numbers them: three octal digits, or four
// with setuid, setgid and sticky bits in the first. Anything else is
// ERR_INVALID_PARAMETER.
func ParseMode(octal string) (fs.FileMode, error) {
	bits, err := strconv.ParseUint(octal, 8, 32)
	if err != nil || len(octal) < 3 || len(octal) > 4 {
		return 0, fault.New(fault.InvalidParameter, "mode is %.20q; give three or four octal digits, such as \"644\" or \"0755\"", octal)
	}
	mode := fs.FileMode(bits & 0o777)
	for _, s := range special {
		if bits&uint64(s.bit) != 0 {
			mode |= s.flag
		}
	}
	return mode, nil
}

// String is the permissions in the form "rwxr-xr-x".
func (i Info) String() string {
	s := [...]byte{'r', 'w', 'x', 'r', 'w', 'x', 'r', 'w', 'x'}
	for k := range s {
		if i.Mode&(1<<(len(s)-1-k)) == 0 {
			s[k] = '-'
		}
	}
	for _, m := range [...]struct {
		flag          fs.FileMode
		at            int
		with, without byte
	}{{fs.ModeSetuid, 2, 's', 'S'}, {fs.ModeSetgid, 5, 's', 'S'}, {fs.ModeSticky, 8, 't', 'T'}} {
		switch {
		case i.Mode&m.flag == 0:
		case s[m.at] == 'x':
			s[m.at] = m.with
		default:
			s[m.at] = m.without
		}
	}
	return string(s[:])
}

// ISO is the form of every timestamp in results: ISO 8601 in UTC with
// milliseconds.
func ISO(t time.Time) string {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Format("2006-01-02T15:04:05.000Z")
	}
	hour, minute, second := t.Clock()
	var b [len("0000-00-00T00:00:00.000Z")]byte
	put := func(at, width, v int) {
		for at += width - 1; width > 0; at, width, v = at-1, width-1, v/10 {
			b[at] = '0' + byte(v%10)
		}
	}
	copy(b[:], "0000-00-00T00:00:00.000Z")
	put(0, 4, year)
	put(5, 2, int(month))
	put(8, 2, day)
	put(11, 2, hour)
	put(14, 2, minute)
	put(17, 2, second)
	put(20, 3, t.Nanosecond()/1e6)
	return string(b[:])
}

// Of describes what p is, without opening it.
func Of(p place.Place) (Info, error) {
	if f, err := p.OpenPath(); err == nil {
		defer f.Close()
		if i, err := At(p.Root, f, p.Name, ""); err == nil {
			return i, nil
		}
	}
	var i Info
	err := p.In(func(dir *os.Root, name string) error {
		at, err := dir.Open(".")
		if err == nil {
			i, err = At(dir, at, name, name)
			at.Close()
		}
		if err != nil {
			var fi fs.FileInfo
			if fi, err = dir.Lstat(name); err == nil {
				i = From(fi)
			}
		}
		return err
	})
	return i, err
}

// OfFile describes an open file.
func OfFile(f *os.File) (Info, error) {
	fi, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	return From(fi), nil
}
