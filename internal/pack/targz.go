package pack

import (
	"archive/tar"
	"bufio"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

// gzipHead begins a gzip stream: deflate, no name, no time, made on Unix.
var gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3}

// A tarGzWriter writes a tar in one gzip stream, whose blocks are compressed at
// the same time.
type tarGzWriter struct {
	*stock
	buf  *bufio.Writer
	sum  uint32
	size uint32 // modulo its range, as gzip has it
}

func newTarGzWriter(f *os.File, s *stock) *tarGzWriter {
	t := &tarGzWriter{stock: s, buf: bufio.NewWriterSize(f, writeBuffer)}
	t.buf.Write(gzipHead) // an error stays until Flush
	return t
}

// write adds a piece of the tar, which was compressed to deflated.
func (t *tarGzWriter) write(raw, deflated []byte) error {
	t.sum = crc32.Update(t.sum, crc32.IEEETable, raw)
	t.size += uint32(len(raw))
	_, err := t.buf.Write(deflated)
	return err
}

func (t *tarGzWriter) small(list []entry) error {
	n := 0
	return t.packSmall(list, func(to *slab, entries iter.Seq[*entry]) error {
		read := getSlab()
		defer read.put()
		out := tar.NewWriter(&to.raw)
		for e := range entries {
			ok, err := t.entry(out, e, read)
			if err != nil {
				return err
			}
			if ok {
				n++
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		return deflate(&to.out, nil, to.raw.Bytes(), false)
	}, func(made *slab) error {
		t.count(n)
		return t.write(made.raw.Bytes(), made.out.Bytes())
	})
}

// entry writes the entry e to out. It reports false for a file that cannot be
// read.
func (t *tarGzWriter) entry(out *tar.Writer, e *entry, read *slab) (bool, error) {
	if !e.info.Mode.IsRegular() {
		return true, out.WriteHeader(tarHeader(e, e.info))
	}
	data, info, ok := t.readSmall(e, read)
	if !ok {
		return false, nil
	}
	info.Size = int64(len(data))
	if err := out.WriteHeader(tarHeader(e, info)); err != nil {
		return false, err
	}
	_, err := out.Write(data)
	return true, err
}

func (t *tarGzWriter) large(e entry) error {
	f, fi, err := e.open()
	if err != nil {
		t.tally.skip(e.abs())
		return nil
	}
	defer f.Close()
	info := fileinfo.From(fi)
	s := getSlab()
	if err := tar.NewWriter(&s.raw).WriteHeader(tarHeader(&e, info)); err != nil {
		return err
	}
	if err := t.block(s); err != nil {
		return err
	}
	read, err := blocks(t.line, f, info.Size, t.write)
	if err != nil {
		return cmp.Or(t.ctx.Err(), unread(e, err))
	}
	if read < info.Size || !atEnd(f) {
		t.changed()
	}
	// A file that was cut meanwhile is filled up with zeros, to the size in its
	// header and then to whole blocks.
	for missing := info.Size - read + padding(info.Size); missing > 0; {
		s := getSlab()
		n := min(missing, blockSize)
		s.raw.Write(make([]byte, n))
		if err := t.block(s); err != nil {
			return err
		}
		missing -= n
	}
	return t.put(nil, func() error {
		t.count(1)
		return nil
	})
}

// atEnd reports whether nothing more is in f.
func atEnd(f *os.File) bool {
	var b [1]byte
	_, err := f.Read(b[:])
	return err == io.EOF
}

func padding(size int64) int64 { return -size & (tarBlock - 1) }

// block puts what is in s.raw on the line.
func (t *tarGzWriter) block(s *slab) error {
	return t.put(func() error { return deflate(&s.out, nil, s.raw.Bytes(), false) }, func() error {
		defer s.put()
		return t.write(s.raw.Bytes(), s.out.Bytes())
	})
}

func (t *tarGzWriter) end() error {
	s := getSlab()
	defer s.put()
	s.raw.Write(make([]byte, 2*tarBlock))
	if err := deflate(&s.out, nil, s.raw.Bytes(), true); err != nil {
		return err
	}
	if err := t.write(s.raw.Bytes(), s.out.Bytes()); err != nil {
		return err
	}
	tail := binary.LittleEndian.AppendUint32(nil, t.sum)
	tail = binary.LittleEndian.AppendUint32(tail, t.size)
	t.buf.Write(tail) // an error stays until Flush
	return t.buf.Flush()
}

// tarHeader describes a file, directory or link. Times are to the second, which
// all programs read.
func tarHeader(e *entry, i fileinfo.Info) *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: i.Size, Mode: int64(fileinfo.Bits(i.Mode)), ModTime: time.Unix(i.Modified.Unix(), 0), Uid: int(i.UID), Gid: int(i.GID)}
	switch i.Mode.Type() {
	case fs.ModeDir:
		h.Typeflag, h.Size = tar.TypeDir, 0
		h.Name += "/"
	case fs.ModeSymlink:
		h.Typeflag, h.Size = tar.TypeSymlink, 0
		h.Linkname = e.link
	}
	return h
}
