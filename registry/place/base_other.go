//go:build !linux

package place

import (
	"errors"
	"io/fs"
	"os"
)

// NewBase returns the Base of the directory root.
func NewBase(root *os.Root) (*Base, error) { return &Base{root: root}, nil }

// FreeOfLinks reports whether name, a path without "..", exists below b without a
// link in it, or may be created so: then the directory that is to hold it
// exists. Where it is false, the path must be followed element by element.
func (b *Base) FreeOfLinks(string) bool { return false }

// OpenPath returns a descriptor of what p is, of the link itself where it ends in one,
// that serves for describing it alone, [errors.ErrUnsupported] where there is
// none.
func (p Place) OpenPath() (*os.File, error) { return nil, errors.ErrUnsupported }

func (b *Base) openRoot(string) (*os.Root, error) { return nil, errors.ErrUnsupported }

func (p Place) chmod(fs.FileMode) error { return errors.ErrUnsupported }

func decided(error) bool { return false }

func (b *Base) open(string, string, int, fs.FileMode) (*os.File, error) {
	return nil, errors.ErrUnsupported
}
