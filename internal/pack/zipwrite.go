package pack

//lint:file-ignore SA1019 raw entries take their dates and 32-bit sizes from the fields that are deprecated for other uses.

import (
	"archive/zip"
	"bufio"
	"cmp"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
)

const (
	flagDescriptor = 0x8 // sizes follow the data
	version20      = 20  // directories and deflate
	version45      = 45  // 64-bit sizes
	byUnix         = 3 << 8

	writeBuffer = 256 << 10
)

// A zipWriter writes a zip archive.
type zipWriter struct {
	*stock
	buf *bufio.Writer
	zip *zip.Writer
}

func newZipWriter(f *os.File, s *stock) *zipWriter {
	b := bufio.NewWriterSize(f, writeBuffer)
	return &zipWriter{s, b, zip.NewWriter(b)}
}

// A piece is a finished entry: its header and where its data is in a slab.
type piece struct {
	head       *zip.FileHeader
	begin, end int
}

func (z *zipWriter) small(list []entry) error {
	pieces := make([]piece, 0, len(list))
	return z.packSmall(list, func(to *slab, entries iter.Seq[*entry]) error {
		for e := range entries {
			p, ok, err := z.piece(e, to)
			if err != nil {
				return err
			}
			if ok {
				pieces = append(pieces, p)
			}
		}
		return nil
	}, func(made *slab) error {
		for _, p := range pieces {
			w, err := z.zip.CreateRaw(p.head)
			if err != nil {
				return err
			}
			if p.begin == p.end {
				continue
			}
			if _, err := w.Write(made.out.Bytes()[p.begin:p.end]); err != nil {
				return err
			}
		}
		z.count(len(pieces))
		return nil
	})
}

// piece makes the entry e in s. It reports false for a file that cannot be
// read.
func (z *zipWriter) piece(e *entry, s *slab) (piece, bool, error) {
	h := zipHeader(e.name, e.info)
	begin := s.out.Len()
	switch {
	case e.info.IsDir():
		h.Name += "/"
		return piece{head: h}, true, nil
	case e.link != "":
		s.out.WriteString(e.link)
		settle(h, crc32.ChecksumIEEE([]byte(e.link)), int64(len(e.link)), int64(len(e.link)))
		return piece{h, begin, s.out.Len()}, true, nil
	}
	data, info, ok := z.readSmall(e, s)
	if !ok {
		return piece{}, false, nil
	}
	h = zipHeader(e.name, info)
	if len(data) > 0 {
		h.Method = zip.Deflate
		if err := deflate(&s.out, nil, data, true); err != nil {
			return piece{}, false, err
		}
	}
	if s.out.Len()-begin >= len(data) { // it does not get smaller
		h.Method = zip.Store
		s.out.Truncate(begin)
		s.out.Write(data)
	}
	settle(h, crc32.ChecksumIEEE(data), int64(s.out.Len()-begin), int64(len(data)))
	return piece{h, begin, s.out.Len()}, true, nil
}

// readSmall reads the file e, which was small when it was met, and describes it
// as it was opened. What cannot be read, or has become large, is skipped.
func (s *stock) readSmall(e *entry, to *slab) ([]byte, fileinfo.Info, bool) {
	f, fi, err := e.open()
	if err != nil {
		s.tally.skip(e.abs())
		return nil, fileinfo.Info{}, false
	}
	defer f.Close()
	to.raw.Reset()
	to.raw.Grow(int(min(max(fi.Size(), 0), blockSize)) + 1024)
	_, err = to.raw.ReadFrom(io.LimitReader(f, 2*blockSize+1))
	if err != nil || to.raw.Len() > 2*blockSize {
		s.tally.skip(e.abs())
		return nil, fileinfo.Info{}, false
	}
	if int64(to.raw.Len()) != fi.Size() {
		s.changed()
	}
	return to.raw.Bytes(), fileinfo.From(fi), true
}

func (z *zipWriter) large(e entry) error {
	f, fi, err := e.open()
	if err != nil {
		z.tally.skip(e.abs())
		return nil
	}
	defer f.Close()
	h := zipHeader(e.name, fileinfo.From(fi))
	h.Method = zip.Deflate
	h.Flags |= flagDescriptor
	var w io.Writer
	if err := z.put(nil, func() (err error) {
		w, err = z.zip.CreateRaw(h)
		return err
	}); err != nil {
		return err
	}
	var sum uint32
	var out, in int64
	_, err = blocks(z.line, f, -1, func(raw, deflated []byte) error {
		sum = crc32.Update(sum, crc32.IEEETable, raw)
		in += int64(len(raw))
		out += int64(len(deflated))
		_, err := w.Write(deflated)
		return err
	})
	if err != nil {
		return cmp.Or(z.ctx.Err(), unread(e, err))
	}
	return z.put(nil, func() error {
		if in != fi.Size() {
			z.changed()
		}
		n, err := w.Write(endOfStream)
		settle(h, sum, out+int64(n), in)
		z.count(1)
		return err
	})
}

func (z *zipWriter) end() error {
	if err := z.zip.Close(); err != nil {
		return err
	}
	return z.buf.Flush()
}

// settle fills in what is known once the data is.
func settle(h *zip.FileHeader, sum uint32, out, in int64) {
	h.CRC32 = sum
	h.CompressedSize64, h.UncompressedSize64 = uint64(out), uint64(in)
	h.CompressedSize, h.UncompressedSize = uint32(min(out, math.MaxUint32)), uint32(min(in, math.MaxUint32))
	if max(out, in) >= math.MaxUint32 {
		h.ReaderVersion = version45
	}
}

// zipHeader describes a file, directory or link.
func zipHeader(name string, i fileinfo.Info) *zip.FileHeader {
	h := &zip.FileHeader{Name: name, Method: zip.Store, ReaderVersion: version20, CreatorVersion: byUnix | version20, ExternalAttrs: unixMode(i.Mode) << 16}
	if i.IsDir() {
		h.ExternalAttrs |= 0x10 // as DOS says it
	}
	for _, c := range []byte(name) {
		if c >= 0x80 {
			h.Flags |= zipfile.FlagUTF8
		}
	}
	h.ModifiedDate, h.ModifiedTime = zipfile.DOSTime(i.Modified)
	h.Extra = zipfile.TimeExtra(i.Modified)
	return h
}

// unixMode is mode as Unix numbers it, type included.
func unixMode(mode fs.FileMode) uint32 {
	bits := fileinfo.Bits(mode)
	switch mode.Type() {
	case fs.ModeDir:
		return bits | 0o040000
	case fs.ModeSymlink:
		return bits | 0o120000
	}
	return bits | 0o100000
}
