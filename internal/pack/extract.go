package pack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
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
			return fault.New(fault.FSAccessDenied, "the archive has %s, which a rule of this server denies (CONDUIT_DENIED_PATHS, or by default the well-known places of credentials); nothing was unpacked. Leave it out with exclude", entryname.Shown(name))
		}
	}
	return nil
}

// there tells what is at the destination before the archive is unpacked.
func (x *extractor) there(name string) (fs.FileMode, bool) {
	fi, err := x.dst.Child(filepath.FromSlash(name)).Stat()
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
