package zipfile

import (
	"errors"
	"hash"
	"hash/crc32"
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A header is what is in front of the content of an entry.
type header struct {
	length      int64
	name, extra []byte
}

// header reads the local header of e.
func (e *Entry) header(r io.ReaderAt) (header, error) {
	name, extra, err := e.lengths(r)
	if err != nil {
		return header{}, err
	}
	b := make([]byte, name+extra)
	if n, err := r.ReadAt(b, e.Begin+localLen); n < len(b) {
		return header{}, e.damaged(err)
	}
	return header{localLen + int64(len(b)), b[:name], b[name:]}, nil
}

// lengths reads how long name and extra field of the local header are.
func (e *Entry) lengths(r io.ReaderAt) (name, extra int, err error) {
	var fixed [localLen]byte
	if n, err := r.ReadAt(fixed[:], e.Begin); n < len(fixed) || string(fixed[:4]) != localSign {
		return 0, 0, e.damaged(err)
	}
	name, extra = int(le.Uint16(fixed[26:])), int(le.Uint16(fixed[28:]))
	if e.Begin+localLen+int64(name+extra)+e.Compressed > e.End {
		return 0, 0, e.damaged(nil)
	}
	return name, extra, nil
}

// Data is where the content of e is in r. Its local header may have another name
// than the directory.
func (e *Entry) Data(r io.ReaderAt) (offset int64, err error) {
	name, extra, err := e.lengths(r)
	return e.Begin + localLen + int64(name+extra), err
}

func (e *Entry) damaged(cause error) error {
	return fault.Hide(fault.Unarchive, cause, "the content of %s is damaged or truncated in the archive", entryname.Shown(e.Name))
}

// Open opens the content of e, whose local header has the name that the
// directory has. It ends with an error unless it is what the archive says: no
// longer, no shorter, and of the same checksum.
func (e *Entry) Open(r io.ReaderAt) (io.ReadCloser, error) {
	h, err := e.header(r)
	if err != nil {
		return nil, err
	}
	if string(h.name) != string(e.RawName()) {
		return nil, fault.New(fault.Unarchive, "the entry %s has another name, or none, where its content is; the archive is damaged or made to deceive", entryname.Shown(e.Name))
	}
	return e.OpenAt(r, e.Begin+h.length)
}

// OpenAt is [Entry.Open] of what [Entry.Data] has found.
func (e *Entry) OpenAt(r io.ReaderAt, offset int64) (io.ReadCloser, error) {
	c, ok, err := Decompress(io.NewSectionReader(r, offset, e.Compressed), e.Method)
	if !ok {
		return nil, fault.New(fault.ArchiveFormat, "%s is compressed by method %d, which is not supported", entryname.Shown(e.Name), e.Method)
	}
	if err != nil {
		return nil, e.damaged(err)
	}
	return &verified{e: e, c: c, sum: crc32.NewIEEE(), left: e.Size}, nil
}

// verified is the content of an entry, checked while it is read.
type verified struct {
	e    *Entry
	c    io.ReadCloser
	sum  hash.Hash32
	left int64
}

func (v *verified) Close() error { return v.c.Close() }

func (v *verified) Read(b []byte) (int, error) {
	n, err := v.c.Read(b)
	if int64(n) > v.left {
		return 0, fault.New(Bomb, "%s unpacks to more than the %d bytes that the archive says, as in archives made to fill disks", entryname.Shown(v.e.Name), v.e.Size)
	}
	v.left -= int64(n)
	v.sum.Write(b[:n])
	switch {
	case err == io.EOF && (v.left > 0 || v.sum.Sum32() != v.e.CRC):
		err = v.e.damaged(nil)
	case err != nil && err != io.EOF:
		if coded := new(fault.Error); !errors.As(err, &coded) {
			err = v.e.damaged(err)
		}
	}
	return n, err
}
