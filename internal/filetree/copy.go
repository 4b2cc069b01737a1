// Package filetree copies, moves and deletes files and directory trees through
// open handles, so that no exchange of a directory for a link leads outside.
package filetree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/crew"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Options say how a tree is copied or moved.
type Options struct {
	Create   bool             // ERR_FS_ALREADY_EXISTS where something is at the destination
	Into     bool             // the destination was written as a directory, with a slash at its end
	Onto     bool             // the destination is the name of the result: a directory there is merged with or in the way
	Progress func(done int64) // called with the number of files done; may be nil
	Keep     Keeper           // where not nil, keeps what is replaced
}

// A Report says what copying or moving came to.
type Report struct {
	Into    string // absolute path of the result
	Files   int64  // files, and links kept as such, that were copied; 0 after a rename
	Denied  int64  // entries left out since a rule denies them
	Special int64  // devices, FIFOs and sockets left out
	Links   int64  // symbolic links left out: nothing there, not allowed, or a loop
	InPlace bool   // a file had to be written in place
	Parted  bool   // a file that was overwritten had other hard links
}

// Copy copies the file or directory src to dst, or into dst where that is a
// directory. Permissions and modification times are kept. Files that exist are
// replaced whole; a new tree appears at once when complete, or not at all. A
// link in a tree stays one where its target is in the tree; otherwise its
// content is copied.
func Copy(ctx context.Context, w *atomicfile.Writer, src, dst place.Place, o Options) (Report, error) {
	fi, err := src.Stat()
	if err != nil {
		return Report{}, err
	}
	to, there, err := destination(src, fi, dst, o)
	if err != nil {
		return Report{}, err
	}
	if err := compatible(src, fi, to, there, o.Create); err != nil {
		return Report{}, err
	}
	return newCopier(w, o).run(ctx, src, fi, to, there)
}

// destination returns where src goes, with what is there: dst, or the name of
// src in dst where that is a directory or, for a file, was written as one.
func destination(src place.Place, fi fs.FileInfo, dst place.Place, o Options) (place.Place, fs.FileInfo, error) {
	there, err := stat(dst)
	switch {
	case err != nil:
		return dst, nil, err
	case there != nil && o.Into && !there.IsDir():
		return dst, nil, fault.New(fault.FSIsFile, "%s is a file, and the destination ends in a slash as a directory does; leave the slash out to replace it", dst.Abs)
	case there != nil && there.IsDir() && !o.Onto, there == nil && o.Into && !fi.IsDir():
		if dst, err = dst.Guard.Resolve(filepath.Join(dst.Abs, filepath.Base(src.Asked))); err != nil {
			return dst, nil, err
		}
		there, err = stat(dst)
	}
	return dst, there, err
}

// stat is Stat with nil for what does not exist.
func stat(p place.Place) (fs.FileInfo, error) {
	fi, err := p.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return fi, err
}

// compatible refuses to put from at to, where there is: onto itself, into
// itself, a directory onto a file or the other way round.
func compatible(from place.Place, fi fs.FileInfo, to place.Place, there fs.FileInfo, create bool) error {
	if there != nil && (from.Abs == to.Abs || os.SameFile(fi, there)) {
		return fault.New(fault.FSOperation, "%s and %s are the same", from.Abs, to.Abs)
	}
	if fi.IsDir() && inside(fi, from, to) {
		return fault.New(fault.FSOperation, "%s lies inside %s; a directory cannot go into itself", to.Abs, from.Abs)
	}
	switch {
	case there == nil:
		return nil
	case create:
		return exists(to)
	case fi.IsDir() && !there.IsDir():
		return fault.New(fault.FSIsFile, "%s is a file, so the directory %s cannot go there; name a directory, or a path that does not exist", to.Abs, from.Abs)
	case !fi.IsDir() && there.IsDir():
		return fault.New(fault.FSIsDirectory, "%s is a directory, so the file %s cannot replace it; delete it first or choose another name", to.Abs, from.Abs)
	}
	return place.Ordinary(to.Abs, there.Mode())
}

// inside reports whether to lies in the directory from, by name or, for systems
// on which one file has several spellings, by what its parents are.
func inside(fi fs.FileInfo, from, to place.Place) bool {
	if within(to.Abs, from.Abs) {
		return true
	}
	for up := to; up.Name != "."; {
		up = up.Parent()
		if at, err := up.Stat(); err == nil && os.SameFile(at, fi) {
			return true
		}
	}
	return false
}

// within reports whether path is dir or lies below it, by components.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func exists(p place.Place) error {
	return fault.New(fault.FSAlreadyExists, "%s already exists, and overwrite is false; choose another name, or leave overwrite out", p.Abs)
}

// maxLevels is how deep a tree may be nested.
const maxLevels = 1000

func tooDeep(abs string) error {
	return fault.New(fault.TooDeep, "the tree is nested more than %d levels deep at %s…; work on its parts", maxLevels, strings.ToValidUTF8(abs[:min(len(abs), 200)], ""))
}

// A copier is one run of Copy.
type copier struct {
	w     *atomicfile.Writer
	o     Options
	exact bool // for a move: links stay as they are, nothing is left out, all is verified and durable

	slots                         chan struct{} // one for every goroutine at work
	files, denied, special, links atomic.Int64
	inPlace, parted               atomic.Bool
}

func newCopier(w *atomicfile.Writer, o Options) *copier {
	return &copier{w: w, o: o, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

func (c *copier) run(ctx context.Context, src place.Place, fi fs.FileInfo, to place.Place, there fs.FileInfo) (Report, error) {
	c.slots <- struct{}{}
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
		text, err := src.Root.Readlink(src.Name)
		if err != nil {
			return src.Explain(err)
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
		if err = atomicfile.Rename(parent, temp, parent, name, false); err == nil {
			return nil
		}
		cancel()
		if errors.Is(err, fs.ErrExist) {
			err = fault.New(fault.FSAlreadyExists, "%s was created by someone else meanwhile; look at it and try again", l.dst.Abs)
		} else {
			err = atomicfile.Failed(l.dst, err)
		}
	}
	discard(parent.Root(), temp)
	return err
}

// mkdir copies l to a new directory called name in root.
func (c *copier) mkdir(ctx context.Context, l level, root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil {
		return atomicfile.Failed(l.dst, err)
	}
	out, err := root.OpenRoot(name)
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
	var g group
	var files []string
	for _, e := range entries {
		if err := errors.Join(ctx.Err(), g.Err()); err != nil {
			break
		}
		if l.guarded && l.dst.Guard.Denied(filepath.Join(l.dst.Abs, e.Name)) {
			c.denied.Add(1)
			continue
		}
		switch {
		case e.IsDir():
			c.spawn(&g, func() error { return c.subdirectory(ctx, l, e.Name, out) })
		case e.IsLink():
			g.Do(func() error { return c.link(ctx, l, e.Name, out) })
		case e.Type.IsRegular():
			files = append(files, e.Name)
		case c.exact:
			g.Do(func() error { return place.Ordinary(l.src.Place().Child(e.Name).Abs, e.Type) })
		default:
			c.special.Add(1)
		}
	}
	for some := range slices.Chunk(files, filesAtATime) {
		c.spawn(&g, func() error {
			for _, name := range some {
				if err := errors.Join(ctx.Err(), g.Err()); err != nil {
					return err
				}
				from := filepath.Join(l.src.Place().Abs, name)
				if err := c.file(ctx, from, func() (*os.File, fs.FileInfo, error) { return l.src.OpenFile(name) }, out, name); err != nil {
					return atomicfile.Failed(l.dst.Child(name), err)
				}
			}
			return nil
		})
	}
	if err := c.wait(&g); err != nil {
		return err
	}
	return ctx.Err()
}

type group = crew.Group

// spawn runs f in a goroutine of its own where a processor is free, else here.
func (c *copier) spawn(g *group, f func() error) {
	select {
	case c.slots <- struct{}{}:
		g.Go(func() error {
			defer func() { <-c.slots }()
			return f()
		})
	default:
		g.Do(f)
	}
}

// wait waits for g and lets others have the processor meanwhile.
func (c *copier) wait(g *group) error {
	<-c.slots
	err := g.Wait()
	c.slots <- struct{}{}
	return err
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
	if within(target.Abs, l.top) {
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
			if within(top, target.Abs) { // it would be copied into itself for ever
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
	if filepath.IsAbs(text) {
		return false
	}
	at, err := filepath.Rel(top, dir)
	if err != nil {
		return false
	}
	for e := range strings.SplitSeq(filepath.ToSlash(text), "/") {
		if at = filepath.Join(at, e); !filepath.IsLocal(at) {
			return false
		}
	}
	return true
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

// Symlink makes a symbolic link called name in d, in place of a file or link
// that is there unless o says Create.
func Symlink(ctx context.Context, d *atomicfile.Dir, text, name string, o Options) error {
	ctx, unlock, err := d.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	temp := atomicfile.TempName()
	err = d.Root().Symlink(text, temp)
	if err == nil {
		cancel := leaveLink(ctx, o.Keep, d, temp, name)
		if err = atomicfile.Rename(d, temp, d, name, !o.Create); err != nil {
			cancel()
			d.Root().Remove(temp)
		}
	}
	if o.Create && errors.Is(err, fs.ErrExist) {
		return exists(d.Child(name))
	}
	return atomicfile.Failed(d.Child(name), err)
}

// file copies the regular file from, which open opens, to name in out.
func (c *copier) file(ctx context.Context, from string, open func() (*os.File, fs.FileInfo, error), out sink, name string) error {
	f, fi, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	fill := func(to *os.File) error {
		err := transfer(ctx, to, f, fi.Size())
		if err == nil && c.exact {
			err = verify(ctx, to, f)
		}
		if at := new(fs.PathError); errors.As(err, &at) && at.Op == "read" {
			return fault.Hide(fault.FSReadFailed, err, "%s could not be read to its end: %s", from, at.Err)
		}
		return err
	}
	if out.dir == nil {
		err = c.newFile(out.root, name, fi, fill)
	} else {
		mode := atomicfile.Overwrite
		if c.o.Create {
			mode = atomicfile.Create
		}
		var r atomicfile.Report
		if r, err = out.dir.Write(ctx, name, atomicfile.Options{Mode: mode, Like: fi, Keep: c.o.Keep}, fill); r.InPlace {
			c.inPlace.Store(true)
		}
		if r.Parted {
			c.parted.Store(true)
		}
	}
	if err == nil {
		c.count()
	}
	return err
}

// newFile writes a new file in a directory that nobody sees yet.
func (c *copier) newFile(root *os.Root, name string, like fs.FileInfo, fill func(*os.File) error) error {
	f, fi, err := place.Place{Root: root, Name: name}.OpenFile(os.O_RDWR|os.O_CREATE|os.O_EXCL, like.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := fill(f); err != nil {
		return err
	}
	if fi.Mode().Perm() != like.Mode().Perm() {
		if err := f.Chmod(like.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := atomicfile.SetModified(f, root, name, like.ModTime()); err != nil {
		return err
	}
	if c.exact {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

const (
	smallFile = 256 << 10
	stretch   = 32 << 20 // copied between two looks at ctx
)

var buffers = sync.Pool{New: func() any { return new([smallFile]byte) }}

// transfer copies the content of from to to. The kernel does it for large
// files; small ones take fewer calls by way of a buffer.
func transfer(ctx context.Context, to, from *os.File, size int64) error {
	if size > smallFile {
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := io.CopyN(to, from, stretch); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	buf := buffers.Get().(*[smallFile]byte)
	defer buffers.Put(buf)
	for done := int64(0); ; {
		n, err := from.Read(buf[:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return err
		}
		if done += int64(n); done == size && n < len(buf) {
			return nil // as long as it was told to be, and no more to be had
		}
	}
}

// verify compares what was written with what it was read from.
func verify(ctx context.Context, to, from *os.File) error {
	var sums [2][]byte
	for i, f := range []*os.File{to, from} {
		at, err := f.Seek(0, io.SeekCurrent)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			sums[i], err = etag.Sum(ctx, f)
		}
		if err == nil {
			_, err = f.Seek(at, io.SeekStart)
		}
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return errors.New("the copy differs from the original, which may have changed meanwhile")
	}
	return nil
}

func (c *copier) count() {
	n := c.files.Add(1)
	if c.o.Progress != nil {
		c.o.Progress(n)
	}
}

// Message says what r came to, for a reader: verb is "Copied" or "Moved".
func (r Report) Message(verb string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s.", verb, r.Into)
	if r.Files > 1 {
		fmt.Fprintf(&b, " %d files.", r.Files)
	}
	for _, left := range []struct {
		n    int64
		what string
	}{
		{r.Denied, "denied by a rule of this server"},
		{r.Special, "special files"},
		{r.Links, "symbolic links to what is missing, not allowed or a loop"},
	} {
		if left.n > 0 {
			fmt.Fprintf(&b, " Left out as %s: %d.", left.what, left.n)
		}
	}
	b.WriteString(atomicfile.Report{Parted: r.Parted, InPlace: r.InPlace}.Note())
	return b.String()
}
