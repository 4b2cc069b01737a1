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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// OpenOptions say how an archive is opened.
type OpenOptions struct {
	Name     string                  // of the session; empty: made from that of the archive
	Lazy     bool                    // unpack nothing until [Manager.Path] asks for it
	MaxSize  int64                   // instead of Settings.MaxSize, where it is smaller; 0: no
	Progress func(done, total int64) // called with the number of files done; may be nil
}

// Open makes a session of the archive src. An archive with an entry that is not
// safe, or that exceeds a limit, is refused, and nothing is left behind. What is
// merely odd is told as a warning.
func (m *Manager) Open(ctx context.Context, src place.Place, o OpenOptions) (opened Opened, err error) {
	var warnings []string
	if why := badSessionName(o.Name); o.Name != "" && why != "" {
		return opened, fault.New(InvalidParams, "the session name %q %s", clip(o.Name), why)
	}
	if _, err := m.Host.Resolve(src.Abs); err != nil {
		return opened, err // the session would be lost to us
	}
	f, fi, err := src.OpenFileOnly()
	if code, message := fault.Of(err); err != nil && code == fault.FSIsDirectory {
		return opened, fault.Hide(ZipInvalid, err, "%s", message)
	} else if err != nil {
		return opened, notFound(src.Abs, err)
	}
	defer f.Close()
	format, err := pack.Detect(f, fi.Size(), src.Abs)
	if code, _ := fault.Of(err); err != nil && code == fault.ArchiveDetect {
		return opened, fault.Hide(ZipInvalid, err, "%s is not recognized as an archive; these are opened: %s", src.Abs, strings.Join(pack.Formats(), ", "))
	} else if err != nil {
		return opened, err
	}
	limits := m.Settings
	if o.MaxSize > 0 {
		limits.MaxSize = min(limits.MaxSize, o.MaxSize)
	}
	var d *directory
	if format == pack.Zip {
		if d, err = readDirectory(f, fi.Size()); err != nil {
			return opened, invalid(src.Abs, err)
		}
		if warnings, err = d.check(limits); err != nil {
			return opened, err
		}
	} else if o.Lazy {
		return opened, fault.New(InvalidParams, "lazy works for zip archives, and %s is %s; leave lazy out", src.Abs, format)
	}
	st, err := m.state(true)
	if err != nil {
		return opened, err
	}
	defer st.Close()
	s, err := m.reserve(ctx, st, src, o.Name, d)
	if err != nil {
		return opened, err
	}
	defer s.release()
	defer func() {
		if err != nil {
			s.root.Close()
			m.remove(st, s.Name)
		}
	}()
	s.Format, s.Lazy, s.Links, s.Archive, s.source = format, o.Lazy, m.Links, stampOf(fi), src
	if d != nil {
		err = s.fill(ctx, f, d, o.Progress)
	} else {
		err = s.unpack(ctx, limits, o.Progress)
	}
	if err != nil {
		return opened, err
	}
	if now, err := f.Stat(); err != nil || stampOf(now) != s.Archive {
		return opened, fault.Hide(ConflictDetected, err, "%s was modified while it was opened; open it again", src.Abs)
	}
	if err := s.save(); err != nil {
		return opened, err
	}
	if _, err := m.list(st); err != nil { // tells the Host
		return opened, err
	}
	opened = Opened{ID: s.ID, Name: s.Name, Files: s.Files, Bytes: s.Bytes, Lazy: s.Lazy, ReadOnly: s.Format != pack.Zip, Warnings: warnings}
	if !s.Lazy {
		opened.Path = m.contents(s.Name)
	}
	return opened, nil
}

// invalid is why the file at path is no zip that can be opened.
func invalid(path string, err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) {
		return err
	}
	return fault.Hide(ZipInvalid, err, "%s is not a valid zip archive; it is damaged or truncated", path)
}

// reserve makes the directory of a new session and locks it.
func (m *Manager) reserve(ctx context.Context, st *os.Root, src place.Place, name string, d *directory) (*session, error) {
	all, err := m.lock(ctx, st, allLock, true, m.wait)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	list, err := m.everything(st)
	if err != nil {
		return nil, err
	}
	taken, err := namesIn(st, workspacesDir)
	if err != nil {
		return nil, err
	}
	taken = slices.DeleteFunc(taken, func(n string) bool { return strings.HasPrefix(n, gonePrefix) })
	s := &session{m: m, st: st}
	if d != nil {
		s.Files, s.Bytes = d.size()
	}
	total := s.Bytes
	for _, other := range list {
		total += other.Bytes
	}
	switch {
	case name == "":
		name = nameFor(src.Abs, func(n string) bool { return slices.Contains(taken, n) })
	case slices.Contains(taken, name):
		return nil, fault.New(NameCollision, "a session called %s is open already; give another name, or close that one", name)
	}
	switch {
	case int64(len(taken)) >= m.MaxOpen:
		return nil, fault.New(LimitExceeded, "%s open, which is the most (CONDUIT_ZIP_MAX_SESSIONS); close one first", plural(len(taken), "session is", "sessions are"))
	case total > maxTotalDisk:
		return nil, fault.New(LimitExceeded, "the open sessions would take more than %d bytes together; close one first, or open this one with lazy", int64(maxTotalDisk))
	}
	s.ID, s.Name, s.Source, s.State, s.Created = newID(), name, src.Abs, stateOpen, m.Now().UTC()
	m.step("lock")
	if s.held, err = m.lock(ctx, st, name, true, m.wait); err != nil {
		return nil, err
	}
	path := filepath.Join(workspacesDir, name)
	m.step("make workspace")
	if err = st.Mkdir(path, 0o700); err == nil {
		s.root, err = st.OpenRoot(path)
	}
	if err == nil {
		m.step("make contents")
		err = s.root.Mkdir(contentsDir, 0o700)
	}
	if err != nil {
		s.release()
		m.remove(st, name)
		return nil, err
	}
	return s, nil
}

// fill unpacks the zip with directory d into a new session, unless it is lazy.
func (s *session) fill(ctx context.Context, f *os.File, d *directory, progress func(done, total int64)) error {
	stamps := make([]stamp, len(d.entries))
	if !s.Lazy {
		contents, err := s.contents()
		if err != nil {
			return err
		}
		defer contents.Close()
		u := unpacking{session: s, from: f, directory: d, to: contents, stamps: stamps, progress: progress}
		if err := u.run(ctx, func(int) bool { return true }); err != nil {
			return err
		}
	}
	s.Hash = d.hash()
	return s.keep(s.Generation, d, stamps)
}

// keep writes the files of a generation.
func (s *session) keep(generation int, d *directory, stamps []stamp) error {
	s.m.step("write directory")
	if err := writeDurably(s.root, part("directory", generation), d.raw); err != nil {
		return err
	}
	s.m.step("write stamps")
	return writeDurably(s.root, part("stamps", generation), appendStamps(make([]byte, 0, stampSize*len(stamps)), stamps))
}

// contents opens the directory of the session's files.
func (s *session) contents() (*os.Root, error) { return s.root.OpenRoot(contentsDir) }

// unpack unpacks an archive that is not a zip. Such a session is read-only.
func (s *session) unpack(ctx context.Context, limits Settings, progress func(done, total int64)) error {
	if err := s.root.Remove(contentsDir); err != nil {
		return err
	}
	abs := filepath.Join(s.m.Data, workspacesDir, s.Name, contentsDir)
	dst := place.Place{Root: s.root, Name: contentsDir, Abs: abs, Asked: abs}
	o := pack.ExtractOptions{Format: s.Format, MaxBytes: limits.MaxSize, Progress: progress}
	if _, err := pack.Extract(ctx, s.m.files, s.source, dst, o); err != nil {
		if code, _ := fault.Of(err); code == fault.LimitExceeded {
			return fault.Hide(ZipBomb, err, "the archive %s unpacks to more than the limits allow (CONDUIT_ZIP_MAX_EXTRACTED_SIZE is %d bytes)", s.Source, limits.MaxSize)
		}
		return err
	}
	files, err := s.disk(ctx)
	if err != nil {
		return err
	}
	for _, n := range files {
		if !n.isDir() {
			s.Files++
			s.Bytes += n.size
		}
	}
	if int64(len(files)) > limits.MaxFiles {
		return fault.New(ZipBomb, "the archive has %d entries, more than CONDUIT_ZIP_MAX_FILE_COUNT (%d)", len(files), limits.MaxFiles)
	}
	return s.root.Chmod(contentsDir, 0o700)
}

// An unpacking writes entries of a zip to a directory.
type unpacking struct {
	*session
	from      io.ReaderAt
	directory *directory
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
	for i := range u.directory.entries {
		e := &u.directory.entries[i]
		if e.hidden || e.name == "" || !want(i) {
			continue
		}
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			if _, known := dirs[dir]; known {
				break
			}
			dirs[dir] = 0o755
		}
		switch {
		case e.isDir():
			dirs[e.name] = e.mode.Perm()&0o755 | 0o700
		case !e.isLink():
			files = append(files, i)
		case u.Links:
			links = append(links, i)
			u.links[e.name] = true
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
		e := &u.directory.entries[files[0]]
		dir, n, bytes := path.Dir(e.name), 1, e.csize
		for n < len(files) && n < batchFiles && bytes < batchBytes {
			next := &u.directory.entries[files[n]]
			if path.Dir(next.name) != dir {
				break
			}
			bytes += next.csize
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
	dir, err := w.to.OpenRoot(path.Dir(w.directory.entries[list[0]].name))
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, i := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.m.step("unpack file")
		if w.stamps[i], err = w.file(ctx, dir, &w.directory.entries[i]); err != nil {
			return err
		}
		if done := w.done.Add(1); w.progress != nil {
			w.progress(done, w.total)
		}
	}
	return nil
}

func (w *unpacker) file(ctx context.Context, dir *os.Root, e *entry) (stamp, error) {
	base := path.Base(e.name)
	name := base
	if w.Lazy { // a part of it would count as written
		if _, err := dir.Lstat(base); err == nil {
			return stamp{}, nil
		}
		name = atomicfile.TempName()
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, e.mode.Perm()&0o755|0o600)
	if errors.Is(err, fs.ErrExist) {
		return stamp{}, fault.New(ZipInvalid, "the archive has %s under two names that are one on this system", pack.Shown(e.name))
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
	if err := dir.Chtimes(name, time.Time{}, e.mtime); err != nil {
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
func (w *unpacker) copy(ctx context.Context, f *os.File, e *entry) error {
	from := w.from
	if n := e.end - e.at; n <= batchBytes {
		if int64(cap(w.in)) < n {
			w.in = make([]byte, batchBytes)
		}
		w.in = w.in[:n]
		if n, err := w.from.ReadAt(w.in, e.at); n < len(w.in) {
			return e.damaged(err)
		}
		from = tail{w.in, e.at}
	}
	c, err := e.open(from)
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
				return fault.Hide(IOError, err, "%s could not be unpacked, and nothing was left: %s", pack.Shown(e.name), atomicfile.Cause(err))
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

const maxLink = 4096 // bytes of the text of a link

// linkText is where the symbolic link e leads.
func (e *entry) linkText(r io.ReaderAt) (string, error) {
	if e.size > maxLink {
		return "", fault.New(ZipInvalid, "the symbolic link %s has a text that is too long", pack.Shown(e.name))
	}
	c, err := e.open(r)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	return string(b), err
}

// link makes the symbolic link i. It may lead up from where it is and then down
// again, but not up once it has passed another link of the archive.
func (u *unpacking) link(i int) error {
	e := &u.directory.entries[i]
	text, err := e.linkText(u.from)
	if err != nil {
		return err
	}
	outside := fault.New(ZipInvalid, "the archive has the symbolic link %s, which leads or may lead outside (%q); nothing was unpacked", pack.Shown(e.name), pack.Shown(text))
	if !pack.Stays(text, path.Dir(e.name)) {
		return outside
	}
	at, passed := path.Dir(e.name), false
	for part := range strings.SplitSeq(text, "/") {
		if part == ".." && passed {
			return outside
		}
		at = path.Join(at, part)
		passed = passed || u.links[at]
	}
	u.m.step("unpack link")
	if err := u.to.Symlink(text, e.name); err != nil && !(errors.Is(err, fs.ErrExist) && u.Lazy) {
		return err
	}
	fi, err := u.to.Lstat(e.name)
	if err != nil {
		return err
	}
	u.stamps[i] = stampOf(fi)
	return nil
}
