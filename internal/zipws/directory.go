package zipws

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Records of a zip and where their fields are.
const (
	localSign = "PK\x03\x04"
	localLen  = 30

	entrySign   = "PK\x01\x02"
	entryLen    = 46
	entryOffset = 42

	endSign = "PK\x05\x06"
	endLen  = 22

	end64Sign = "PK\x06\x06"
	end64Len  = 56

	locatorSign = "PK\x06\x07"
	locatorLen  = 20

	extraZip64    = 0x0001
	extraNTFS     = 0x000a
	extraExtended = 0x5455
	extraUnix     = 0x5855

	flagEncrypted = 0x1
	flagUTF8      = 0x800

	store   = 0
	deflate = 8
)

// maxDirectory is the most bytes of a central directory that are read.
const maxDirectory = 64 << 20

var le = binary.LittleEndian

var errNoZip = errors.New("no central directory")

// A directory is what a zip says of its entries, as it says it.
type directory struct {
	raw     []byte // from the central directory to the end of the file
	start   int64  // where raw is in the file
	base    int64  // what offsets in it count from; more than 0 where something is in front of the zip
	comment []byte
	entries []entry // in the order of the directory
}

// An entry is one of a zip.
type entry struct {
	rec    []byte // the record in the directory
	name   string // see [pack.EntryName]
	flags  uint16
	method uint16
	crc    uint32
	csize  int64
	size   int64
	at     int64 // where its local header is in the file
	end    int64 // where something else begins
	mode   fs.FileMode
	mtime  time.Time
	hidden bool // a later entry has the same name
}

func (e *entry) isDir() bool  { return e.mode.IsDir() }
func (e *entry) isLink() bool { return e.mode&fs.ModeSymlink != 0 }

// rawName is the name as the zip has it.
func (e *entry) rawName() []byte {
	return e.rec[entryLen : entryLen+int(le.Uint16(e.rec[28:]))]
}

// extra is the extra field of the record.
func (e *entry) extra() []byte {
	from := entryLen + int(le.Uint16(e.rec[28:]))
	return e.rec[from : from+int(le.Uint16(e.rec[30:]))]
}

// remark is the comment of the entry.
func (e *entry) remark() []byte {
	return e.rec[len(e.rec)-int(le.Uint16(e.rec[32:])):]
}

// A tail is the end of a file, read as if it were all of it.
type tail struct {
	raw   []byte
	start int64
}

func (t tail) ReadAt(b []byte, at int64) (int, error) {
	if at < t.start || at >= t.start+int64(len(t.raw)) {
		return 0, io.EOF
	}
	n := copy(b, t.raw[at-t.start:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// readDirectory reads the directory of a zip of that size.
func readDirectory(r io.ReaderAt, size int64) (*directory, error) {
	l, err := locate(r, size)
	if err != nil {
		return nil, err
	}
	if size-l.start > maxDirectory {
		return nil, fault.New(ZipBomb, "the list of entries of the archive takes %d bytes, more than the %d that are read", size-l.start, int64(maxDirectory))
	}
	raw := make([]byte, size-l.start)
	if n, err := r.ReadAt(raw, l.start); n < len(raw) {
		return nil, err
	}
	return parseDirectory(raw, l)
}

// reopenDirectory is readDirectory of what was read before.
func reopenDirectory(raw []byte, size int64) (*directory, error) {
	t := tail{raw, size - int64(len(raw))}
	l, err := locate(t, size)
	if err != nil {
		return nil, err
	}
	return parseDirectory(raw, l)
}

// A location says where a central directory is.
type location struct {
	start, end, base int64
	count            uint64
	comment          []byte
}

func locate(r io.ReaderAt, size int64) (l location, err error) {
	end := make([]byte, min(size, endLen+math.MaxUint16))
	n, err := r.ReadAt(end, size-int64(len(end)))
	if n < len(end) {
		// A stored tail may be shorter than the longest end.
		t, ok := r.(tail)
		if !ok {
			return l, cmp.Or(err, errNoZip)
		}
		end = t.raw
	}
	for at := bytes.LastIndex(end, []byte(endSign)); at >= 0; at = bytes.LastIndex(end[:at], []byte(endSign)) {
		rec := end[at:]
		if len(rec) < endLen || endLen+int(le.Uint16(rec[20:])) > len(rec) {
			continue
		}
		l.comment = rec[endLen : endLen+int(le.Uint16(rec[20:]))]
		l.end = size - int64(len(rec))
		l.count = uint64(le.Uint16(rec[10:]))
		length, offset := int64(le.Uint32(rec[12:])), int64(le.Uint32(rec[16:]))
		disks := le.Uint16(rec[4:]) | le.Uint16(rec[6:])
		if l.count == math.MaxUint16 || length == math.MaxUint32 || offset == math.MaxUint32 {
			length, offset, disks = l.large(r, length, offset, disks)
		}
		if disks != 0 && disks != math.MaxUint16 {
			return l, fault.New(ZipInvalid, "the archive is one of several parts; join them into one archive first")
		}
		l.start = l.end - length
		l.base = l.start - offset
		if length < 0 || offset < 0 || l.start < 0 || l.base < 0 {
			return l, errNoZip
		}
		if !signed(r, l.start, entrySign) && l.count > 0 && l.base > 0 && signed(r, offset, entrySign) {
			l.start, l.base = offset, 0 // something is between the directory and its end
		}
		return l, nil
	}
	return l, errNoZip
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

func parseDirectory(raw []byte, l location) (*directory, error) {
	d := &directory{raw: raw, start: l.start, base: l.base, comment: l.comment}
	if l.end-l.start > int64(len(raw)) {
		return nil, errNoZip
	}
	if l.count > uint64(len(raw)/entryLen) {
		return nil, errNoZip
	}
	d.entries = make([]entry, 0, l.count)
	for b := raw[:l.end-l.start]; len(b) >= entryLen && string(b[:4]) == entrySign; {
		n := entryLen + int(le.Uint16(b[28:])) + int(le.Uint16(b[30:])) + int(le.Uint16(b[32:]))
		if n > len(b) {
			return nil, errNoZip
		}
		e := entry{rec: b[:n:n]}
		if err := e.parse(l.base); err != nil {
			return nil, err
		}
		d.entries = append(d.entries, e)
		b = b[n:]
	}
	if uint64(len(d.entries)) != l.count && uint64(len(d.entries))&math.MaxUint16 != l.count {
		return nil, errNoZip
	}
	return d, d.arrange()
}

// parse reads the record of e.
func (e *entry) parse(base int64) error {
	r := e.rec
	raw := string(e.rawName())
	e.name = pack.EntryName(raw, true)
	e.flags, e.method, e.crc = le.Uint16(r[8:]), le.Uint16(r[10:]), le.Uint32(r[16:])
	csize, size, at := uint64(le.Uint32(r[20:])), uint64(le.Uint32(r[24:])), uint64(le.Uint32(r[entryOffset:]))
	e.mtime = dosTime(le.Uint16(r[14:]), le.Uint16(r[12:]))
	for tag, b := range fields(e.extra()) {
		switch {
		case tag == extraZip64:
			for _, v := range []*uint64{&size, &csize, &at} {
				if *v == math.MaxUint32 && len(b) >= 8 {
					*v, b = le.Uint64(b), b[8:]
				}
			}
		case tag == extraExtended && len(b) >= 5 && b[0]&1 != 0:
			e.mtime = time.Unix(int64(int32(le.Uint32(b[1:]))), 0).UTC()
		case tag == extraUnix && len(b) >= 8:
			e.mtime = time.Unix(int64(le.Uint32(b[4:])), 0).UTC()
		case tag == extraNTFS && len(b) >= 32 && le.Uint16(b[4:]) == 1:
			const ticks, epoch = 10_000_000, 11_644_473_600
			t := int64(le.Uint64(b[8:]))
			e.mtime = time.Unix(t/ticks-epoch, t%ticks*100).UTC()
		}
	}
	if csize > 1<<60 || size > 1<<60 || at > 1<<60 || le.Uint16(r[34:]) != 0 && le.Uint16(r[34:]) != math.MaxUint16 {
		return errNoZip
	}
	e.csize, e.size, e.at = int64(csize), int64(size), int64(at)+base
	e.mode = modeOf(r, raw)
	return nil
}

// fields yields the parts of an extra field.
func fields(extra []byte) func(func(uint16, []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(extra) >= 4 {
			tag, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
			if 4+n > len(extra) || !yield(tag, extra[4:4+n]) {
				return
			}
			extra = extra[4+n:]
		}
	}
}

// modeOf is the type and permissions of an entry. Where the zip does not tell
// them they are those of new files.
func modeOf(rec []byte, name string) fs.FileMode {
	attributes := le.Uint32(rec[38:])
	var mode fs.FileMode
	if system := rec[5]; (system == 3 || system == 19) && attributes>>16 != 0 {
		mode = fs.FileMode(attributes >> 16 & 0o777)
		switch attributes >> 16 & 0o170000 {
		case 0o040000:
			mode |= fs.ModeDir
		case 0o120000:
			mode |= fs.ModeSymlink
		case 0, 0o100000:
		default:
			mode |= fs.ModeIrregular
		}
	} else {
		mode = 0o644
		if attributes&0x10 != 0 {
			mode = fs.ModeDir | 0o755
		}
	}
	if strings.HasSuffix(name, "/") {
		mode = fs.ModeDir | mode.Perm() | 0o700
	}
	return mode
}

func dosTime(date, clock uint16) time.Time {
	return time.Date(int(date>>9)+1980, time.Month(date>>5&0xf), int(date&0x1f), int(clock>>11), int(clock>>5&0x3f), int(clock&0x1f)*2, 0, time.UTC)
}

// arrange finds where entries end, and which of those of one name counts.
func (d *directory) arrange() error {
	order := d.byPlace()
	for n, i := range order {
		e := &d.entries[i]
		e.end = d.start
		if n+1 < len(order) {
			e.end = d.entries[order[n+1]].at
		}
		if e.at < 0 || e.at > d.start {
			return errNoZip
		}
		if e.at+localLen+int64(len(e.rawName()))+e.csize > e.end {
			return fault.New(ZipInvalid, "the entry %s overlaps what follows it, as in archives made to fill disks, or the archive is damaged", pack.Shown(e.name))
		}
	}
	seen := make(map[string]struct{}, len(d.entries))
	for i := len(d.entries) - 1; i >= 0; i-- {
		e := &d.entries[i]
		if _, later := seen[e.name]; later {
			e.hidden = true
			continue
		}
		seen[e.name] = struct{}{}
	}
	return nil
}

// byPlace lists the entries in the order in which they are in the file.
func (d *directory) byPlace() []int {
	order := make([]int, len(d.entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(max(d.entries[a].at-d.entries[b].at, -1), 1)) })
	return order
}

// hash identifies the zip by its directory, which has the checksums of all that
// is in it.
func (d *directory) hash() string {
	sum := sha256.Sum256(d.raw)
	return hex.EncodeToString(sum[:])
}

// check judges the entries before anything is unpacked. What is merely odd is
// told in warnings.
func (d *directory) check(s Settings) (warnings []string, err error) {
	if int64(len(d.entries)) > s.MaxFiles {
		return nil, fault.New(ZipBomb, "the archive has %d entries, more than CONDUIT_ZIP_MAX_FILE_COUNT (%d)", len(d.entries), s.MaxFiles)
	}
	var total int64
	kinds := make(map[string]bool, len(d.entries)) // whether it is a directory
	folded := make(map[string]string, len(d.entries))
	links, twice := 0, 0
	for i := range d.entries {
		e := &d.entries[i]
		bad := func(why string) error {
			return fault.New(ZipInvalid, "the archive has an entry whose name %s: %q; nothing was unpacked", why, pack.Shown(string(e.rawName())))
		}
		if e.name == "" && e.isDir() {
			continue // the top itself
		}
		if why := pack.BadName(e.name); why != "" {
			return nil, bad(why)
		}
		switch {
		case e.flags&flagEncrypted != 0:
			return nil, fault.New(Encrypted, "%s is encrypted, and encrypted archives are not opened; decrypt the archive first", pack.Shown(e.name))
		case e.mode&fs.ModeIrregular != 0:
			return nil, fault.New(ZipInvalid, "the archive has a device, FIFO or socket: %s; nothing was unpacked", pack.Shown(e.name))
		case e.size >= ratioFrom && e.size/maxRatio > e.csize:
			return nil, fault.New(ZipBomb, "%s unpacks to %d bytes from %d, more than %d times as much, as in archives made to fill disks", pack.Shown(e.name), e.size, e.csize, maxRatio)
		case e.hidden:
			twice++
			continue
		case e.isLink():
			links++
		}
		if total += e.size; total > s.MaxSize {
			return nil, fault.New(ZipBomb, "the archive unpacks to more than CONDUIT_ZIP_MAX_EXTRACTED_SIZE (%d bytes)", s.MaxSize)
		}
		kinds[e.name] = e.isDir()
		fold := strings.ToLower(norm.NFC.String(e.name))
		if other, ok := folded[fold]; ok && len(warnings) < 20 {
			warnings = append(warnings, "The names "+pack.Shown(other)+" and "+pack.Shown(e.name)+" are one on systems that ignore case or normalize Unicode.")
		}
		folded[fold] = e.name
	}
	for name := range kinds {
		for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
			if dir, ok := kinds[name[:i]]; ok && !dir {
				return nil, fault.New(ZipInvalid, "the archive has the entry %s inside %s, which is no directory in it; nothing was unpacked", pack.Shown(name), pack.Shown(name[:i]))
			}
		}
	}
	if twice > 0 {
		warnings = append(warnings, plural(twice, "entry has", "entries have")+" the name of a later one, which counts.")
	}
	if links > 0 && !s.Links {
		warnings = append(warnings, plural(links, "symbolic link is", "symbolic links are")+" left out of the workspace and kept in the archive (CONDUIT_ZIP_ALLOW_SYMLINKS).")
	}
	return warnings, nil
}

// size is the sum of the sizes of what counts.
func (d *directory) size() (files int, bytes int64) {
	for i := range d.entries {
		if e := &d.entries[i]; !e.isDir() && !e.hidden {
			files++
			bytes += e.size
		}
	}
	return files, bytes
}

// named maps names to the entries that count.
func (d *directory) named() map[string]int {
	m := make(map[string]int, len(d.entries))
	for i := range d.entries {
		if !d.entries[i].hidden && d.entries[i].name != "" {
			m[d.entries[i].name] = i
		}
	}
	return m
}
