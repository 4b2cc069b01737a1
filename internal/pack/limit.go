package pack

import (
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const (
	maxRatio  = 200     // of what is written to the size of the archive
	ratioFrom = 1 << 30 // bytes from which on it counts
)

// A budget is how much an archive may grow to. It is counted while writing,
// since what archives say of their sizes is not to be trusted.
type budget struct {
	most    int64 // from the setting
	free    int64 // on the disk
	archive int64 // size of the archive
	written atomic.Int64
}

// add counts n bytes that are about to be written.
func (b *budget) add(n int64) error {
	all := b.written.Add(n)
	switch {
	case all > b.free:
		return fault.New(fault.LimitExceeded, "the archive unpacks to more than the %d bytes that are free on the disk; nothing was unpacked", b.free)
	case all > b.most:
		return fault.New(fault.LimitExceeded, "the archive unpacks to more than CONDUIT_MAX_UNARCHIVE_BYTES (%d); nothing was unpacked. Take a part of it with include", b.most)
	case all > ratioFrom && all/maxRatio > b.archive:
		return fault.New(fault.LimitExceeded, "the archive unpacks to more than %d times its own size, as archives made to fill disks do; nothing was unpacked", maxRatio)
	}
	return nil
}
