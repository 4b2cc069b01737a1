package zipws

import (
	"encoding/binary"
	"io/fs"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

// A stamp tells whether a file was touched. The zero stamp is that of no file.
type stamp struct {
	Inode    uint64 `json:"inode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified_ns"`
	Changed  int64  `json:"changed_ns"`
	Mode     uint32 `json:"mode,omitempty"` // permissions, with modeKnown; 0 where an earlier version did not look
}

func stampOf(fi fs.FileInfo) stamp {
	i := fileinfo.From(fi)
	return stamp{i.ID.Inode, fi.Size(), fi.ModTime().UnixNano(), i.Changed.UnixNano(), modeKnown | uint32(fi.Mode().Perm())}
}

const modeKnown = 1 << 15

// is reports whether two stamps are of one file that nobody has touched.
func (s stamp) is(o stamp) bool {
	if s.Mode == 0 || o.Mode == 0 {
		s.Mode, o.Mode = 0, 0
	}
	return s == o
}

const (
	stampSize    = 40
	stampSizeOld = 32 // without the mode
)

func appendStamps(b []byte, list []stamp) []byte {
	for _, s := range list {
		b = binary.LittleEndian.AppendUint64(b, s.Inode)
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Size))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Modified))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Changed))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Mode))
	}
	return b
}

// parseStamps reads n stamps; it is nil where b has another number of them.
func parseStamps(b []byte, n int) []stamp {
	size := stampSize
	if len(b) == n*stampSizeOld {
		size = stampSizeOld
	}
	if len(b) != n*size {
		return nil
	}
	list := make([]stamp, n)
	for i := range list {
		at := b[i*size:]
		word := func(n int) uint64 { return binary.LittleEndian.Uint64(at[8*n:]) }
		list[i] = stamp{Inode: word(0), Size: int64(word(1)), Modified: int64(word(2)), Changed: int64(word(3))}
		if size == stampSize {
			list[i].Mode = uint32(word(4))
		}
	}
	return list
}
