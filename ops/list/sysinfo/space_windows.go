package sysinfo

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// spaceOf asks by path, since Windows has no such call for handles; f keeps
// what it opened from being exchanged meanwhile.
func spaceOf(f *os.File) (space, error) {
	dir := f.Name()
	if fi, err := f.Stat(); err == nil && !fi.IsDir() {
		dir = filepath.Dir(dir)
	}
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return space{}, err
	}
	var s space
	if err := windows.GetDiskFreeSpaceEx(name, &s.Available, &s.Total, &s.Free); err != nil {
		return space{}, err
	}
	s.Used = s.Total - s.Free
	return s, nil
}
