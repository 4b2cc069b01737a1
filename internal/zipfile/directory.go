package zipfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// maxDirectory is the most bytes of a central directory that are read.
const maxDirectory = 64 << 20

// A Directory is what a zip says of its entries, as it says it.
type Directory struct {
	Raw     []byte // from the central directory to the end of the file
	Comment []byte
	Trailer []byte  // what another program has put behind the end
	Entries []Entry // in the order of the directory

	start int64 // where Raw is in the file
	base  int64 // what offsets in it count from; more than 0 where something is in front of the zip
}

// An Entry is one of a zip.
type Entry struct {
	Name       string // see [entryname.Clean], backslashes taken for slashes; it is not judged yet
	Flags      uint16
	Method     uint16
	CRC        uint32
	Compressed int64 // bytes in the archive
	Size       int64 // bytes of content, as the archive declares it
	Begin      int64 // where its local header is in the file
	End        int64 // where something else begins; may be too small where entries overlap
	Mode       fs.FileMode
	Modified   time.Time
	Hidden     bool // a later entry has the same name

	rec []byte // the record in the directory
}

// IsDir reports whether the entry is a directory.
func (e *Entry) IsDir() bool { return e.Mode.IsDir() }

// IsLink reports whether the entry is a symbolic link, whose content is where it
// leads.
func (e *Entry) IsLink() bool { return e.Mode&fs.ModeSymlink != 0 }

// RawName is the name as the zip has it.
func (e *Entry) RawName() []byte {
	return e.rec[entryLen : entryLen+int(le.Uint16(e.rec[28:]))]
}

// Record is the record of the entry in the directory, as the zip has it.
func (e *Entry) Record() []byte { return e.rec }

// Extra is the extra field of the record, times and the like.
func (e *Entry) Extra() []byte {
	from := entryLen + int(le.Uint16(e.rec[28:]))
	return e.rec[from : from+int(le.Uint16(e.rec[30:]))]
}

// Comment is the comment of the entry.
func (e *Entry) Comment() []byte {
	return e.rec[len(e.rec)-int(le.Uint16(e.rec[32:])):]
}

// A Section is a part of a file, read as if it were all of it.
type Section struct {
	Bytes []byte
	Start int64 // where it is in the file
}

// ReadAt reads from the part; what lies outside is the end.
func (s Section) ReadAt(b []byte, at int64) (int, error) {
	if at < s.Start || at >= s.Start+int64(len(s.Bytes)) {
		return 0, io.EOF
	}
	n := copy(b, s.Bytes[at-s.Start:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Is reports whether r, of that size, ends like a zip.
func Is(r io.ReaderAt, size int64) bool {
	_, err := locate(r, size)
	return err == nil
}

// Read reads the directory of a zip of that size, which has at most that many
// entries: [ErrFormat], [ErrTooMany].
func Read(r io.ReaderAt, size int64, most int) (*Directory, error) {
	l, err := locate(r, size)
	if err != nil {
		return nil, err
	}
	if size-l.start > maxDirectory {
		return nil, fault.New(Bomb, "the list of entries of the archive takes %d bytes, more than the %d that are read", size-l.start, int64(maxDirectory))
	}
	raw := make([]byte, size-l.start)
	if n, err := r.ReadAt(raw, l.start); n < len(raw) {
		return nil, err
	}
	return parse(raw, l, most)
}

// Parse is [Read] of a zip of that size of which only [Directory.Raw] is at hand.
func Parse(raw []byte, size int64) (*Directory, error) {
	l, err := locate(Section{raw, size - int64(len(raw))}, size)
	if err != nil {
		return nil, err
	}
	return parse(raw, l, math.MaxInt)
}

// A location says where a central directory is.
type location struct {
	start, end, base int64
	count            uint64
	comment, trailer []byte
}

func locate(r io.ReaderAt, size int64) (l location, err error) {
	end := make([]byte, min(size, endLen+math.MaxUint16))
	n, err := r.ReadAt(end, size-int64(len(end)))
	if n < len(end) {
		// A section may be shorter than the longest end.
		t, ok := r.(Section)
		if !ok {
			return l, cmp.Or(err, ErrFormat)
		}
		end = t.Bytes
	}
	for at := bytes.LastIndex(end, []byte(endSign)); at >= 0; at = bytes.LastIndex(end[:at], []byte(endSign)) {
		rec := end[at:]
		if len(rec) < endLen || endLen+int(le.Uint16(rec[20:])) > len(rec) {
			continue
		}
		behind := endLen + int(le.Uint16(rec[20:]))
		l.comment, l.trailer = rec[endLen:behind], rec[behind:]
		l.end = size - int64(len(rec))
		l.count = uint64(le.Uint16(rec[10:]))
		length, offset := int64(le.Uint32(rec[12:])), int64(le.Uint32(rec[16:]))
		disks := le.Uint16(rec[4:]) | le.Uint16(rec[6:])
		if l.count == math.MaxUint16 || length == math.MaxUint32 || offset == math.MaxUint32 {
			length, offset, disks = l.large(r, length, offset, disks)
		}
		if disks != 0 && disks != math.MaxUint16 {
			return l, fault.New(fault.Unarchive, "the archive is one of several parts; join them into one archive first")
		}
		l.start = l.end - length
		l.base = l.start - offset
		if length < 0 || offset < 0 || l.start < 0 || l.base < 0 {
			return l, ErrFormat
		}
		if !signed(r, l.start, entrySign) && l.count > 0 && l.base > 0 && signed(r, offset, entrySign) {
			l.start, l.base = offset, 0 // something is between the directory and its end
		}
		return l, nil
	}
	return l, ErrFormat
}

// large takes in what the records for large zips say, if there are any.
func (l *location) large(r io.ReaderAt, length, offset int64, disks uint16) (int64, int64, uint16) {
	var loc [locatorLen]byte
	if n, _ := r.ReadAt(loc[:], l.end-locatorLen); n < len(loc) || string(loc[:4]) != locatorSign {
		return length, offset, disks
	}
	// Where something is in front of the zip the position is short by it; the
	// record is then right before the locator.
	for _, at := range []int64{int64(le.Uint64(loc[8:])), l.end - locatorLen - end64Len} {
		var rec [end64Len]byte
		if at < 0 || at > l.end {
			continue
		}
		if n, _ := r.ReadAt(rec[:], at); n < len(rec) || string(rec[:4]) != end64Sign {
			continue
		}
		l.end, l.count = at, le.Uint64(rec[32:])
		return int64(le.Uint64(rec[40:])), int64(le.Uint64(rec[48:])), le.Uint16(rec[16:]) | le.Uint16(rec[20:])
	}
	return length, offset, disks
}

func signed(r io.ReaderAt, at int64, sign string) bool {
	var b [4]byte
	n, _ := r.ReadAt(b[:], at)
	return n == len(b) && string(b[:]) == sign
}

func parse(raw []byte, l location, most int) (*Directory, error) {
	d := &Directory{Raw: raw, Comment: l.comment, Trailer: l.trailer, start: l.start, base: l.base}
	if l.end-l.start > int64(len(raw)) {
		return nil, ErrFormat
	}
	if l.count > uint64(len(raw)/entryLen) {
		return nil, ErrFormat
	}
	if l.count > uint64(most) {
		return nil, ErrTooMany
	}
	d.Entries = make([]Entry, 0, l.count)
	for b := raw[:l.end-l.start]; len(b) >= entryLen && string(b[:4]) == entrySign; {
		n := entryLen + int(le.Uint16(b[28:])) + int(le.Uint16(b[30:])) + int(le.Uint16(b[32:]))
		if n > len(b) {
			return nil, ErrFormat
		}
		if len(d.Entries) == most {
			return nil, ErrTooMany
		}
		e := Entry{rec: b[:n:n]}
		if err := e.parse(l.base); err != nil {
			return nil, err
		}
		d.Entries = append(d.Entries, e)
		b = b[n:]
	}
	if uint64(len(d.Entries)) != l.count && uint64(len(d.Entries))&math.MaxUint16 != l.count {
		return nil, ErrFormat
	}
	return d, d.arrange()
}

// parse reads the record of e.
func (e *Entry) parse(base int64) error {
	r := e.rec
	raw := string(e.RawName())
	e.Name = entryname.Clean(strings.ReplaceAll(entryname.Decode(raw, true), `\`, "/"))
	e.Flags, e.Method, e.CRC = le.Uint16(r[8:]), le.Uint16(r[10:]), le.Uint32(r[16:])
	csize, size, at := uint64(le.Uint32(r[20:])), uint64(le.Uint32(r[24:])), uint64(le.Uint32(r[entryOffset:]))
	for tag, b := range fields(e.Extra()) {
		if tag != extraZip64 {
			continue
		}
		for _, v := range []*uint64{&size, &csize, &at} {
			if *v == math.MaxUint32 && len(b) >= 8 {
				*v, b = le.Uint64(b), b[8:]
			}
		}
	}
	if csize > 1<<60 || size > 1<<60 || at > 1<<60 || le.Uint16(r[34:]) != 0 && le.Uint16(r[34:]) != math.MaxUint16 {
		return ErrFormat
	}
	e.Compressed, e.Size, e.Begin = int64(csize), int64(size), int64(at)+base
	e.Mode = modeOf(r, raw)
	e.Modified = timeOf(le.Uint16(r[14:]), le.Uint16(r[12:]), e.Extra())
	return nil
}

// arrange finds where entries end, and which of those of one name counts.
func (d *Directory) arrange() error {
	end := d.start
	order := d.byPlace()
	for n := len(order) - 1; n >= 0; n-- {
		e := &d.Entries[order[n]]
		if e.Begin < 0 || e.Begin > d.start {
			return ErrFormat
		}
		if n+1 < len(order) {
			if next := d.Entries[order[n+1]].Begin; next > e.Begin {
				end = next
			}
		}
		e.End = end
	}
	seen := make(map[string]struct{}, len(d.Entries))
	for i := len(d.Entries) - 1; i >= 0; i-- {
		e := &d.Entries[i]
		if _, later := seen[e.Name]; later {
			e.Hidden = true
			continue
		}
		seen[e.Name] = struct{}{}
	}
	return nil
}

// Overlap returns an entry whose content is also that of another, as in archives
// made to fill disks, with the other one, which is nil where it is the
// directory; it returns nil where there is none.
func (d *Directory) Overlap() (e, other *Entry) {
	order := d.byPlace()
	for n, i := range order {
		e, end, other := &d.Entries[i], d.start, (*Entry)(nil)
		if n+1 < len(order) {
			other = &d.Entries[order[n+1]]
			end = other.Begin
		}
		if e.Begin+localLen+int64(len(e.RawName()))+e.Compressed > end {
			return e, other
		}
	}
	return nil, nil
}

// byPlace lists the entries in the order in which they are in the file.
func (d *Directory) byPlace() []int {
	order := make([]int, len(d.Entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.Entries[a].Begin, d.Entries[b].Begin) })
	return order
}

// Hash identifies the zip by its directory, which has the checksums of all that
// is in it.
func (d *Directory) Hash() string {
	sum := sha256.Sum256(d.Raw)
	return hex.EncodeToString(sum[:])
}

// Total is how many files and links there are of those that count, and how many
// bytes they unpack to by their own account.
func (d *Directory) Total() (files int, bytes int64) {
	for i := range d.Entries {
		if e := &d.Entries[i]; !e.IsDir() && !e.Hidden {
			files++
			bytes += e.Size
		}
	}
	return files, bytes
}

// Index maps names to the entries that count, but for one that is the top
// itself.
func (d *Directory) Index() map[string]int {
	m := make(map[string]int, len(d.Entries))
	for i := range d.Entries {
		if !d.Entries[i].Hidden && d.Entries[i].Name != "" {
			m[d.Entries[i].Name] = i
		}
	}
	return m
}
