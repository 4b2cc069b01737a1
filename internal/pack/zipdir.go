package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Records at the end of a zip.
const (
	endRecord     = "PK\x05\x06"
	endRecordLen  = 22
	end64Record   = "PK\x06\x06"
	end64Len      = 56
	end64Locator  = "PK\x06\x07"
	end64LocLen   = 20
	fileRecord    = "PK\x01\x02"
	fileRecordLen = 46
	maxComment    = 1<<16 - 1
)

var errNoDirectory = errors.New("no central directory")

// A directory is where a zip says that its central directory is.
type directory struct {
	end    int64 // where it ends, by where it was found
	size   int64
	offset int64 // as written, without what may be in front of the zip
}

// findDirectory finds the central directory of a zip.
func findDirectory(r io.ReaderAt, size int64) (directory, error) {
	tail := make([]byte, min(size, endRecordLen+maxComment))
	if n, err := r.ReadAt(tail, size-int64(len(tail))); n < len(tail) {
		return directory{}, err
	}
	for at := bytes.LastIndex(tail, []byte(endRecord)); at >= 0; at = bytes.LastIndex(tail[:at], []byte(endRecord)) {
		rec := tail[at:]
		if len(rec) < endRecordLen || endRecordLen+int(binary.LittleEndian.Uint16(rec[20:])) > len(rec) {
			continue
		}
		d := directory{
			end:    size - int64(len(rec)),
			size:   int64(binary.LittleEndian.Uint32(rec[12:])),
			offset: int64(binary.LittleEndian.Uint32(rec[16:])),
		}
		if binary.LittleEndian.Uint16(rec[10:]) == 1<<16-1 || d.size == 1<<32-1 || d.offset == 1<<32-1 {
			d = d.large(r)
		}
		if d.size < 0 || d.offset < 0 || d.size > d.end || d.offset > d.end {
			return directory{}, errNoDirectory
		}
		return d, nil
	}
	return directory{}, errNoDirectory
}

// large replaces d by what the records for large zips say, if there are any.
func (d directory) large(r io.ReaderAt) directory {
	var loc [end64LocLen]byte
	if _, err := r.ReadAt(loc[:], d.end-end64LocLen); err != nil || string(loc[:4]) != end64Locator {
		return d
	}
	at := int64(binary.LittleEndian.Uint64(loc[8:]))
	var rec [end64Len]byte
	if at < 0 || at > d.end {
		return d
	}
	if _, err := r.ReadAt(rec[:], at); err != nil || string(rec[:4]) != end64Record {
		return d
	}
	return directory{end: at, size: int64(binary.LittleEndian.Uint64(rec[40:])), offset: int64(binary.LittleEndian.Uint64(rec[48:]))}
}

// maxDirectory is the most bytes of a central directory that are read.
const maxDirectory = 64 << 20

// count counts the entries of d up to most+1, wherever a reader might look for
// them.
func (d directory) count(r io.ReaderAt, most int) (int, error) {
	n := 0
	for _, from := range []int64{d.end - d.size, d.offset} {
		at, err := countFrom(r, from, most)
		if err != nil {
			return 0, err
		}
		n = max(n, at)
	}
	return n, nil
}

func countFrom(r io.ReaderAt, from int64, most int) (int, error) {
	in := io.NewSectionReader(r, from, maxDirectory)
	buf := make([]byte, 64<<10)
	have, n := 0, 0
	for {
		read, err := in.Read(buf[have:])
		have += read
		b := buf[:have]
		for len(b) >= fileRecordLen && string(b[:4]) == fileRecord {
			skip := fileRecordLen + int(binary.LittleEndian.Uint16(b[28:])) + int(binary.LittleEndian.Uint16(b[30:])) + int(binary.LittleEndian.Uint16(b[32:]))
			if n++; n > most {
				return n, nil
			}
			if skip > len(b) {
				if _, err := in.Seek(int64(skip-len(b)), io.SeekCurrent); err != nil {
					return n, err
				}
				b = nil
				break
			}
			b = b[skip:]
		}
		if len(b) >= fileRecordLen { // something else follows
			return n, nil
		}
		if err == io.EOF {
			if at, serr := in.Seek(0, io.SeekCurrent); serr == nil && at >= maxDirectory {
				return most + 1, nil
			}
			return n, nil
		}
		if err != nil {
			return n, err
		}
		have = copy(buf, b)
	}
}
