//go:build !linux

package walk

import "os"

// readDir returns what is in the open directory f, in no order.
func readDir(f *os.File) ([]Entry, error) {
	read, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	list := make([]Entry, len(read))
	for i, e := range read {
		list[i] = Entry{e.Name(), e.Type()}
	}
	return list, nil
}
