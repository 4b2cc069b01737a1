package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// ExtractOptions say how an archive is unpacked.
type ExtractOptions struct {
	Format           Format                  // empty: told by content
	Overwrite        bool                    // replace files that exist; otherwise ERR_FS_ALREADY_EXISTS
	Strip            int                     // leading elements of names that are removed; what has no more is left out
	Include, Exclude []string                // globs on names in the archive; an empty Include is everything
	DryRun           bool                    // only tell what would be written
	MaxBytes         int64                   // most bytes that are written
	Progress         func(done, total int64) // called with the number of entries done, and of all or 0; may be nil
}

// An Extracted report says what unpacking came to.
type Extracted struct {
	Count   int       // files, directories and links written, or that would be
	Planned []Planned // of a dry run, sorted by path
	Special int64     // devices, FIFOs and sockets left out
	Links   int64     // links left out since the archive does not tell where they lead
}

// Planned is what a dry run would write.
type Planned struct {
	Path string `json:"path"`                  // below the destination
	Type string `json:"type"`                  // "file", "directory" or "link"
	Size *int64 `json:"size_bytes,omitempty"`  // of a file, as the archive declares it
	Link string `json:"link_target,omitempty"` // of a link
}

// Extract unpacks the archive src below dst, which it makes where it is
// missing. Nothing is written outside of dst: an entry whose name or target
// leads there fails the call, and so does an archive that is damaged, encrypted
// or over a limit. A failed or cancelled call leaves nothing behind. A new
// destination appears at once when it is complete; into one that exists, files
// are moved one by one, each whole, once all are there.
//
// Of two entries of one name the later one counts in a tar, which is how it is
// added to; in other formats they are refused. Permissions are those of the
// archive without setuid, setgid, sticky and what the umask takes. Devices,
// FIFOs and sockets are left out.
func Extract(ctx context.Context, w *atomicfile.Writer, src, dst place.Place, o ExtractOptions) (Extracted, error) {
	c, err := newChoice(o.Strip, o.Include, o.Exclude)
	if err != nil {
		return Extracted{}, err
	}
	f, fi, err := src.Open()
	if err != nil {
		return Extracted{}, err
	}
	defer f.Close()
	if fi.IsDir() {
		return Extracted{}, fault.New(fault.ArchivePath, "%s is a directory; name an archive file", src.Abs)
	}
	if o.Format == "" {
		if o.Format, err = Detect(f, fi.Size(), src.Abs); err != nil {
			return Extracted{}, err
		}
	}
	x := &extractor{o: o, plan: newPlan(c), archive: f, size: fi.Size(), dst: dst}
	if o.DryRun {
		return x.dry(ctx)
	}
	r, err := x.run(ctx, w)
	if code, msg := fault.Of(err); err != nil && code == fault.FSWriteFailed {
		err = fault.Hide(fault.Unarchive, err, "%s", msg)
	}
	return r, err
}

// An extractor is one run of Extract.
type extractor struct {
	*plan
	o       ExtractOptions
	archive *os.File
	size    int64
	dst     place.Place
	stage   *stage
	budget  budget
	line    *line // nil in a dry run
	total   int64
	done    atomic.Int64
}

func (x *extractor) run(ctx context.Context, w *atomicfile.Writer) (r Extracted, err error) {
	if x.stage, err = newStage(w, x.dst); err != nil {
		return r, err
	}
	defer func() {
		if cerr := x.stage.close(); err == nil {
			err = cerr
		}
	}()
	x.budget = budget{most: x.o.MaxBytes, free: 1 << 62, archive: x.size}
	if at, err := x.stage.up.Root().Open("."); err == nil {
		if n, ok := freeSpace(at); ok {
			x.budget.free = n
		}
		at.Close()
	}
	workers := runtime.GOMAXPROCS(0)
	x.line = newLine(ctx, workers, 4*workers)
	err = x.line.close(x.read(x.line.ctx))
	if err == nil {
		err = x.verdict()
	}
	if err == nil {
		err = x.stage.finish(ctx, x.plan)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = x.stage.appear(ctx, x.plan, x.o.Overwrite)
	}
	if err != nil {
		return r, x.failed(err)
	}
	return x.report(), nil
}

// dry plans without writing.
func (x *extractor) dry(ctx context.Context) (Extracted, error) {
	fi, err := x.dst.Stat()
	switch {
	case err == nil && !fi.IsDir():
		return Extracted{}, fault.New(fault.ArchivePath, "%s is a file; name a directory to unpack into, or a path that does not exist", x.dst.Abs)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Extracted{}, err
	}
	if err := x.read(ctx); err != nil {
		return Extracted{}, x.failed(err)
	}
	if err := x.verdict(); err != nil {
		return Extracted{}, err
	}
	r := x.report()
	r.Planned = make([]Planned, 0, r.Count)
	for _, name := range x.names() {
		i := x.items[name]
		p := Planned{Path: name, Type: "file", Link: i.link}
		switch {
		case i.isDir():
			p.Type = "directory"
		case i.isLink():
			p.Type = "link"
		default:
			p.Size = &i.size
		}
		r.Planned = append(r.Planned, p)
	}
	return r, nil
}

// read reads the whole archive, and writes what is chosen to the stage.
func (x *extractor) read(ctx context.Context) error {
	if x.o.Format == Zip {
		return x.readZip(ctx)
	}
	return eachMember(ctx, x.archive, x.size, x.o.Format, func(m *member) error { return x.add(ctx, m) })
}

// verdict is what can be said of the plan as a whole.
func (x *extractor) verdict() error {
	if err := x.checkLinks(x.there); err != nil {
		return err
	}
	if x.dst.Guard == nil || !x.dst.Guard.DeniedBelow(x.dst.Abs) {
		return nil
	}
	for name := range x.items {
		if abs := filepath.Join(x.dst.Abs, filepath.FromSlash(name)); x.dst.Guard.Denied(abs) {
			return fault.New(fault.FSAccessDenied, "the archive has %s, which a rule of this server denies (CONDUIT_DENIED_PATHS, or by default the well-known places of credentials); nothing was unpacked. Leave it out with exclude", shown(name))
		}
	}
	return nil
}

// there tells what is at the destination before the archive is unpacked.
func (x *extractor) there(name string) (fs.FileMode, bool) {
	fi, err := x.dst.Root.Lstat(filepath.Join(x.dst.Name, filepath.FromSlash(name)))
	if err != nil {
		return 0, false
	}
	return fi.Mode(), true
}

func (x *extractor) report() Extracted {
	return Extracted{Count: len(x.items), Special: x.note.special, Links: x.note.links}
}

// failed gives an error its code.
func (x *extractor) failed(err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if x.stage == nil {
		return damaged(err)
	}
	return fault.Hide(fault.Unarchive, err, "unpacking to %s failed, and nothing was left there: %s", x.dst.Abs, atomicfile.Cause(err))
}

// add takes in the next member of a stream.
func (x *extractor) add(ctx context.Context, m *member) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, err := x.name(m)
	if err != nil || name == "" {
		return err
	}
	i := &item{mode: m.mode, modified: m.modified, size: m.size}
	switch {
	case m.hard != "":
		return x.hardLink(name, m, i)
	case m.mode.IsDir():
		i.explicit = true
		if _, err := x.claim(name, i); err != nil {
			return err
		}
		return x.mkdir(name)
	case i.isLink():
		if i.link, err = linkText(m); err != nil {
			return err
		}
		if i.link == "" {
			x.note.links++
			return nil
		}
	case !m.mode.IsRegular():
		x.note.special++
		return nil
	}
	old, err := x.claim(name, i)
	if err != nil {
		return err
	}
	if err := x.replace(name, old); err != nil || i.isLink() {
		return err
	}
	return x.file(ctx, name, m, i)
}

// linkText is where the link m leads, "" where the archive does not tell. Some
// formats have it as the content.
func linkText(m *member) (string, error) {
	if m.link != "" {
		return m.link, nil
	}
	c, err := m.open()
	if err != nil {
		return "", err
	}
	defer c.Close()
	text, err := io.ReadAll(io.LimitReader(c, maxName+1))
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// replace makes way for a later entry of the name of old.
func (x *extractor) replace(name string, old *item) error {
	if old == nil {
		return nil
	}
	switch x.o.Format {
	case SevenZip, Rar, Zip:
		return twice(name)
	}
	if x.line == nil || old.isLink() { // nothing is there yet
		return nil
	}
	if err := x.drain(); err != nil {
		return err
	}
	return x.stage.in(name, func(dir *os.Root, base string) error { return dir.Remove(base) })
}

func twice(name string) error {
	return fault.New(fault.Unarchive, "the archive has two entries called %s, and which one counts is not said; nothing was unpacked", shown(name))
}

// drain waits until all that was put on the line is written.
func (x *extractor) drain() error {
	written := make(chan struct{})
	if err := x.line.put(nil, func() error { close(written); return nil }); err != nil {
		return err
	}
	select {
	case <-written:
		return nil
	case <-x.line.ctx.Done():
		return x.line.ctx.Err()
	}
}

// mkdir makes the directory called name in the stage, with those it is in.
func (x *extractor) mkdir(name string) error {
	if x.line == nil {
		return nil
	}
	i := x.items[name]
	if i.made {
		return nil
	}
	i.made = true
	if dir := path.Dir(name); dir != "." {
		if err := x.mkdir(dir); err != nil {
			return err
		}
	}
	return x.stage.in(name, func(dir *os.Root, base string) error { return twin(name, dir.Mkdir(base, 0o700)) })
}

// hardLink gives a file that was unpacked before one more name.
func (x *extractor) hardLink(name string, m *member, i *item) error {
	to := tidy(m.hard)
	if why := badName(to); why != "" {
		return fault.New(fault.Unarchive, "the archive has a hard link, %s, to a name that %s: %q; nothing was unpacked", shown(name), why, shown(m.hard))
	}
	to, _ = strip(to, x.strip)
	from := x.items[to]
	if from == nil || from.isDir() {
		return fault.New(fault.Unarchive, "the archive has %s as a hard link to %s, which is no file that was unpacked before; nothing was unpacked", shown(name), shown(m.hard))
	}
	if to == name {
		return nil
	}
	*i = *from
	old, err := x.claim(name, i)
	if err != nil {
		return err
	}
	if err := x.replace(name, old); err != nil || x.line == nil || i.isLink() {
		return err
	}
	if err := x.parent(name); err != nil {
		return err
	}
	if err := x.drain(); err != nil {
		return err
	}
	if err := x.stage.root.Link(to, name); err == nil || errors.Is(err, fs.ErrExist) {
		return twin(name, err)
	}
	f, err := x.stage.root.Open(to) // this file system has no hard links
	if err != nil {
		return err
	}
	defer f.Close()
	return x.stage.in(name, func(dir *os.Root, base string) error { return x.write(dir, base, i, nil, f) })
}

// parent makes the directories that the item called name is in.
func (x *extractor) parent(name string) error {
	if dir := path.Dir(name); dir != "." {
		return x.mkdir(dir)
	}
	return nil
}

// file writes the content of m. What is small is read here and written on the
// line.
func (x *extractor) file(ctx context.Context, name string, m *member, i *item) error {
	if x.line == nil {
		return nil
	}
	if err := x.parent(name); err != nil {
		return err
	}
	c, err := m.open()
	if err != nil {
		return err
	}
	defer c.Close()
	if m.size > blockSize {
		return x.stage.in(name, func(dir *os.Root, base string) error { return x.write(dir, base, i, nil, stopping{ctx, c}) })
	}
	s := getSlab()
	s.raw.Grow(int(max(m.size, 0)) + 1024)
	if _, err := s.raw.ReadFrom(io.LimitReader(c, blockSize+1)); err != nil {
		return err
	}
	if s.raw.Len() > blockSize { // it is larger than it said
		return x.stage.in(name, func(dir *os.Root, base string) error {
			return x.write(dir, base, i, s.raw.Bytes(), stopping{ctx, c})
		})
	}
	return x.line.put(func() error {
		defer s.put()
		return x.stage.in(name, func(dir *os.Root, base string) error { return x.write(dir, base, i, s.raw.Bytes(), nil) })
	}, nil)
}

// stopping is a reader that ends with its context.
type stopping struct {
	ctx context.Context
	io.Reader
}

func (s stopping) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(b)
}

var copyBuffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// write writes a file of the stage, and counts it. It has data and then, unless
// that is nil, what rest has.
func (x *extractor) write(dir *os.Root, base string, i *item, data []byte, rest io.Reader) error {
	f, err := dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL|place.Nonblock, i.mode.Perm())
	if err != nil {
		return twin(base, err)
	}
	defer f.Close()
	if err := x.put(f, data); err != nil {
		return err
	}
	if rest != nil {
		if err := x.copy(f, rest); err != nil {
			return err
		}
	}
	if !i.modified.IsZero() {
		if err := atomicfile.SetModified(f, dir, base, i.modified); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	if done := x.done.Add(1); x.o.Progress != nil {
		x.o.Progress(done, x.total)
	}
	return nil
}

// put writes b to f, if that is not too much.
func (x *extractor) put(f *os.File, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := x.budget.add(int64(len(b))); err != nil {
		return err
	}
	_, err := f.Write(b)
	return err
}

func (x *extractor) copy(f *os.File, from io.Reader) error {
	buf := copyBuffers.Get().(*[256 << 10]byte)
	defer copyBuffers.Put(buf)
	for {
		n := 0
		var err error
		for n < len(buf) && err == nil {
			var read int
			read, err = from.Read(buf[n:])
			n += read
		}
		if perr := x.put(f, buf[:n]); perr != nil {
			return perr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// filesAtATime is how many files of a zip one worker unpacks in a row.
const filesAtATime = 32

// readZip plans all of a zip, and then unpacks several files at a time.
func (x *extractor) readZip(ctx context.Context) error {
	list, err := openZip(x.archive, x.size)
	if err != nil {
		return damaged(err)
	}
	if err := overlapping(list); err != nil {
		return err
	}
	type file struct {
		name string
		*zipMember
	}
	var files []file
	for _, m := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		name, err := x.name(&m.member)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		if m.file.Flags&flagEncrypted != 0 {
			return encrypted(shown(m.name))
		}
		i := &item{mode: m.mode, modified: m.modified, size: m.size}
		switch {
		case m.mode.IsDir():
			i.explicit = true
		case i.isLink():
			if i.link, err = linkText(&m.member); err != nil {
				return err
			}
		case !m.mode.IsRegular():
			x.note.special++
			continue
		default:
			files = append(files, file{name, m})
		}
		old, err := x.claim(name, i)
		if err != nil {
			return err
		}
		if old != nil && !old.isDir() {
			return twice(name)
		}
	}
	if x.line == nil {
		return nil
	}
	x.total = int64(len(files))
	for _, name := range x.those((*item).isDir) { // those of one directory in a row
		if err := x.mkdir(name); err != nil {
			return err
		}
	}
	for len(files) > 0 {
		// A task has files of one directory, and is not too large.
		n, size := 1, files[0].size
		for n < len(files) && n < filesAtATime && size < blockSize && path.Dir(files[n].name) == path.Dir(files[0].name) {
			size += files[n].size
			n++
		}
		some := files[:n]
		files = files[n:]
		err := x.line.put(func() error {
			s := getSlab()
			defer s.put()
			return x.stage.in(some[0].name, func(dir *os.Root, _ string) error {
				for _, m := range some {
					if err := x.zipFile(ctx, dir, m.name, m.zipMember, s); err != nil {
						return err
					}
				}
				return nil
			})
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// zipFile unpacks the member m to the directory that the item called name is
// in.
func (x *extractor) zipFile(ctx context.Context, dir *os.Root, name string, m *zipMember, s *slab) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	i, base := x.items[name], path.Base(name)
	if data, ok, err := m.small(x.archive, s); err != nil {
		return err
	} else if ok {
		return x.write(dir, base, i, data, nil)
	}
	c, err := m.open()
	if err != nil {
		return err
	}
	defer c.Close()
	return x.write(dir, base, i, nil, stopping{ctx, c})
}

// Message says what r came to, for a reader.
func (r Extracted) Message() string {
	var b strings.Builder
	if r.Planned != nil {
		fmt.Fprintf(&b, "Dry run, nothing was written. Files and directories that would be: %d.", r.Count)
	} else {
		fmt.Fprintf(&b, "Unpacked files and directories: %d.", r.Count)
	}
	if r.Special > 0 {
		fmt.Fprintf(&b, " Left out as special files: %d.", r.Special)
	}
	if r.Links > 0 {
		fmt.Fprintf(&b, " Left out as symbolic links whose target the archive does not tell: %d.", r.Links)
	}
	return b.String()
}
