package pack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Source is a file or directory to be packed.
type Source struct {
	Place place.Place
	Asked string // absolute path as asked for, no link resolved; names it where it is skipped
	Err   error  // why it may not be used; it is skipped then
}

// CreateOptions say how an archive is made.
type CreateOptions struct {
	Format    Format           // Zip or TarGz
	Recursive bool             // take all that is below directories, not their own files alone
	Progress  func(done int64) // called with the number of entries done; may be nil
}

// A Report says what packing came to.
type Report struct {
	Skipped    []string // absolute paths of what could not be read, at most 100
	Entries    int64    // files, directories and links in the archive
	Unreadable int64    // sources and files in them that could not be read, those in Skipped included
	Denied     int64    // left out since a rule denies them
	Special    int64    // devices, FIFOs and sockets left out
	Links      int64    // links left out: nothing there, not allowed, or a loop
	Names      int64    // left out since archives cannot carry their names everywhere
	Changed    int64    // files that changed while they were read
	Note       string   // of how it was written; see [atomicfile.Report.Note]
}

// maxSkipped bounds Report.Skipped.
const maxSkipped = 100

// Create packs sources into a new archive dst, which replaces what is there,
// whole or not at all. Missing directories are created. A directory keeps its
// own name as the first element of the names in it. What cannot be read is
// skipped; if that is all, ERR_ARCHIVE_READ_FAILED. Two sources of one name are
// ERR_ARCHIVE_CREATION_FAILED before anything is written. The archive never
// contains itself. Links into the tree they are in stay links; others are
// replaced by what they lead to, where that is allowed.
func Create(ctx context.Context, w *atomicfile.Writer, dst place.Place, sources []Source, o CreateOptions) (Report, error) {
	t := &tally{}
	list, err := nameSources(sources, t)
	if err != nil {
		return Report{}, err
	}
	c := &collector{ctx: ctx, recursive: o.Recursive, self: dst, tally: t}
	if c.old, err = target(dst); err != nil {
		return Report{}, err
	}
	if len(list) == 0 {
		return Report{}, nothingRead(t)
	}
	done, err := w.Write(ctx, dst, atomicfile.Options{}, func(f *os.File) error {
		return c.pack(ctx, f, list, o)
	})
	if err != nil {
		if code, msg := fault.Of(err); code == fault.FSWriteFailed {
			err = fault.Hide(fault.ArchiveCreation, err, "%s", msg)
		}
		return Report{}, err
	}
	r := t.Report
	r.Skipped, r.Note = t.skipped, done.Note()
	return r, nil
}

// target describes what is at dst, nil for nothing.
func target(dst place.Place) (*fileinfo.Info, error) {
	i, err := fileinfo.Of(dst)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case i.IsDir():
		return nil, fault.New(fault.ArchivePath, "%s is a directory; name the archive file to be made in it", dst.Abs)
	}
	return &i, place.Ordinary(dst.Abs, i.Mode)
}

// A named source is called name in the archive.
type named struct {
	Source
	name string
}

// nameSources gives the sources that exist their names in the archive.
func nameSources(sources []Source, t *tally) ([]named, error) {
	var list []named
	known := map[string]Source{}
	for _, s := range sources {
		if s.Err == nil {
			var fi fs.FileInfo
			if fi, s.Err = s.Place.Stat(); s.Err == nil {
				s.Err = place.Ordinary(s.Place.Abs, fi.Mode())
			}
		}
		if s.Err != nil {
			t.skip(s.Asked)
			continue
		}
		name := filepath.Base(s.Place.Asked)
		if name == filepath.VolumeName(name)+string(filepath.Separator) {
			name = "" // of the top of a file system: what is in it has names
		}
		if why := entryname.Bad(name); name != "" && why != "" {
			t.skip(s.Asked)
			continue
		}
		if twin, ok := known[name]; ok {
			return nil, fault.New(fault.ArchiveCreation, "%s and %s would both be called %q in the archive; pack them one by one, or the directory that holds them", twin.Place.Asked, s.Place.Asked, name)
		}
		known[name] = s
		list = append(list, named{s, name})
	}
	if _, top := known[""]; top && len(list) > 1 {
		return nil, fault.New(fault.ArchiveCreation, "the top of a file system holds the other sources already; pack it alone")
	}
	return list, nil
}

func nothingRead(t *tally) error {
	return fault.New(fault.ArchiveRead, "none of the source_paths could be read, so there is no archive: %s", strings.Join(t.skipped, ", "))
}

// A packer writes entries in one format. Their files are read and compressed on
// a line, several at a time.
type packer interface {
	// small adds entries whose files are small.
	small([]entry) error
	// large adds a file of any size.
	large(entry) error
	// end writes what is due after the last entry. The line has ended by then.
	end() error
}

// pack writes the archive to f.
func (c *collector) pack(ctx context.Context, f *os.File, list []named, o CreateOptions) error {
	workers := runtime.GOMAXPROCS(0)
	l := newLine(ctx, workers, 3*workers)
	s := stock{line: l, tally: c.tally, progress: o.Progress}
	var p packer
	if o.Format == Zip {
		p = newZipWriter(f, &s)
	} else {
		p = newTarGzWriter(f, &s)
	}
	b := batch{to: p}
	c.ctx, c.emit = l.ctx, b.add
	err := l.close(c.walk(list, &b))
	b.release()
	if err != nil {
		return err
	}
	if c.tally.Entries == 0 {
		return nothingRead(c.tally)
	}
	return p.end()
}

func (c *collector) walk(list []named, b *batch) error {
	for _, s := range list {
		ok, err := c.source(s.Place, s.name)
		if err != nil {
			return err
		}
		if !ok {
			c.tally.skip(s.Asked)
		}
	}
	return b.flush()
}

// A stock is what the packers of all formats work with.
type stock struct {
	*line
	tally    *tally
	progress func(int64)
}

// count counts n entries that are in the archive now. It is called from one
// goroutine at a time.
func (s *stock) count(n int) {
	s.tally.Entries += int64(n)
	if s.progress != nil && n > 0 {
		s.progress(s.tally.Entries)
	}
}

// packSmall has a worker pack the entries of list, whose files are small, to a
// slab, and finish hand that on in order.
func (s *stock) packSmall(list []entry, pack func(*slab, iter.Seq[*entry]) error, finish func(*slab) error) error {
	to := getSlab()
	err := s.put(func() error {
		defer release(list)
		err := pack(to, func(yield func(*entry) bool) {
			for i := range list {
				if s.ctx.Err() != nil || !yield(&list[i]) {
					return
				}
			}
		})
		return cmp.Or(err, s.ctx.Err())
	}, func() error {
		defer to.put()
		return finish(to)
	})
	if err != nil {
		release(list)
	}
	return err
}

// unread is the failure of a large file that is partly in the archive.
func unread(e entry, err error) error {
	return fault.Hide(fault.ArchiveRead, err, "%s could not be read to its end: %s; leave it out or try again", e.abs(), atomicfile.Cause(err))
}

func (s *stock) changed() {
	s.tally.mu.Lock()
	s.tally.Changed++
	s.tally.mu.Unlock()
}

// Bounds of a batch. A batch keeps the directories of its files open.
const (
	batchEntries = 64
	batchDirs    = 8
	batchBytes   = blockSize / 2
)

// A batch gathers small entries for one task.
type batch struct {
	to   packer
	list []entry
	size int64
	last *walk.Dir
	dirs int
}

// add takes e in, and keeps the directory that holds it open.
func (b *batch) add(e entry) error {
	if e.info.Mode.IsRegular() && e.info.Size > blockSize {
		if err := b.flush(); err != nil {
			return err
		}
		return b.to.large(e)
	}
	if e.dir != nil {
		e.dir.Retain()
		if e.dir != b.last {
			b.last = e.dir
			b.dirs++
		}
	}
	b.list = append(b.list, e)
	if e.info.Mode.IsRegular() {
		b.size += e.info.Size
	}
	if len(b.list) < batchEntries && b.dirs < batchDirs && b.size < batchBytes {
		return nil
	}
	return b.flush()
}

func (b *batch) flush() error {
	if len(b.list) == 0 {
		return nil
	}
	list := b.list
	*b = batch{to: b.to}
	return b.to.small(list)
}

// release lets go of what was not handed on.
func (b *batch) release() { release(b.list) }

func release(list []entry) {
	for i := range list {
		if d := list[i].dir; d != nil {
			d.Close()
		}
	}
}

// Message says what r came to, for a reader.
func (r Report) Message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Packed entries: %d.", r.Entries)
	if n := r.Unreadable - int64(len(r.Skipped)); n > 0 {
		fmt.Fprintf(&b, " Further ones that could not be read: %d.", n)
	}
	for _, left := range []struct {
		n    int64
		what string
	}{
		{r.Denied, "denied by a rule of this server"},
		{r.Special, "special files"},
		{r.Links, "symbolic links to what is missing, not allowed or a loop"},
		{r.Names, "names that not every system can unpack"},
	} {
		if left.n > 0 {
			fmt.Fprintf(&b, " Left out as %s: %d.", left.what, left.n)
		}
	}
	if r.Changed > 0 {
		fmt.Fprintf(&b, " Changed while they were read, and packed as they were then: %d.", r.Changed)
	}
	return b.String() + r.Note
}
