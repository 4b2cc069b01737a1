package pack

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"

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
	file   *zip.File
	offset int64 // of the data; known once overlapping has been asked
}

const flagEncrypted = 1

// openZip reads the directory of a zip, of at most maxEntries.
func openZip(r io.ReaderAt, size int64) ([]*zipMember, error) {
	d, err := findDirectory(r, size)
	if err != nil {
		return nil, err
	}
	n, err := d.count(r, maxEntries)
	if err != nil {
		return nil, err
	}
	if n > maxEntries {
		return nil, tooMany()
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are judged here
		return nil, err
	}
	z.RegisterDecompressor(zip.Deflate, inflated)
	for method := range streamed {
		z.RegisterDecompressor(method, func(r io.Reader) io.ReadCloser {
			c, _ := Inflate(r, method)
			return c
		})
	}
	list := make([]*zipMember, len(z.File))
	for i, f := range z.File {
		m := &zipMember{file: f, member: member{name: readable(f.Name, true), mode: zipMode(f), modified: zipTime(f), where: -1}}
		m.size = int64(min(f.UncompressedSize64, 1<<62))
		m.open = func() (io.ReadCloser, error) { return openZipFile(f) }
		list[i] = m
	}
	return list, nil
}

func openZipFile(f *zip.File) (io.ReadCloser, error) {
	if f.Flags&flagEncrypted != 0 {
		return nil, encrypted(Shown(readable(f.Name, true)))
	}
	c, err := f.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fault.Hide(fault.Unarchive, err, "%s is compressed by method %d, which is not supported", Shown(readable(f.Name, true)), f.Method)
	}
	if err != nil {
		return nil, damaged(err)
	}
	return content{c}, nil
}

// zipMode is the mode of f. Where there is none it is that of new files.
func zipMode(f *zip.File) fs.FileMode {
	mode := f.Mode()
	if f.ExternalAttrs>>16 == 0 {
		mode = mode.Type() | 0o666
		if mode.IsDir() {
			mode |= 0o777
		}
	}
	return mode
}

// zipTime is when f was modified. The extended timestamp counts its seconds
// from 1970 with a sign, so it also tells of earlier times.
func zipTime(f *zip.File) time.Time {
	at := f.Modified
	for extra := f.Extra; len(extra) >= 4; {
		tag, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		extra = extra[4:]
		if n > len(extra) {
			break
		}
		switch {
		case tag == extraNTFS:
			return f.Modified
		case tag == extraExtended && n >= 5 && extra[0]&1 != 0:
			at = time.Unix(int64(int32(binary.LittleEndian.Uint32(extra[1:]))), 0)
		}
		extra = extra[n:]
	}
	return at
}

// overlapping reports the first member whose data is also that of another.
func overlapping(list []*zipMember) error {
	type extent struct {
		begin, end int64
		of         *zipMember
	}
	all := make([]extent, 0, len(list))
	for _, m := range list {
		if m.file.CompressedSize64 == 0 {
			continue
		}
		begin, err := m.file.DataOffset()
		if err != nil {
			return damaged(err)
		}
		m.offset = begin
		end := begin + int64(min(m.file.CompressedSize64, 1<<62))
		if end < begin {
			return damaged(io.ErrUnexpectedEOF)
		}
		all = append(all, extent{begin, end, m})
	}
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(all); i++ {
		if all[i].begin < all[i-1].end {
			return fault.New(fault.Unarchive, "the entries %s and %s overlap in the archive, as in archives made to fill disks; nothing was unpacked", Shown(all[i-1].of.name), Shown(all[i].of.name))
		}
	}
	return nil
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
	f := m.file
	if f.Method != zip.Store && f.Method != zip.Deflate || f.CompressedSize64 > smallPacked || f.UncompressedSize64 > smallSize {
		return nil, false, nil
	}
	packed := room(&s.raw, int(f.CompressedSize64))
	if n, err := r.ReadAt(packed, m.offset); n < len(packed) {
		return nil, true, damaged(cmp.Or(err, io.ErrUnexpectedEOF))
	}
	data = packed
	if f.Method == zip.Deflate && (len(packed) > 0 || f.UncompressedSize64 > 0) {
		data = room(&s.out, int(f.UncompressedSize64))
		if err := inflate(data, packed); err != nil {
			return nil, true, damaged(err)
		}
	}
	if uint64(len(data)) != f.UncompressedSize64 || crc32.ChecksumIEEE(data) != f.CRC32 {
		return nil, true, damaged(errContent)
	}
	return data, true, nil
}

// inflate decompresses the stream that src begins with to dst, which it must
// fill exactly.
func inflate(dst, src []byte) error {
	in := inflated(bytes.NewReader(src))
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

// An inflater decompresses one file at a time.
type inflater struct {
	in  *bufio.Reader
	out io.ReadCloser
}

var inflaters = sync.Pool{New: func() any {
	in := bufio.NewReaderSize(nil, 64<<10)
	return &inflater{in, flate.NewReader(in)}
}}

// inflated returns a reader of what is deflated in r.
func inflated(r io.Reader) io.ReadCloser {
	i := inflaters.Get().(*inflater)
	i.in.Reset(r)
	if err := i.out.(flate.Resetter).Reset(i.in, nil); err != nil {
		return failing{err}
	}
	return &inflating{i}
}

// inflating gives its inflater back when it is closed.
type inflating struct{ *inflater }

func (i *inflating) Read(b []byte) (int, error) {
	if i.inflater == nil {
		return 0, fs.ErrClosed
	}
	return i.out.Read(b)
}

func (i *inflating) Close() error {
	if i.inflater != nil {
		inflaters.Put(i.inflater)
		i.inflater = nil
	}
	return nil
}

// failing is a stream that cannot be opened.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
func (f failing) Close() error             { return nil }
