// Package zipfile reads and rewrites zip archives byte by byte: what is not
// changed stays as another program has written it, with its place in the order,
// its extra fields, comments, times and compressed bytes.
//
// Its errors have the codes ERR_UNARCHIVE_FAILED for what is damaged,
// ERR_UNSUPPORTED_ARCHIVE_FORMAT for a compression that is not supported, and
// [Bomb]; [ErrFormat] and [ErrTooMany] have none.
package zipfile

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Bomb is the code of archives that unpack to more than they say or may.
const Bomb fault.Code = "ZIP_BOMB_DETECTED"

var (
	// ErrFormat says that a file is no zip, or is damaged or truncated.
	ErrFormat = errors.New("no central directory")
	// ErrTooMany says that a zip has more entries than were asked for.
	ErrTooMany = errors.New("too many entries")
)

// Methods of compression.
const (
	Store   = 0
	Deflate = 8
)

// Flags of entries.
const (
	FlagEncrypted = 0x1
	FlagUTF8      = 0x800 // the name is UTF-8
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
	extraPKUnix   = 0x000d
	extraExtended = 0x5455
	extraUnix     = 0x5855

	byUnix = 3
)

var le = binary.LittleEndian

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

func appendField(b []byte, tag uint16, f []byte) []byte {
	b = le.AppendUint16(b, tag)
	b = le.AppendUint16(b, uint16(len(f)))
	return append(b, f...)
}

// modeOf is the type and permissions of an entry. Where the zip does not tell
// permissions they are 0666, of directories 0777.
func modeOf(rec []byte, name string) fs.FileMode {
	dir := strings.HasSuffix(name, "/") || strings.HasSuffix(name, `\`)
	attributes := le.Uint32(rec[38:])
	mode := fs.FileMode(0o666)
	switch {
	case byUnixOrMac(rec) && attributes>>16 != 0:
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
	case attributes&0x10 != 0 || dir:
		mode = fs.ModeDir | 0o777
	}
	if dir {
		mode = fs.ModeDir | mode.Perm()
	}
	return mode
}

func byUnixOrMac(rec []byte) bool { return rec[5] == byUnix || rec[5] == 19 }

// unixMode is mode as Unix numbers it, type included.
func unixMode(mode fs.FileMode) uint32 {
	switch {
	case mode.IsDir():
		return 0o040000 | uint32(mode.Perm())
	case mode&fs.ModeSymlink != 0:
		return 0o120777
	}
	return 0o100000 | uint32(mode.Perm())
}

// timeOf is when an entry was modified, by the extra field, and else by the
// date and clock of DOS in UTC.
func timeOf(date, clock uint16, extra []byte) time.Time {
	at := time.Date(int(date>>9)+1980, time.Month(date>>5&0xf), int(date&0x1f), int(clock>>11), int(clock>>5&0x3f), int(clock&0x1f)*2, 0, time.UTC)
	for tag, b := range fields(extra) {
		switch {
		case tag == extraExtended && len(b) >= 5 && b[0]&1 != 0:
			at = time.Unix(int64(int32(le.Uint32(b[1:]))), 0).UTC()
		case (tag == extraUnix || tag == extraPKUnix) && len(b) >= 8:
			at = time.Unix(int64(le.Uint32(b[4:])), 0).UTC()
		case tag == extraNTFS && len(b) >= 32 && le.Uint16(b[4:]) == 1:
			t := int64(le.Uint64(b[8:]))
			at = time.Unix(t/ticksPerSecond-secondsTo1970, t%ticksPerSecond*100).UTC()
		}
	}
	return at
}

// DOSTime is t in UTC as the headers of a zip have it, in steps of two seconds.
func DOSTime(t time.Time) (date, clock uint16) {
	t = t.UTC()
	switch {
	case t.Year() < 1980:
		t = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > 2107:
		t = time.Date(2107, 12, 31, 23, 59, 58, 0, time.UTC)
	}
	date = uint16(t.Day() + int(t.Month())<<5 + (t.Year()-1980)<<9)
	return date, uint16(t.Second()/2 + t.Minute()<<5 + t.Hour()<<11)
}

// ticks of 100 ns, since 1601, are how NTFS counts time.
const (
	ticksPerSecond = 10_000_000
	secondsTo1970  = 11_644_473_600
)

// TimeExtra is t to the second in the form that other programs read best: the
// extended timestamp, where its 32 bits suffice, else the one of NTFS; nil where
// neither has it.
func TimeExtra(t time.Time) []byte {
	at := t.Unix()
	if at >= math.MinInt32 && at <= math.MaxInt32 {
		b := make([]byte, 0, 9)
		b = le.AppendUint16(b, extraExtended)
		b = le.AppendUint16(b, 5)
		b = append(b, 1) // the time of modification alone
		return le.AppendUint32(b, uint32(int32(at)))
	}
	if at < -secondsTo1970 || at > math.MaxInt64/ticksPerSecond-secondsTo1970 {
		return nil
	}
	b := []byte{0, 0, 0, 0, 1, 0, 24, 0}
	for range 3 {
		b = le.AppendUint64(b, uint64(at+secondsTo1970)*ticksPerSecond)
	}
	return appendField(nil, extraNTFS, b)
}

// Decompress opens what is compressed by method in r. ok is false where the
// method is not supported.
func Decompress(r io.Reader, method uint16) (c io.ReadCloser, ok bool, err error) {
	switch method {
	case Store:
		return io.NopCloser(r), true, nil
	case Deflate:
		return codec.Inflate(r), true, nil
	case 12:
		c, err = codec.Bzip2(r)
	case 93:
		c, err = codec.Zstd(r)
	case 95:
		c, err = codec.Xz(r)
	default:
		return nil, false, nil
	}
	return c, true, err
}
