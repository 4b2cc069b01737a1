package filetree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

const maxLevels = walk.MaxLevels

func tooDeep(abs string) error { return walk.TooDeep(abs, "work on its parts") }

// A copier is one run of Copy.
type copier struct {
	w     *atomicfile.Writer
	o     Options
	exact bool // for a move: links stay as they are, nothing is left out, all is verified and durable

	limit                         *parallel.Limit
	files, denied, special, links atomic.Int64
	inPlace, parted               atomic.Bool
}

func newCopier(w *atomicfile.Writer, o Options) *copier {
	return &copier{w: w, o: o, limit: parallel.NewLimit(runtime.GOMAXPROCS(0))}
}

func (c *copier) run(ctx context.Context, src place.Place, fi fs.FileInfo, to place.Place, there fs.FileInfo) (Report, error) {
	err := c.top(ctx, src, fi, to, there)
	return Report{Into: to.Abs, Files: c.files.Load(), Denied: c.denied.Load(), Special: c.special.Load(), Links: c.links.Load(),
		InPlace: c.inPlace.Load(), Parted: c.parted.Load()}, err
}

func (c *copier) top(ctx context.Context, src place.Place, fi fs.FileInfo, to place.Place, there fs.FileInfo) (err error) {
	var l level
	if fi.IsDir() {
		from, err := walk.Open(src)
		if err != nil {
			return err
		}
		defer from.Close()
		l = level{src: from, top: src.Abs, tops: []string{src.Abs}, dst: to, guarded: to.Guard.DeniedBelow(to.Abs)}
		if there != nil {
			return c.merge(ctx, l)
		}
	}
	parent, err := c.w.Open(to.Parent(), true)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := parent.Close(); err == nil {
			err = cerr
		}
	}()
	name := filepath.Base(to.Name)
	out := sink{dir: parent, root: parent.Root()}
	switch {
	case fi.IsDir():
		return c.fresh(ctx, l, parent, name)
	case c.exact && fi.Mode()&fs.ModeSymlink != 0:
		text, err := src.Readlink()
		if err != nil {
			return err
		}
		return c.symlink(ctx, text, out, name)
	}
	return c.file(ctx, src.Abs, src.OpenFileOnly, out, name)
}

// A level is one directory of the source and where it goes.
type level struct {
	src     *walk.Dir
	top     string      // root of the copied tree that src belongs to
	tops    []string    // top and, where a linked directory is copied, those it was reached from
	dst     place.Place // where it will be in the end
	guarded bool        // a deny rule may match below dst
	depth   int
}

func (l level) child(src *walk.Dir, name string) level {
	l.src, l.dst, l.depth = src, l.dst.Child(name), l.depth+1
	return l
}

// A sink is a directory that is being filled: one that exists (dir is set), in
// which every file is replaced whole, or one that nobody sees yet.
type sink struct {
	root *os.Root
	dir  *atomicfile.Dir
}

// fresh copies l to a new directory called name in parent, which appears once
// it is complete.
func (c *copier) fresh(ctx context.Context, l level, parent *atomicfile.Dir, name string) error {
	temp := atomicfile.TempName()
	err := c.mkdir(ctx, l, parent.Root(), temp)
	cancel := func() {}
	if err == nil && c.o.Keep != nil {
		cancel, err = leaveTree(ctx, c.o.Keep, parent, temp, name)
	}
	if err == nil {
		if err = atomicfile.Appear(parent, temp, name, l.dst); err == nil {
			return nil
		}
		cancel()
	}
	Discard(parent.Root(), temp)
	return err
}

// mkdir copies l to a new directory called name in root.
func (c *copier) mkdir(ctx context.Context, l level, root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil {
		return atomicfile.Failed(l.dst, err)
	}
	out, err := place.OpenRootIn(root, name)
	if err != nil {
		return atomicfile.Failed(l.dst, err)
	}
	defer out.Close()
	if err := c.fill(ctx, l, sink{root: out}); err != nil {
		return err
	}
	like, err := l.src.Stat()
	if err == nil {
		err = out.Chmod(".", like.Mode.Perm())
	}
	if err == nil {
		err = out.Chtimes(".", time.Time{}, like.Modified)
	}
	if err == nil && c.exact {
		err = atomicfile.Sync(out)
	}
	return atomicfile.Failed(l.dst, err)
}

// merge copies l into the directory that exists at its destination.
func (c *copier) merge(ctx context.Context, l level) (err error) {
	d, err := c.w.Open(l.dst, false)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := d.Close(); err == nil {
			err = cerr
		}
	}()
	return c.fill(ctx, l, sink{root: d.Root(), dir: d})
}

// filesAtATime is how many files one goroutine copies in a row.
const filesAtATime = 16

// fill copies what is in l.src to out.
func (c *copier) fill(ctx context.Context, l level, out sink) error {
	entries, denied, err := l.src.EntriesCounted()
	if err != nil {
		return err
	}
	c.denied.Add(int64(denied))
	return c.limit.Divide(func(d *parallel.Division) error {
		var files []string
		for _, e := range entries {
			err := ctx.Err()
			switch {
			case err != nil:
			case l.guarded && l.dst.Guard.Denied(filepath.Join(l.dst.Abs, e.Name)):
				c.denied.Add(1)
			case e.IsDir():
				err = d.Go(func() error { return c.subdirectory(ctx, l, e.Name, out) })
			case e.IsLink():
				err = c.link(ctx, l, e.Name, out)
			case e.Type.IsRegular():
				files = append(files, e.Name)
			case c.exact:
				err = place.Ordinary(l.src.Place().Child(e.Name).Abs, e.Type)
			default:
				c.special.Add(1)
			}
			if err != nil {
				return err
			}
		}
		for some := range slices.Chunk(files, filesAtATime) {
			if err := d.Go(func() error { return c.filesOf(ctx, l, some, out) }); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// filesOf copies the files of l.src with these names to out.
func (c *copier) filesOf(ctx context.Context, l level, names []string, out sink) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := filepath.Join(l.src.Place().Abs, name)
		if err := c.file(ctx, from, func() (*os.File, fs.FileInfo, error) { return l.src.OpenFile(name) }, out, name); err != nil {
			return atomicfile.Failed(l.dst.Child(name), err)
		}
	}
	return nil
}

func (c *copier) subdirectory(ctx context.Context, l level, name string, out sink) error {
	sub, err := l.src.Sub(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	return c.directory(ctx, l.child(sub, name), name, out)
}

// directory copies l to name in out.
func (c *copier) directory(ctx context.Context, l level, name string, out sink) error {
	if l.depth > maxLevels {
		return tooDeep(l.dst.Abs)
	}
	if out.dir == nil {
		return c.mkdir(ctx, l, out.root, name)
	}
	there, err := out.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.fresh(ctx, l, out.dir, name)
	case err != nil:
		return atomicfile.Failed(l.dst, err)
	case !there.IsDir():
		return fault.New(fault.FSIsFile, "%s is a file or link, so the directory of that name cannot be copied there", l.dst.Abs)
	}
	return c.merge(ctx, l)
}

// link copies the symbolic link called name: as a link where it leads to
// something in the tree, else what it leads to.
func (c *copier) link(ctx context.Context, l level, name string, out sink) error {
	text, err := l.src.Readlink(name)
	if err != nil {
		return err
	}
	if c.exact {
		return c.symlink(ctx, text, out, name)
	}
	at := l.src.Place()
	target, err := at.Guard.Resolve(filepath.Join(at.Abs, name))
	if err != nil {
		c.links.Add(1) // not allowed, or a loop
		return nil
	}
	if place.Within(target.Abs, l.top) {
		if !staysIn(text, at.Abs, l.top) {
			if text, err = filepath.Rel(at.Abs, target.Abs); err != nil {
				return err
			}
		}
		return c.symlink(ctx, text, out, name)
	}
	fi, err := stat(target)
	switch {
	case err != nil:
		return err
	case fi == nil:
		c.links.Add(1)
		return nil
	case fi.IsDir():
		for _, top := range l.tops {
			if place.Within(top, target.Abs) { // it would be copied into itself for ever
				c.links.Add(1)
				return nil
			}
		}
		sub, err := walk.Open(target)
		if err != nil {
			return err
		}
		defer sub.Close()
		in := l.child(sub, name)
		in.top, in.tops = target.Abs, append(slices.Clip(l.tops), target.Abs)
		return c.directory(ctx, in, name, out)
	case !fi.Mode().IsRegular():
		c.special.Add(1)
		return nil
	}
	return c.file(ctx, target.Abs, target.OpenFileOnly, out, name)
}

// staysIn reports whether a link in directory dir with this text never leaves
// top, so that it means the same wherever the tree is.
func staysIn(text, dir, top string) bool {
	at, err := filepath.Rel(top, dir)
	return err == nil && !filepath.IsAbs(text) && filepath.VolumeName(text) == "" && place.Stays(filepath.ToSlash(text), filepath.ToSlash(at))
}

// symlink makes a symbolic link called name in out.
func (c *copier) symlink(ctx context.Context, text string, out sink, name string) error {
	c.count()
	if out.dir == nil {
		return out.root.Symlink(text, name)
	}
	if there, err := out.root.Lstat(name); err == nil && there.IsDir() {
		return fault.New(fault.FSIsDirectory, "%s is a directory, so the link of that name cannot be put there", out.dir.Child(name).Abs)
	}
	return Symlink(ctx, out.dir, text, name, c.o)
}

func (c *copier) count() {
	n := c.files.Add(1)
	if c.o.Progress != nil {
		c.o.Progress(n)
	}
}
