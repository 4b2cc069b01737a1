package zipws

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An unpacking writes entries of a zip to a directory.
type unpacking struct {
	*session
	from      io.ReaderAt
	directory *zipfile.Directory
	to        *os.Root
	stamps    []stamp // of what was written, by entry
	progress  func(done, total int64)
	links     map[string]bool // names of symbolic links
	done      atomic.Int64
	total     int64
}

const (
	batchFiles = 64      // most files that a worker unpacks in a row
	batchBytes = 1 << 20 // as well as most bytes, compressed
)

// run unpacks the entries that want chooses, several at a time. What is at their
// place already stays.
func (u *unpacking) run(ctx context.Context, want func(i int) bool) error {
	var files, links []int
	dirs := map[string]fs.FileMode{}
	u.links = map[string]bool{}
	for i := range u.directory.Entries {
		e := &u.directory.Entries[i]
		if e.Hidden || e.Name == "" || !want(i) {
			continue
		}
		for dir := path.Dir(e.Name); dir != "."; dir = path.Dir(dir) {
			if _, known := dirs[dir]; known {
				break
			}
			dirs[dir] = 0o755
		}
		switch {
		case e.IsDir():
			dirs[e.Name] = e.Mode.Perm()&0o755 | 0o700
		case !e.IsLink():
			files = append(files, i)
		case u.Links:
			links = append(links, i)
			u.links[e.Name] = true
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(dirs), walk.ComparePaths) {
		u.m.step("unpack directory")
		if err := u.to.Mkdir(name, dirs[name]); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	u.total = int64(len(files) + len(links))
	if err := u.all(ctx, files); err != nil {
		return err
	}
	for _, i := range links {
		if err := u.link(i); err != nil {
			return err
		}
	}
	return nil
}

// all unpacks files on all processors.
func (u *unpacking) all(ctx context.Context, files []int) error {
	work := make(chan []int)
	group, ctx := parallel.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			w := unpacker{unpacking: u, out: make([]byte, 256<<10)}
			for batch := range work {
				if err := w.batch(ctx, batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for len(files) > 0 && ctx.Err() == nil {
		e := &u.directory.Entries[files[0]]
		dir, n, bytes := path.Dir(e.Name), 1, e.Compressed
		for n < len(files) && n < batchFiles && bytes < batchBytes {
			next := &u.directory.Entries[files[n]]
			if path.Dir(next.Name) != dir {
				break
			}
			bytes += next.Compressed
			n++
		}
		select {
		case work <- files[:n]:
		case <-ctx.Done():
		}
		files = files[n:]
	}
	close(work)
	ended := context.Cause(ctx) // Wait ends it too
	return cmp.Or(group.Wait(), ended)
}

// An unpacker is one worker of an unpacking.
type unpacker struct {
	*unpacking
	in, out []byte
}

// batch unpacks files of one directory.
func (w *unpacker) batch(ctx context.Context, list []int) error {
	dir, err := w.to.OpenRoot(path.Dir(w.directory.Entries[list[0]].Name))
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, i := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.m.step("unpack file")
		if w.stamps[i], err = w.file(ctx, dir, &w.directory.Entries[i]); err != nil {
			return err
		}
		if done := w.done.Add(1); w.progress != nil {
			w.progress(done, w.total)
		}
	}
	return nil
}

// unpackedMode is the permissions that the file of e gets.
func unpackedMode(e *zipfile.Entry) fs.FileMode { return e.Mode.Perm()&0o755 | 0o600 }

func (w *unpacker) file(ctx context.Context, dir *os.Root, e *zipfile.Entry) (stamp, error) {
	base := path.Base(e.Name)
	name := base
	if w.Lazy { // a part of it would count as written
		if _, err := dir.Lstat(base); err == nil {
			return stamp{}, nil
		}
		name = atomicfile.TempName()
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, unpackedMode(e))
	if errors.Is(err, fs.ErrExist) {
		return stamp{}, fault.New(ZipInvalid, "the archive has %s under two names that are one on this system", entryname.Shown(e.Name))
	}
	if err != nil {
		return stamp{}, err
	}
	defer f.Close()
	if err := w.copy(ctx, f, e); err != nil {
		dir.Remove(name)
		return stamp{}, err
	}
	if err := f.Close(); err != nil {
		return stamp{}, err
	}
	if err := dir.Chtimes(name, time.Time{}, e.Modified); err != nil {
		return stamp{}, err
	}
	if w.Lazy {
		if err := dir.Rename(name, base); err != nil {
			return stamp{}, err
		}
	}
	fi, err := dir.Lstat(base)
	if err != nil {
		return stamp{}, err
	}
	return stampOf(fi), nil
}

// copy writes the content of e to f. What is small is read at once.
func (w *unpacker) copy(ctx context.Context, f *os.File, e *zipfile.Entry) error {
	from := w.from
	if n := e.End - e.Begin; n <= batchBytes {
		if int64(cap(w.in)) < n {
			w.in = make([]byte, batchBytes)
		}
		w.in = w.in[:n]
		if n, err := w.from.ReadAt(w.in, e.Begin); n < len(w.in) {
			return fault.Hide(ZipInvalid, err, "the content of %s is damaged or truncated in the archive", entryname.Shown(e.Name))
		}
		from = zipfile.Section{Bytes: w.in, Start: e.Begin}
	}
	c, err := e.Open(from)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := fillBuffer(c, w.out)
		if n > 0 {
			if _, err := f.Write(w.out[:n]); err != nil {
				return fault.Hide(IOError, err, "%s could not be unpacked, and nothing was left: %s", entryname.Shown(e.Name), atomicfile.Cause(err))
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fillBuffer is io.ReadFull that tells the end as [io.EOF].
func fillBuffer(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var read int
		read, err = r.Read(b[n:])
		n += read
	}
	return n, err
}

// link makes the symbolic link i. It may lead up from where it is and then down
// again, but not up once it has passed another link of the archive.
func (u *unpacking) link(i int) error {
	e := &u.directory.Entries[i]
	text, err := linkText(e, u.from)
	if err != nil {
		return err
	}
	outside := fault.New(ZipInvalid, "the archive has the symbolic link %s, which leads or may lead outside (%q); nothing was unpacked", entryname.Shown(e.Name), entryname.Shown(text))
	if !entryname.LinkStays(text, path.Dir(e.Name)) {
		return outside
	}
	at, passed := path.Dir(e.Name), false
	for part := range strings.SplitSeq(text, "/") {
		if part == ".." && passed {
			return outside
		}
		at = path.Join(at, part)
		passed = passed || u.links[at]
	}
	u.m.step("unpack link")
	if err := u.to.Symlink(text, e.Name); err != nil && !(errors.Is(err, fs.ErrExist) && u.Lazy) {
		return err
	}
	fi, err := u.to.Lstat(e.Name)
	if err != nil {
		return err
	}
	u.stamps[i] = stampOf(fi)
	return nil
}

// linkText is where the symbolic link e leads.
func linkText(e *zipfile.Entry, r io.ReaderAt) (string, error) {
	if e.Size > entryname.MaxLen {
		return "", fault.New(ZipInvalid, "the symbolic link %s has a text that is too long", entryname.Shown(e.Name))
	}
	c, err := e.Open(r)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	return string(b), err
}
