package zipws

import (
	"bytes"
	"context"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A sink takes a new archive. What was written may be overwritten.
type sink interface {
	io.Writer
	io.WriterAt
}

// counting is a sink that only counts.
type counting struct{}

func (counting) Write(b []byte) (int, error)            { return len(b), nil }
func (counting) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

// An item is an entry of the archive that is being made.
type item struct {
	old   *entry // whose attributes it has; nil for an added one
	whole *entry // of the present archive, whose bytes it is; nil for what is on disk
	node  node   // on disk

	at    int64  // set by the builder: where it begins
	rec   []byte // and its record
	stamp stamp  // and of what is on disk, as it was when it was read
}

// A builder writes a new archive from the present one and what is on disk.
type builder struct {
	ctx      context.Context
	from     *os.File // the present archive
	present  *directory
	comment  []byte
	contents *os.Root
	to       sink
	pos      int64
	progress func(done, total int64)
	step     func(string)
}

const (
	runChunk = 16 << 20               // bytes copied between looks at the context
	bigFile  = math.MaxUint32 - 1<<20 // bytes from which on a file gets 64-bit sizes
	byUnix   = 3
)

// run writes all of items, which are in the order of the directory, and returns
// how many bytes that makes.
func (b *builder) run(items []item) (int64, error) {
	first := b.present.start
	for i := range b.present.entries {
		first = min(first, b.present.entries[i].at)
	}
	if err := b.copy(0, first); err != nil { // what is in front of the zip
		return 0, err
	}
	order := make([]*item, len(items))
	for i := range items {
		order[i] = &items[i]
	}
	slices.SortStableFunc(order, func(a, b *item) int {
		switch {
		case a.old == nil || b.old == nil:
			return bits(a.old == nil) - bits(b.old == nil)
		case a.old.at != b.old.at:
			return bits(a.old.at > b.old.at)*2 - 1
		}
		return 0
	})
	for n := 0; n < len(order); {
		b.tell(n, len(order))
		if order[n].whole == nil {
			b.step("pack file")
			if err := b.pack(order[n]); err != nil {
				return 0, err
			}
			n++
			continue
		}
		// All that is in one stretch is copied at once.
		from := order[n].whole.at
		end := from
		begin := b.pos
		for ; n < len(order) && order[n].whole != nil && order[n].whole.at == end; n++ {
			w := order[n].whole
			end = w.end
			order[n].at = begin + w.at - from
			order[n].rec = moved(w, order[n].at-b.present.base)
		}
		b.step("copy entries")
		if err := b.copy(from, end); err != nil {
			return 0, err
		}
	}
	b.tell(len(order), len(order))
	b.step("finish archive")
	return b.finish(items)
}

func bits(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (b *builder) tell(done, total int) {
	if b.progress != nil {
		b.progress(int64(done), int64(total))
	}
}

func (b *builder) write(p []byte) error {
	n, err := b.to.Write(p)
	b.pos += int64(n)
	return err
}

// copy copies bytes of the present archive.
func (b *builder) copy(from, to int64) error {
	if _, err := b.from.Seek(from, io.SeekStart); err != nil {
		return err
	}
	f, real := b.to.(*os.File)
	for from < to {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		n := min(to-from, runChunk)
		if real {
			done, err := io.CopyN(f, b.from, n) // by the system where it can
			b.pos += done
			if err != nil {
				return err
			}
		} else {
			b.pos += n
		}
		from += n
	}
	return nil
}

// pack writes what is on disk as a new entry.
func (b *builder) pack(i *item) error {
	e := newEntry{b: b, item: i}
	i.at = b.pos
	if i.node.isDir() {
		return e.write(store, nil, 0, false)
	}
	if i.node.mode&fs.ModeSymlink != 0 {
		text, err := b.contents.Readlink(filepath.FromSlash(i.node.name))
		if err != nil {
			return err
		}
		i.stamp = i.node.stamp
		return e.write(store, bytes.NewReader([]byte(filepath.ToSlash(text))), int64(len(text)), true)
	}
	f, fi, err := inside(b.contents, i.node.name).OpenFileOnly()
	if err != nil {
		return explain(i.node.name, err)
	}
	defer f.Close()
	e.modified = fi.ModTime()
	method := uint16(deflate)
	if i.old != nil && i.old.method == store || fi.Size() == 0 {
		method = store
	}
	i.stamp = stampOf(fi)
	return e.write(method, stopping{b.ctx, f}, fi.Size(), false)
}

// A newEntry is one whose content is new.
type newEntry struct {
	b *builder
	*item
	modified time.Time

	name, local, central []byte // name and extra fields
	flags                uint16
	date, clock          uint16
	sum                  hash.Hash32
	size, csize          int64
	big                  bool // has 64-bit sizes in its local header
}

// write writes header and content. The header is completed in the end.
func (e *newEntry) write(method uint16, from io.Reader, size int64, link bool) error {
	if err := e.describe(); err != nil {
		return err
	}
	e.big = size >= bigFile
	e.sum = crc32.NewIEEE()
	head := e.localHeader(method)
	if err := e.b.write(head); err != nil {
		return err
	}
	begin := e.b.pos
	if from != nil {
		if err := e.content(method, from); err != nil {
			return err
		}
	}
	e.csize = e.b.pos - begin
	if !e.big && max(e.size, e.csize) >= math.MaxUint32 {
		return fault.New(SyncFailed, "%s grew while it was packed; nothing was changed, sync again", e.node.name)
	}
	if _, err := e.b.to.WriteAt(e.localHeader(method), e.at); err != nil {
		return err
	}
	e.rec = e.record(method, link)
	return nil
}

// through is a writer to the archive.
type through struct{ b *builder }

func (t through) Write(p []byte) (int, error) { return len(p), t.b.write(p) }

func (e *newEntry) content(method uint16, from io.Reader) error {
	var to io.Writer = through{e.b}
	end := func() error { return nil }
	if method == deflate {
		d, release := pack.Deflater(to)
		defer release()
		to, end = d, d.Close
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := fillBuffer(from, buf)
		if n > 0 {
			e.size += int64(n)
			e.sum.Write(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return end()
		}
		if err != nil {
			return err
		}
	}
}

// describe finds name, times and extra fields.
func (e *newEntry) describe() error {
	if e.modified.IsZero() {
		e.modified = e.node.mtime
	}
	e.date, e.clock = pack.DOSTime(e.modified)
	times := pack.TimeExtra(e.modified)
	if e.old == nil {
		name := e.node.name
		if e.node.isDir() {
			name += "/"
		}
		e.name, e.local, e.central = []byte(name), times, times
		for _, c := range e.name {
			if c >= 0x80 {
				e.flags = flagUTF8
			}
		}
		return nil
	}
	e.name, e.flags = e.old.rawName(), e.old.flags&flagUTF8
	e.central = renewed(e.old.extra(), times)
	e.local = e.central
	// The local header may have other fields; where it is not as expected, those
	// of the directory stand in.
	for i := range e.b.present.entries {
		if p := &e.b.present.entries[i]; p.at == e.old.at && bytes.Equal(p.rawName(), e.name) {
			if _, extra, err := p.header(e.b.from); err == nil {
				e.local = renewed(extra, times)
			}
			break
		}
	}
	return nil
}

// renewed is an extra field without sizes, whose times are replaced where it has
// some.
func renewed(extra, times []byte) []byte {
	var list []byte
	timed := false
	for tag, f := range fields(extra) {
		switch tag {
		case extraZip64:
		case extraExtended, extraNTFS, extraUnix:
			timed = true
		default:
			list = appendField(list, tag, f)
		}
	}
	if timed {
		list = append(list, times...)
	}
	return list
}

func appendField(b []byte, tag uint16, f []byte) []byte {
	b = le.AppendUint16(b, tag)
	b = le.AppendUint16(b, uint16(len(f)))
	return append(b, f...)
}

func (e *newEntry) version() uint16 {
	if e.big {
		return 45
	}
	return 20
}

func (e *newEntry) localHeader(method uint16) []byte {
	extra := e.local
	size, csize := uint32(e.size), uint32(e.csize)
	if e.big {
		extra = appendField(nil, extraZip64, le.AppendUint64(le.AppendUint64(nil, uint64(e.size)), uint64(e.csize)))
		extra = append(extra, e.local...)
		size, csize = math.MaxUint32, math.MaxUint32
	}
	h := append(make([]byte, 0, localLen+len(e.name)+len(extra)), localSign...)
	h = le.AppendUint16(h, e.version())
	h = le.AppendUint16(h, e.flags)
	h = le.AppendUint16(h, method)
	h = le.AppendUint16(h, e.clock)
	h = le.AppendUint16(h, e.date)
	h = le.AppendUint32(h, e.sum.Sum32())
	h = le.AppendUint32(h, csize)
	h = le.AppendUint32(h, size)
	h = le.AppendUint16(h, uint16(len(e.name)))
	h = le.AppendUint16(h, uint16(len(extra)))
	return append(append(h, e.name...), extra...)
}

// record makes the record of the directory. What is not about the content is as
// it was.
func (e *newEntry) record(method uint16, link bool) []byte {
	var comment []byte
	creator, disk := uint16(byUnix<<8|20), uint32(0) // internal attributes and first disk
	attributes := unixMode(e.node.mode) << 16
	if e.node.isDir() {
		attributes |= 0x10
	}
	if e.old != nil {
		comment = e.old.remark()
		creator = le.Uint16(e.old.rec[4:])
		disk = le.Uint32(e.old.rec[34:])
		if link == e.old.isLink() {
			attributes = le.Uint32(e.old.rec[38:])
		}
	}
	r := append(make([]byte, 0, entryLen+len(e.name)+len(e.central)+len(comment)+32), entrySign...)
	r = le.AppendUint16(r, creator)
	r = le.AppendUint16(r, e.version())
	r = le.AppendUint16(r, e.flags)
	r = le.AppendUint16(r, method)
	r = le.AppendUint16(r, e.clock)
	r = le.AppendUint16(r, e.date)
	r = le.AppendUint32(r, e.sum.Sum32())
	r = le.AppendUint32(r, 0)
	r = le.AppendUint32(r, 0)
	r = le.AppendUint16(r, uint16(len(e.name)))
	r = le.AppendUint16(r, uint16(len(e.central)))
	r = le.AppendUint16(r, uint16(len(comment)))
	r = le.AppendUint32(r, disk)
	r = le.AppendUint32(r, attributes)
	r = le.AppendUint32(r, 0)
	r = append(append(append(r, e.name...), e.central...), comment...)
	return located(r, e.size, e.csize, e.at-e.b.present.base)
}

func unixMode(mode fs.FileMode) uint32 {
	switch {
	case mode.IsDir():
		return 0o040000 | uint32(mode.Perm())
	case mode&fs.ModeSymlink != 0:
		return 0o120777
	}
	return 0o100000 | uint32(mode.Perm())
}

// moved is the record of e for another place, otherwise as it was.
func moved(e *entry, at int64) []byte {
	if was := le.Uint32(e.rec[entryOffset:]); was != math.MaxUint32 && at < math.MaxUint32 {
		if int64(was) == at {
			return e.rec
		}
		r := bytes.Clone(e.rec)
		le.PutUint32(r[entryOffset:], uint32(at))
		return r
	}
	return located(e.rec, e.size, e.csize, at)
}

// located is a record with these sizes and this place, in 64 bits where they do
// not fit 32.
func located(rec []byte, size, csize, at int64) []byte {
	name := int(le.Uint16(rec[28:]))
	extra := rec[entryLen+name : entryLen+name+int(le.Uint16(rec[30:]))]
	r := bytes.Clone(rec[:entryLen+name])
	var wide []byte
	put := func(offset int, v int64) {
		if v >= math.MaxUint32 {
			wide = le.AppendUint64(wide, uint64(v))
			v = math.MaxUint32
		}
		le.PutUint32(r[offset:], uint32(v))
	}
	put(24, size)
	put(20, csize)
	put(entryOffset, at)
	var list []byte
	if wide != nil {
		list = appendField(list, extraZip64, wide)
		le.PutUint16(r[6:], max(le.Uint16(r[6:]), 45))
	}
	for tag, f := range fields(extra) {
		if tag != extraZip64 {
			list = appendField(list, tag, f)
		}
	}
	le.PutUint16(r[30:], uint16(len(list)))
	return append(append(r, list...), rec[entryLen+name+len(extra):]...)
}

// finish writes the directory and its end.
func (b *builder) finish(items []item) (int64, error) {
	start := b.pos
	var out []byte
	for i := range items {
		if out = append(out, items[i].rec...); len(out) >= 1<<20 {
			if err := b.write(out); err != nil {
				return 0, err
			}
			out = out[:0]
		}
	}
	length := b.pos + int64(len(out)) - start
	offset, count := start-b.present.base, int64(len(items))
	if count >= math.MaxUint16 || length >= math.MaxUint32 || offset >= math.MaxUint32 {
		at := start + length - b.present.base
		out = append(out, end64Sign...)
		out = le.AppendUint64(out, end64Len-12)
		out = le.AppendUint16(out, byUnix<<8|45)
		out = le.AppendUint16(out, 45)
		out = le.AppendUint64(out, 0) // this disk, and that of the directory
		out = le.AppendUint64(out, uint64(count))
		out = le.AppendUint64(out, uint64(count))
		out = le.AppendUint64(out, uint64(length))
		out = le.AppendUint64(out, uint64(offset))
		out = append(out, locatorSign...)
		out = le.AppendUint32(out, 0)
		out = le.AppendUint64(out, uint64(at))
		out = le.AppendUint32(out, 1)
	}
	out = append(out, endSign...)
	out = le.AppendUint32(out, 0)
	out = le.AppendUint16(out, uint16(min(count, math.MaxUint16)))
	out = le.AppendUint16(out, uint16(min(count, math.MaxUint16)))
	out = le.AppendUint32(out, uint32(min(length, math.MaxUint32)))
	out = le.AppendUint32(out, uint32(min(offset, math.MaxUint32)))
	out = le.AppendUint16(out, uint16(len(b.comment)))
	err := b.write(append(out, b.comment...))
	return b.pos, err
}
