package place

import "os"

// A Base is an allowed directory that is open twice: as Root, and by a
// descriptor of its own, with which a system that can do so places and opens
// what lies below it in one call, however deep. Both are closed when nothing
// holds the Base any more.
type Base struct {
	root *os.Root
	file *os.File // nil where the system has no such call
}

// Root is the handle that the Base was made of.
func (b *Base) Root() *os.Root { return b.root }

// base returns p's Base, or nil where p is below a handle other than that of the
// allowed directory: its name would mean something else.
func (p Place) base() *Base {
	if p.Base == nil || p.Base.file == nil || p.Base.root != p.Root || p.Name == "." {
		return nil
	}
	return p.Base
}
