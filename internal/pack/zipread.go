package pack

import (
	"bytes"
	"cmp"
	"errors"
	"hash/crc32"
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// maxEntries is how many entries an archive may have.
const maxEntries = 100_000

func tooMany() error {
	return fault.New(fault.LimitExceeded, "the archive has more than %d entries, which is the most that is read of one", maxEntries)
}

// A zipMember is a member of a zip, which can be opened at any time.
type zipMember struct {
	member
	*zipfile.Entry
}

// openZip reads the directory of a zip, of at most maxEntries. Where apart is
// set, members that share content are refused.
func openZip(r io.ReaderAt, size int64, apart bool) ([]*zipMember, error) {
	d, err := zipfile.Read(r, size, maxEntries)
	switch code, _ := fault.Of(err); {
	case errors.Is(err, zipfile.ErrTooMany) || err != nil && code == zipfile.Bomb:
		return nil, tooMany()
	case err != nil:
		return nil, err
	}
	if a, b := d.Overlap(); apart && b != nil {
		return nil, fault.New(fault.Unarchive, "the entries %s and %s overlap in the archive, as in archives made to fill disks; nothing was unpacked", entryname.Shown(a.Name), entryname.Shown(b.Name))
	}
	list := make([]*zipMember, len(d.Entries))
	for i := range d.Entries {
		e := &d.Entries[i]
		m := &zipMember{Entry: e, member: member{name: entryname.Decode(string(e.RawName()), true), mode: e.Mode, modified: e.Modified, size: e.Size, where: -1}}
		m.open = func() (io.ReadCloser, error) { return m.content(r) }
		list[i] = m
	}
	return list, nil
}

// content opens the content of m.
func (m *zipMember) content(r io.ReaderAt) (io.ReadCloser, error) {
	if m.Flags&zipfile.FlagEncrypted != 0 {
		return nil, encrypted(entryname.Shown(m.name))
	}
	offset, err := m.Data(r)
	if err != nil {
		return nil, damagedZip(err)
	}
	c, err := m.OpenAt(r, offset)
	if code, message := fault.Of(err); err != nil && code == fault.ArchiveFormat {
		return nil, fault.Hide(fault.Unarchive, err, "%s", message)
	}
	if err != nil {
		return nil, damagedZip(err)
	}
	return zipContent{c}, nil
}

// zipContent is content whose errors have the wording of damaged.
type zipContent struct{ io.ReadCloser }

func (c zipContent) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = damagedZip(err)
	}
	return n, err
}

// damagedZip is damaged of what package zipfile says of content.
func damagedZip(err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) {
		err = errContent
	}
	return damaged(err)
}

// errContent says that a member is not what its header says.
var errContent = errors.New("size or checksum does not match")

// The most bytes of a member that is unpacked in memory.
const (
	smallPacked = blockSize
	smallSize   = 4 * blockSize
)

// small reads the whole content of a member of which at least the declared
// sizes are small; it is valid as long as s is. It reports false for one that is
// not, or is compressed in an unusual way.
func (m *zipMember) small(r io.ReaderAt, s *slab) (data []byte, ok bool, err error) {
	if m.Method != zipfile.Store && m.Method != zipfile.Deflate || m.Compressed > smallPacked || m.Size > smallSize {
		return nil, false, nil
	}
	offset, err := m.Data(r)
	if err != nil {
		return nil, true, damagedZip(err)
	}
	packed := room(&s.raw, int(m.Compressed))
	if n, err := r.ReadAt(packed, offset); n < len(packed) {
		return nil, true, damaged(cmp.Or(err, io.ErrUnexpectedEOF))
	}
	data = packed
	if m.Method == zipfile.Deflate && (len(packed) > 0 || m.Size > 0) {
		data = room(&s.out, int(m.Size))
		if err := inflate(data, packed); err != nil {
			return nil, true, damaged(err)
		}
	}
	if int64(len(data)) != m.Size || crc32.ChecksumIEEE(data) != m.CRC {
		return nil, true, damaged(errContent)
	}
	return data, true, nil
}

// inflate decompresses the stream that src begins with to dst, which it must
// fill exactly.
func inflate(dst, src []byte) error {
	in := codec.Inflate(bytes.NewReader(src))
	defer in.Close()
	if _, err := io.ReadFull(in, dst); err != nil {
		return err
	}
	var more [1]byte
	switch _, err := io.ReadFull(in, more[:]); err {
	case io.EOF:
		return nil
	case nil:
		return errContent
	default:
		return err
	}
}

// room is memory of b for n bytes.
func room(b *bytes.Buffer, n int) []byte {
	b.Reset()
	b.Grow(n)
	return b.AvailableBuffer()[:n]
}
