package zipws

import (
	"errors"
	"hash"
	"hash/crc32"
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// header reads the local header of e: how long it is, and its extra field.
func (e *entry) header(r io.ReaderAt) (length int64, extra []byte, err error) {
	name := e.rawName()
	b := make([]byte, localLen+len(name))
	if n, err := r.ReadAt(b, e.at); n < len(b) {
		return 0, nil, e.damaged(err)
	}
	if string(b[:4]) != localSign || int(le.Uint16(b[26:])) != len(name) || string(b[localLen:]) != string(name) {
		return 0, nil, fault.New(ZipInvalid, "the entry %s has another name, or none, where its content is; the archive is damaged or made to deceive", pack.Shown(e.name))
	}
	extra = make([]byte, le.Uint16(b[28:]))
	if n, err := r.ReadAt(extra, e.at+int64(len(b))); n < len(extra) {
		return 0, nil, e.damaged(err)
	}
	length = int64(len(b) + len(extra))
	if e.at+length+e.csize > e.end {
		return 0, nil, e.damaged(nil)
	}
	return length, extra, nil
}

func (e *entry) damaged(cause error) error {
	return fault.Hide(ZipInvalid, cause, "the content of %s is damaged or truncated in the archive", pack.Shown(e.name))
}

// open opens the content of e. It ends with an error unless it is what the
// archive says: no longer, no shorter, and of the same checksum.
func (e *entry) open(r io.ReaderAt) (io.ReadCloser, error) {
	length, _, err := e.header(r)
	if err != nil {
		return nil, err
	}
	c, ok := pack.Inflate(io.NewSectionReader(r, e.at+length, e.csize), e.method)
	if !ok {
		return nil, fault.New(UnsupportedFormat, "%s is compressed by method %d, which is not supported", pack.Shown(e.name), e.method)
	}
	return &verified{e: e, c: c, sum: crc32.NewIEEE(), left: e.size}, nil
}

// verified is the content of an entry, checked while it is read.
type verified struct {
	e    *entry
	c    io.ReadCloser
	sum  hash.Hash32
	left int64
}

func (v *verified) Close() error { return v.c.Close() }

func (v *verified) Read(b []byte) (int, error) {
	n, err := v.c.Read(b)
	if int64(n) > v.left {
		return 0, fault.New(ZipBomb, "%s unpacks to more than the %d bytes that the archive says, as in archives made to fill disks", pack.Shown(v.e.name), v.e.size)
	}
	v.left -= int64(n)
	v.sum.Write(b[:n])
	switch {
	case err == io.EOF && (v.left > 0 || v.sum.Sum32() != v.e.crc):
		err = v.e.damaged(nil)
	case err != nil && err != io.EOF:
		if coded := new(fault.Error); !errors.As(err, &coded) {
			err = v.e.damaged(err)
		}
	}
	return n, err
}
