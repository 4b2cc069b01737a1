package zipfile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
)

// A Sink takes a new archive. What was written may be overwritten.
type Sink interface {
	io.Writer
	io.WriterAt
}

// Discard is a sink that only counts.
var Discard Sink = discard{}

type discard struct{}

func (discard) Write(b []byte) (int, error)            { return len(b), nil }
func (discard) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

// An Item is an entry of the archive that is being made: one of the present
// archive byte for byte, or new content.
type Item struct {
	Old      *Entry // whose place and attributes it has; nil for an added one
	Verbatim *Entry // of the present archive; nil where there is new content
	New      File
	Mode     *fs.FileMode // other permissions than the old entry has; may be nil

	begin int64  // where it begins
	rec   []byte // its record
}

// A File is the new content of an entry.
type File struct {
	Name     string      // counts where there is no old entry; without a slash at the end
	Mode     fs.FileMode // type and permissions; these count where there is no old entry
	Modified time.Time

	// Open opens the content of a file, and the text of a link. Its size and
	// time of modification, where that is not zero, are those of what is open.
	Open func() (c io.ReadCloser, size int64, modified time.Time, err error)
}

// A GrownError says that a file grew beyond what its header can say while it was
// packed.
type GrownError struct{ Name string }

func (e *GrownError) Error() string { return fmt.Sprintf("%s grew while it was packed", e.Name) }

// A Rewriter makes a new archive from the present one and new content.
type Rewriter struct {
	From     *os.File // the present archive, whose offset is moved
	Present  *Directory
	Comment  []byte
	Trailer  []byte                  // goes behind the end
	To       Sink                    // where it is a file, entries are copied by the system if it can
	Progress func(done, total int64) // called with the number of entries done; may be nil
	Step     func(string)            // called before each step; may be nil
}

const (
	runChunk = 16 << 20               // bytes copied between looks at the context
	bigFile  = math.MaxUint32 - 1<<20 // bytes from which on a file gets 64-bit sizes
)

// A writing is one run of a Rewriter.
type writing struct {
	*Rewriter
	ctx context.Context
	pos int64
}

// Write writes all of items, which are in the order of the directory, and
// returns how many bytes that makes. What is in front of the present archive is
// copied too.
func (r *Rewriter) Write(ctx context.Context, items []Item) (size int64, err error) {
	w := &writing{Rewriter: r, ctx: ctx}
	first := w.Present.start
	for i := range w.Present.Entries {
		first = min(first, w.Present.Entries[i].Begin)
	}
	if err := w.copy(0, first); err != nil {
		return 0, err
	}
	order := make([]*Item, len(items))
	for i := range items {
		order[i] = &items[i]
	}
	slices.SortStableFunc(order, func(a, b *Item) int {
		if a.Old == nil || b.Old == nil { // what is added comes last
			return btoi(a.Old == nil) - btoi(b.Old == nil)
		}
		return cmp.Compare(a.Old.Begin, b.Old.Begin)
	})
	for n := 0; n < len(order); {
		w.tell(n, len(order))
		if order[n].Verbatim == nil {
			w.step("pack file")
			if err := w.pack(order[n]); err != nil {
				return 0, err
			}
			n++
			continue
		}
		// All that is in one piece is copied at once.
		from := order[n].Verbatim.Begin
		end := from
		begin := w.pos
		for ; n < len(order) && order[n].Verbatim != nil && order[n].Verbatim.Begin == end; n++ {
			e := order[n].Verbatim
			end = e.End
			order[n].begin = begin + e.Begin - from
			order[n].rec = order[n].permitted(moved(e, order[n].begin-w.Present.base))
		}
		w.step("copy entries")
		if err := w.copy(from, end); err != nil {
			return 0, err
		}
	}
	w.tell(len(order), len(order))
	w.step("finish archive")
	return w.finish(items)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *writing) tell(done, total int) {
	if w.Progress != nil {
		w.Progress(int64(done), int64(total))
	}
}

func (w *writing) step(name string) {
	if w.Step != nil {
		w.Step(name)
	}
}

func (w *writing) write(p []byte) error {
	n, err := w.To.Write(p)
	w.pos += int64(n)
	return err
}

// copy copies bytes of the present archive.
func (w *writing) copy(from, to int64) error {
	f, real := w.To.(*os.File)
	if real {
		if _, err := w.From.Seek(from, io.SeekStart); err != nil {
			return err
		}
	}
	for from < to {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		n := min(to-from, runChunk)
		if real {
			done, err := io.CopyN(f, w.From, n) // by the system where it can
			w.pos += done
			if err != nil {
				return err
			}
		} else {
			w.pos += n
		}
		from += n
	}
	return nil
}

// pack writes new content.
func (w *writing) pack(i *Item) error {
	e := created{w: w, Item: i, modified: i.New.Modified}
	i.begin = w.pos
	if i.New.Mode.IsDir() {
		return e.write(Store, nil, 0)
	}
	content, size, modified, err := i.New.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if !modified.IsZero() {
		e.modified = modified
	}
	method := uint16(Deflate)
	if e.link = i.New.Mode&fs.ModeSymlink != 0; e.link || size == 0 || w.storedByWish(i.Old) {
		method = Store
	}
	return e.write(method, content, size)
}

// storedByWish reports whether an entry was not packed though that would have
// made it smaller, or is of a name that has to be stored: what has its place
// stays as its readers expect it.
func (w *writing) storedByWish(e *Entry) bool {
	if e == nil || e.Method != Store || e.Size == 0 {
		return false
	}
	present := w.present(e)
	if e.Name == "mimetype" || present == nil {
		return true
	}
	offset, err := present.Data(w.From)
	if err != nil {
		return true
	}
	var packed counter
	d, release := codec.Deflate(&packed, nil)
	defer release()
	n, err := io.Copy(d, io.NewSectionReader(w.From, offset, min(e.Size, 64<<10)))
	return err != nil || d.Close() != nil || int64(packed) < n
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// present finds an old entry in the present archive; nil where it has none.
func (w *writing) present(old *Entry) *Entry {
	for i := range w.Present.Entries {
		if e := &w.Present.Entries[i]; e.Begin == old.Begin && bytes.Equal(e.RawName(), old.RawName()) {
			return e
		}
	}
	return nil
}

// A created entry is one whose content is new.
type created struct {
	w *writing
	*Item
	modified time.Time
	link     bool

	name, local, central []byte // name and extra fields
	flags                uint16
	date, clock          uint16
	sum                  hash.Hash32
	size, csize          int64
	big                  bool // has 64-bit sizes in its local header
}

// write writes header and content. The header is completed in the end.
func (e *created) write(method uint16, from io.Reader, size int64) error {
	e.describe()
	e.big = size >= bigFile
	e.sum = crc32.NewIEEE()
	head := e.localHeader(method)
	if err := e.w.write(head); err != nil {
		return err
	}
	begin := e.w.pos
	if from != nil {
		if err := e.content(method, from); err != nil {
			return err
		}
	}
	e.csize = e.w.pos - begin
	if !e.big && max(e.size, e.csize) >= math.MaxUint32 {
		return &GrownError{e.New.Name}
	}
	if _, err := e.w.To.WriteAt(e.localHeader(method), e.begin); err != nil {
		return err
	}
	e.rec = e.permitted(e.record(method))
	return nil
}

// through is a writer to the archive.
type through struct{ w *writing }

func (t through) Write(p []byte) (int, error) { return len(p), t.w.write(p) }

func (e *created) content(method uint16, from io.Reader) error {
	var to io.Writer = through{e.w}
	end := func() error { return nil }
	if method == Deflate {
		d, release := codec.Deflate(to, nil)
		defer release()
		to, end = d, d.Close
	}
	buf := make([]byte, 256<<10)
	for {
		if err := e.w.ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(from, buf)
		if n > 0 {
			e.size += int64(n)
			e.sum.Write(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return end()
		}
		if err != nil {
			return err
		}
	}
}

// finish writes the directory and its end.
func (w *writing) finish(items []Item) (int64, error) {
	start := w.pos
	var out []byte
	for i := range items {
		if out = append(out, items[i].rec...); len(out) >= 1<<20 {
			if err := w.write(out); err != nil {
				return 0, err
			}
			out = out[:0]
		}
	}
	length := w.pos + int64(len(out)) - start
	offset, count := start-w.Present.base, int64(len(items))
	if count >= math.MaxUint16 || length >= math.MaxUint32 || offset >= math.MaxUint32 {
		at := start + length - w.Present.base
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
	out = le.AppendUint16(out, uint16(len(w.Comment)))
	err := w.write(append(append(out, w.Comment...), w.Trailer...))
	return w.pos, err
}
