package atomicfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Writer writes the files of one server. Each is locked from the check of what
// it is to its replacement, so that of two calls that expect the same content
// one fails. Make it with [New].
type Writer struct {
	mu    sync.Mutex
	swept map[string]struct{} // directories rid of leftovers

	table *table

	rename func(from *Dir, old string, to *Dir, new string, replace bool) error // Rename, but in tests
}

// New returns a Writer that keeps to itself.
func New() *Writer { return NewShared("", nil) }

// NewShared returns a Writer that waits for the Writers of other processes with
// the same directory locks, and they for it. The directory is made with the
// first lock; it then holds at most 64 empty files. Where it cannot be used
// there are no such locks, which log is told once.
func NewShared(locks string, log *slog.Logger) *Writer {
	return &Writer{swept: map[string]struct{}{}, table: newTable(locks, log), rename: rename}
}

// Close lets go of the files of locks.
func (w *Writer) Close() error {
	w.table.close()
	return nil
}

// A Mode says what becomes of a file that exists.
type Mode uint8

const (
	Overwrite Mode = iota // its content is replaced
	Create                // ERR_FS_ALREADY_EXISTS, decided by the system where it can
	Append                // the content is added to it; for [Job] alone
)

// Options say how a file is written.
type Options struct {
	Mode    Mode
	IfMatch string      // where not empty, the etag the file must have: ERR_PRECONDITION_FAILED
	Like    fs.FileInfo // where not nil, what to take permissions and modification time from
	Keep    Keeper      // where not nil, keeps what is replaced
	Sum     *[]byte     // where not nil, fill leaves the SHA-256 of what it wrote here, for Keep
}

// A Report says what writing a file came to.
type Report struct {
	Created bool // there was none before
	Parted  bool // it had other hard links, which keep the old content
	InPlace bool // nothing could be created beside it, or it could not be replaced
}

// Write writes the file p with what fill writes, whole or not at all: beside
// it, under a temporary name, then renamed. Missing directories are created. It
// is durable when Write returns. A file that exists keeps its mode, and its
// owner, ACL and extended attributes where the system lets us; a new one gets
// what the umask leaves of 0666. An error of fill is returned as it is where it
// has a code, else as ERR_FS_WRITE_FAILED.
func (w *Writer) Write(ctx context.Context, p place.Place, o Options, fill func(*os.File) error) (r Report, err error) {
	if p.Name == "." {
		return r, isDirectory(p)
	}
	d, err := w.Open(p.Parent(), o.IfMatch == "")
	if err != nil {
		return r, missing(o.IfMatch, p, err)
	}
	defer func() {
		if cerr := d.Close(); err == nil {
			err = cerr
		}
	}()
	return d.Write(ctx, base(p), o, fill)
}

// Write is [Writer.Write] for the file called name in d. It is durable once d
// is closed without an error.
func (d *Dir) Write(ctx context.Context, name string, o Options, fill func(*os.File) error) (Report, error) {
	p := d.Child(name)
	old, err := d.existing(name)
	if err != nil {
		return Report{}, err
	}
	if old != nil && o.Mode == Create {
		return Report{}, exists(p)
	}
	if err := d.match(ctx, name, o.IfMatch); err != nil {
		return Report{}, err
	}
	perm := fs.FileMode(0o600) // until it has the mode of the old one
	if old == nil {
		perm = 0o666
	}
	temp := TempName()
	f, err := d.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL|place.Nonblock, perm)
	if err != nil {
		if old != nil && refused(err) {
			return d.inPlace(ctx, name, o, fill)
		}
		return Report{}, Failed(p, err)
	}
	renamed := false
	defer func() {
		if !renamed {
			d.root.Remove(temp)
		}
	}()
	if err := d.fill(ctx, f, temp, name, old, o, fill); err != nil {
		return Report{}, Failed(p, err)
	}

	ctx, unlock, err := d.Lock(ctx, name)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	if err := d.match(ctx, name, o.IfMatch); err != nil {
		return Report{}, err
	}
	cancel, err := d.hold(ctx, name, temp, o)
	if err != nil {
		return Report{}, Failed(p, err)
	}
	err = d.w.rename(d, temp, d, name, o.Mode != Create)
	if err != nil {
		cancel()
	}
	switch {
	case err == nil:
		renamed = true
		return Report{Created: old == nil, Parted: old != nil && old.Links > 1}, nil
	case errors.Is(err, fs.ErrExist) && o.Mode == Create:
		return Report{}, exists(p)
	case old == nil || !refused(err):
		return Report{}, Failed(p, err)
	}
	from, err := d.root.Open(temp)
	if err != nil {
		return Report{}, Failed(p, err)
	}
	defer from.Close()
	return d.overwrite(ctx, name, o, func(f *os.File) error {
		_, err := io.Copy(f, from)
		return err
	})
}

// fill writes, dresses, flushes and closes the temporary file f.
func (d *Dir) fill(ctx context.Context, f *os.File, temp, name string, old *fileinfo.Info, o Options, fill func(*os.File) error) error {
	defer f.Close()
	if err := fill(f); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.dress(f, temp, name, old, o.Like); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// dress gives f, called temp, the attributes of old, the file called name that
// it will replace, and the permissions and time of like.
func (d *Dir) dress(f *os.File, temp, name string, old *fileinfo.Info, like fs.FileInfo) error {
	var mode fs.FileMode
	switch {
	case old == nil && like == nil:
		return nil
	case old != nil:
		mode = old.Mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
		if !d.keep(f, name, old) {
			mode &^= fs.ModeSetuid | fs.ModeSetgid // they would lend the rights of another user
		}
	}
	if like != nil {
		mode = like.Mode().Perm()
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if like == nil {
		return nil
	}
	return SetModified(f, d.root, temp, like.ModTime())
}

// inPlace writes into the file itself, which nothing could be created beside.
func (d *Dir) inPlace(ctx context.Context, name string, o Options, fill func(*os.File) error) (Report, error) {
	ctx, unlock, err := d.Lock(ctx, name)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	if err := d.match(ctx, name, o.IfMatch); err != nil {
		return Report{}, err
	}
	return d.overwrite(ctx, name, o, fill)
}

func (d *Dir) overwrite(ctx context.Context, name string, o Options, fill func(*os.File) error) (Report, error) {
	p := d.Child(name)
	f, _, err := p.OpenFile(os.O_RDWR, 0)
	if err != nil {
		return Report{}, Failed(p, err)
	}
	defer f.Close()
	after, err := d.holdOpen(ctx, name, f, Rewritten, o)
	if err != nil {
		return Report{}, Failed(p, err)
	}
	defer after()
	err = fill(f)
	if err == nil {
		var size int64
		if size, err = f.Seek(0, io.SeekCurrent); err == nil {
			err = f.Truncate(size)
		}
	}
	if err == nil && o.Like != nil {
		err = errors.Join(f.Chmod(o.Like.Mode().Perm()), SetModified(f, d.root, name, o.Like.ModTime()))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return Report{}, fault.Hide(fault.FSWriteFailed, err, "%s had to be written in place and may be incomplete now: %s", p.Abs, Cause(err))
	}
	return Report{InPlace: true}, nil
}

// Append adds content to the end of the file called name in one write and cuts
// it back where that fails. A missing file is created. Of o, IfMatch and Keep
// count.
func (d *Dir) Append(ctx context.Context, name string, o Options, content string) (Report, error) {
	const attempts = 3 // against one that keeps appearing and vanishing
	for n := 1; ; n++ {
		r, err := d.extend(ctx, name, o, content)
		if !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		r, err = d.Write(ctx, name, Options{Mode: Create, IfMatch: o.IfMatch, Keep: o.Keep}, func(f *os.File) error {
			_, err := f.WriteString(content)
			return err
		})
		if code, _ := fault.Of(err); err == nil || code != fault.FSAlreadyExists || n == attempts {
			return r, err
		}
	}
}

// extend is Append for a file that exists.
func (d *Dir) extend(ctx context.Context, name string, o Options, content string) (Report, error) {
	p := d.Child(name)
	ctx, unlock, err := d.Lock(ctx, name)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	f, before, err := p.OpenFile(os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	if err := d.match(ctx, name, o.IfMatch); err != nil {
		return Report{}, err
	}
	after, err := d.holdOpen(ctx, name, f, Extended, o)
	if err != nil {
		return Report{}, Failed(p, err)
	}
	defer after()
	n, err := f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		return Report{}, nil
	}
	// What others appended meanwhile is not ours to cut.
	if now, serr := f.Stat(); serr == nil && now.Size() == before.Size()+int64(n) {
		f.Truncate(before.Size())
	}
	return Report{}, Failed(p, err)
}

// existing describes the regular file called name, or returns nil where there
// is none.
func (d *Dir) existing(name string) (*fileinfo.Info, error) {
	p := d.Child(name)
	i, err := fileinfo.At(d.root, d.file, name, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, Failed(p, err)
	case i.IsDir():
		return nil, isDirectory(p)
	case i.IsLink():
		return nil, nil // callers that follow links have done so: this one is replaced
	}
	return &i, place.Ordinary(p.Abs, i.Mode)
}

// match refuses a file whose etag is not want; "" is any or none.
func (d *Dir) match(ctx context.Context, name, want string) error {
	if want == "" {
		return nil
	}
	p := d.Child(name)
	f, _, err := p.OpenFileOnly()
	if err != nil {
		return missing(want, p, err)
	}
	defer f.Close()
	sum, err := etag.Sum(ctx, f)
	if err != nil {
		return Failed(p, err)
	}
	if have := etag.Of(sum); have != want {
		return fault.New(fault.PreconditionFailed, "%s has changed: its etag is %s, not the if_match given; read it again before writing", p.Abs, have)
	}
	return nil
}

func missing(ifMatch string, p place.Place, err error) error {
	if ifMatch != "" && errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.PreconditionFailed, "%s does not exist, so it has no etag that if_match could name; leave if_match out to create it", p.Abs)
	}
	return err
}

func isDirectory(p place.Place) error {
	return fault.New(fault.FSIsDirectory, "%s is a directory; name a file", p.Abs)
}

func exists(p place.Place) error {
	return fault.New(fault.FSAlreadyExists, "%s already exists, and the call asked not to overwrite; choose another name, or let it be overwritten", p.Abs)
}

// refused reports whether err is the system's refusal to create or rename
// where writing in place may still be possible.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV)
}

// Failed gives a failure to write p its code, and the name a caller knows in
// place of a temporary one. It returns nil for nil, and errors that have a code
// as they are.
func Failed(p place.Place, err error) error {
	if err == nil {
		return nil
	}
	if coded := new(fault.Error); errors.As(err, &coded) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	why := Cause(err)
	for _, known := range []error{fs.ErrNotExist, fs.ErrPermission, fs.ErrExist, syscall.EROFS, syscall.EISDIR, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG} {
		if errors.Is(why, known) {
			return &fs.PathError{Op: "write", Path: p.Abs, Err: why}
		}
	}
	return fault.Hide(fault.FSWriteFailed, err, "%s was not written: %s", p.Abs, why)
}

// Cause is what an error of package os says without the names in it.
func Cause(err error) error {
	if e := new(fs.PathError); errors.As(err, &e) {
		return e.Err
	}
	if e := new(os.LinkError); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Note says, each in a sentence after a space, what a reader of r should know.
func (r Report) Note() string {
	var note string
	if r.Parted {
		note += " The old file had other hard links; they keep its content."
	}
	if r.InPlace {
		note += " Written in place, not atomically: nothing could be created beside the file, or it could not be replaced."
	}
	return note
}
