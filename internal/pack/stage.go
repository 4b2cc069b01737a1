package pack

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A stage is a temporary directory in which an archive is unpacked. From there
// it appears at the destination.
type stage struct {
	w     *atomicfile.Writer
	dst   place.Place
	fresh bool            // the destination does not exist yet
	up    *atomicfile.Dir // the destination, or the deepest directory above it that exists
	temp  string          // name of the stage in up
	first string          // name that it gets in up
	inner string          // where the content is in it, for missing directories above the destination
	root  *os.Root        // handle of the content
	umask fs.FileMode     // permissions that new files do not get

	mu   sync.Mutex
	dirs map[string]*openDir
}

// An openDir is a directory of the stage that is kept open for a while.
type openDir struct {
	root  *os.Root
	users int
}

// newStage makes a stage for dst. It must be closed.
func newStage(w *atomicfile.Writer, dst place.Place) (*stage, error) {
	s := &stage{w: w, dst: dst, dirs: map[string]*openDir{}}
	at := dst
	var missing []string
	for {
		fi, err := at.Stat()
		if err == nil && fi.IsDir() {
			break
		}
		if err == nil {
			return nil, fault.New(fault.ArchivePath, "%s is a file; name a directory to unpack into, or a path that does not exist", at.Abs)
		}
		if !errors.Is(err, fs.ErrNotExist) || at.Name == "." {
			return nil, err
		}
		missing = append(missing, filepath.Base(at.Name))
		at = at.Parent()
	}
	slices.Reverse(missing)
	s.fresh = len(missing) > 0
	up, err := w.Open(at, false)
	if err != nil {
		return nil, err
	}
	s.up, s.temp = up, atomicfile.TempName()
	if s.fresh {
		s.first, s.inner = missing[0], path.Join(missing[1:]...)
	}
	if err := s.make(); err != nil {
		s.close()
		return nil, atomicfile.Failed(dst, err)
	}
	return s, nil
}

func (s *stage) make() error {
	in := s.up.Root()
	if err := in.Mkdir(s.temp, 0o777); err != nil {
		return err
	}
	fi, err := in.Lstat(s.temp)
	if err != nil {
		return err
	}
	s.umask = 0o777 &^ fi.Mode().Perm()
	if err := in.Chmod(s.temp, 0o700); err != nil {
		return err
	}
	at := s.temp
	if s.inner != "" {
		at = s.temp + "/" + s.inner
		if err := in.MkdirAll(at, 0o777); err != nil {
			return err
		}
	}
	s.root, err = place.Place{Root: in, Name: filepath.FromSlash(at)}.OpenRoot()
	return err
}

// close removes what is left of the stage.
func (s *stage) close() error {
	for _, d := range s.dirs {
		d.root.Close()
	}
	if s.root != nil {
		s.root.Close()
	}
	filetree.Discard(s.up.Root(), s.temp)
	return s.up.Close()
}

// maxOpenDirs is how many directories of a stage are kept open.
const maxOpenDirs = 32

// dir opens the directory called name, "." for the top. It is used until it is
// given back by free.
func (s *stage) dir(name string) (*openDir, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.dirs[name]; ok {
		d.users++
		return d, nil
	}
	if len(s.dirs) >= maxOpenDirs {
		for name, d := range s.dirs {
			if d.users == 0 {
				d.root.Close()
				delete(s.dirs, name)
			}
		}
	}
	root, err := s.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	d := &openDir{root, 1}
	s.dirs[name] = d
	return d, nil
}

func (s *stage) free(d *openDir) {
	s.mu.Lock()
	d.users--
	s.mu.Unlock()
}

// in calls f with the directory that the item called name is in, and its name
// there.
func (s *stage) in(name string, f func(dir *os.Root, base string) error) error {
	d, err := s.dir(path.Dir(name))
	if err != nil {
		return err
	}
	defer s.free(d)
	return f(d.root, path.Base(name))
}

// finish gives the directories of p their permissions and times and makes its
// links. Nothing else is created in the stage after that.
func (s *stage) finish(ctx context.Context, p *plan) error {
	for _, name := range p.those((*item).isLink) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.in(name, func(dir *os.Root, base string) error { return s.symlink(dir, base, p.items[name]) }); err != nil {
			return err
		}
	}
	for _, name := range slices.Backward(p.those((*item).isDir)) {
		if err := s.in(name, func(dir *os.Root, base string) error { return s.setAttributes(dir, base, p.items[name]) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) symlink(dir *os.Root, base string, i *item) error {
	if err := dir.Symlink(filepath.FromSlash(i.link), base); err != nil {
		return sameName(base, err)
	}
	if !i.modified.IsZero() {
		setLinkTime(dir, base, i.modified) // where the system can
	}
	return nil
}

// setAttributes gives the directory base its permissions and time.
func (s *stage) setAttributes(dir *os.Root, base string, i *item) error {
	if !i.modified.IsZero() {
		if err := dir.Chtimes(base, time.Time{}, i.modified); err != nil {
			return err
		}
	}
	return dir.Chmod(base, i.mode.Perm()&^s.umask)
}

// sameName explains that a name is taken which the archive has only once, by one
// that the file system holds for the same.
func sameName(name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fault.Hide(fault.Unarchive, err, "the archive has two entries called %s that differ only in case or Unicode form, which are one file here; nothing was unpacked", entryname.Shown(name))
	}
	return err
}

// appear moves what was unpacked to the destination.
func (s *stage) appear(ctx context.Context, p *plan, overwrite bool) error {
	if s.fresh {
		return s.rename()
	}
	m := merger{stage: s, plan: p, overwrite: overwrite, children: map[string][]string{}}
	for _, name := range p.names() {
		dir := path.Dir(name)
		m.children[dir] = append(m.children[dir], path.Base(name))
	}
	top, err := s.up.Root().Stat(".")
	if err != nil {
		return err
	}
	m.device = fileinfo.From(top).ID.Device
	if err := m.survey(ctx, s.up.Root(), "."); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	from, err := s.w.Open(place.Place{Root: s.up.Root(), Name: s.temp, Abs: filepath.Join(s.dst.Abs, s.temp)}, false)
	if err != nil {
		return err
	}
	defer from.Close()
	return m.merge(from, s.up, ".")
}

// rename lets a destination that does not exist appear.
func (s *stage) rename() error {
	for at := s.inner; at != "" && at != "."; at = path.Dir(at) {
		if err := s.up.Child(filepath.Join(s.temp, filepath.FromSlash(at))).Chmod(0o777 &^ s.umask); err != nil {
			return atomicfile.Failed(s.dst, err)
		}
	}
	if err := s.up.Child(s.temp).Chmod(0o777 &^ s.umask); err != nil {
		return atomicfile.Failed(s.dst, err)
	}
	return atomicfile.Appear(s.up, s.temp, s.first, s.dst)
}

// A merger moves what was unpacked into a directory that exists.
type merger struct {
	*stage
	plan      *plan
	overwrite bool
	device    uint64
	children  map[string][]string // names in each directory, in order
}

// survey refuses what would fail later, while nothing has been moved: to is the
// directory called name at the destination.
func (m *merger) survey(ctx context.Context, to *os.Root, name string) error {
	for _, base := range m.children[name] {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := path.Join(name, base)
		abs := filepath.Join(m.dst.Abs, filepath.FromSlash(at))
		there, err := to.Lstat(base)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return atomicfile.Failed(m.dst.Child(at), err)
		}
		i := m.plan.items[at]
		switch {
		case i.isDir() && there.Mode()&fs.ModeSymlink != 0:
			return fault.New(fault.Unarchive, "%s is a symbolic link, and archives are not unpacked through links; nothing was unpacked. Remove it, or choose another destination", abs)
		case i.isDir() && !there.IsDir():
			return fault.New(fault.Unarchive, "%s is a file, and the archive has a directory of that name; nothing was unpacked. Choose another destination", abs)
		case !i.isDir() && there.IsDir():
			return fault.New(fault.Unarchive, "%s is a directory, and the archive has a file or link of that name; nothing was unpacked. Choose another destination", abs)
		case !i.isDir() && !m.overwrite:
			return fault.New(fault.FSAlreadyExists, "%s already exists, and overwrite is false; nothing was unpacked. Choose another destination, or leave overwrite out", abs)
		}
		if !i.isDir() {
			continue
		}
		if id := fileinfo.From(there).ID; id.Device != m.device && id.Device != 0 {
			return fault.New(fault.FSOperation, "%s is on another file system than %s; nothing was unpacked. Unpack into it by itself", abs, m.dst.Abs)
		}
		sub, err := place.OpenRootIn(to, base)
		if err != nil {
			return atomicfile.Failed(m.dst.Child(at), err)
		}
		err = m.survey(ctx, sub, at)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// merge moves what is in the directory called name from the stage to its place,
// each file and each directory that is new as a whole.
func (m *merger) merge(from, to *atomicfile.Dir, name string) error {
	for _, base := range m.children[name] {
		at := path.Join(name, base)
		i := m.plan.items[at]
		if i.isDir() {
			if err := m.mergeDir(from, to, at, i); err != nil {
				return err
			}
			continue
		}
		if err := atomicfile.Rename(from, base, to, base, m.overwrite); err != nil {
			return m.failed(at, err)
		}
	}
	return nil
}

func (m *merger) mergeDir(from, to *atomicfile.Dir, at string, i *item) (err error) {
	base := path.Base(at)
	// To be moved, or to be emptied, it must be writable.
	if err := from.Root().Chmod(base, 0o700); err != nil {
		return m.failed(at, err)
	}
	if _, err := to.Root().Lstat(base); errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.Rename(from, base, to, base, false); err != nil {
			return m.failed(at, err)
		}
		return m.failed(at, m.setAttributes(to.Root(), base, i))
	}
	in, err := m.w.Open(from.Child(base), false)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := m.w.Open(to.Child(base), false)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	if err := m.merge(in, out, at); err != nil {
		return err
	}
	if i.explicit && !i.modified.IsZero() {
		to.Root().Chtimes(base, time.Time{}, i.modified) // it may belong to someone else
	}
	return nil
}

// failed gives a failure to move the item called at its code.
func (m *merger) failed(at string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) && !m.overwrite {
		return fault.New(fault.FSAlreadyExists, "%s appeared while the archive was unpacked, and overwrite is false; what was before it in the archive is in place", filepath.Join(m.dst.Abs, at))
	}
	return fault.Hide(fault.Unarchive, err, "%s could not be put in place: %s; what was before it in the archive is", filepath.Join(m.dst.Abs, at), atomicfile.Cause(err))
}
