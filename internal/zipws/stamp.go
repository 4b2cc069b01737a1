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
}

func stampOf(fi fs.FileInfo) stamp {
	i := fileinfo.From(fi)
	return stamp{i.ID.Inode, fi.Size(), fi.ModTime().UnixNano(), changeTime(fi)}
}

const stampSize = 32

func appendStamps(b []byte, list []stamp) []byte {
	for _, s := range list {
		b = binary.LittleEndian.AppendUint64(b, s.Inode)
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Size))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Modified))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Changed))
	}
	return b
}

func parseStamps(b []byte) []stamp {
	list := make([]stamp, len(b)/stampSize)
	for i := range list {
		at := b[i*stampSize:]
		word := func(n int) uint64 { return binary.LittleEndian.Uint64(at[8*n:]) }
		list[i] = stamp{word(0), int64(word(1)), int64(word(2)), int64(word(3))}
	}
	return list
}
