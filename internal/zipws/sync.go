package zipws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// SyncOptions say how a workspace is synced.
type SyncOptions struct {
	Force    bool                    // write although the archive was modified by others
	DryRun   bool                    // only tell what would be done
	Progress func(done, total int64) // called with the number of entries done; may be nil
}

// Sync writes what changed in a workspace to its archive. What did not change is
// copied as it is, byte for byte, and the order of entries, their methods,
// modes, comments and extra fields stay. There is no moment without a good
// archive: it is replaced in one step, and the one before stays beside it as
// NAME.bak.EXT, earlier ones as NAME.bak.2.EXT and NAME.bak.3.EXT.
//
// Where others have modified the archive since it was opened the error is
// CONFLICT_DETECTED; with Force theirs becomes the backup.
func (m *Manager) Sync(ctx context.Context, ref string, o SyncOptions) (Synced, error) {
	s, err := m.use(ctx, ref, true)
	if err != nil {
		return Synced{}, err
	}
	defer s.close()
	return s.sync(ctx, o)
}

func (s *session) sync(ctx context.Context, o SyncOptions) (Synced, error) {
	if err := s.readOnly(); err != nil {
		return Synced{}, err
	}
	c, err := s.compare(ctx)
	if err != nil {
		return Synced{}, err
	}
	files := func(list []string) (n int) {
		for _, name := range list {
			n += bits(!strings.HasSuffix(name, "/"))
		}
		return n
	}
	r := Synced{Synced: !o.DryRun, Modified: files(c.Modified), Added: files(c.Added), Deleted: files(c.Deleted), Warnings: c.Warnings}
	f, fi, err := s.openSource()
	if err != nil {
		return r, err
	}
	defer f.Close()
	present, same := s.unchanged(f, fi)
	if now := stampOf(fi); same && now != s.Archive {
		// Touched, at least: what it holds must still be what its list says.
		same = present.intact(ctx, f) == nil
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if !same && !o.Force {
		return r, fault.New(ConflictDetected, "%s has been modified since it was opened; with force it is overwritten, and its present form kept as a backup", s.Source)
	}
	if o.DryRun {
		r.Estimated = &s.Archive.Size
	}
	if same && !c.dirty() {
		return r, nil
	}
	if present == nil { // no archive at all any more
		present = &directory{}
	}
	w := &syncRun{session: s, c: c, archive: f, was: fi, present: present, same: same, options: o}
	return r, w.run(ctx, &r)
}

// intact reads all of the archive; the error says that something in it is not
// what its directory says.
func (d *directory) intact(ctx context.Context, f io.ReaderAt) error {
	work := make(chan *entry, len(d.entries))
	for i := range d.entries {
		work <- &d.entries[i]
	}
	close(work)
	group, ctx := parallel.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			buf := make([]byte, 256<<10)
			for e := range work {
				if err := ctx.Err(); err != nil {
					return err
				}
				c, err := e.open(f)
				if code, _ := fault.Of(err); code == UnsupportedFormat {
					continue
				}
				if err != nil {
					return err
				}
				_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, stopping{ctx, c}, buf)
				c.Close()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// A syncRun is one sync that has something to write.
type syncRun struct {
	*session
	c        *comparison
	archive  *os.File
	was      fs.FileInfo
	present  *directory     // of the archive as it is
	same     bool           // it is the one that was opened
	theirs   map[string]int // its entries where it is not; see sameOfTheirs
	options  SyncOptions
	contents *os.Root
	dir      *os.Root // that the archive is in
	base     string   // its name there
}

func (w *syncRun) run(ctx context.Context, r *Synced) (err error) {
	items, err := w.items(ctx, r)
	if err != nil {
		return err
	}
	if w.contents, err = w.session.contents(); err != nil {
		return err
	}
	defer w.contents.Close()
	b := &builder{ctx: ctx, from: w.archive, present: w.present, comment: w.c.comment, contents: w.contents,
		to: counting{}, progress: w.options.Progress, step: w.m.step}
	if w.options.DryRun {
		size, err := b.run(items)
		r.Estimated = &size
		return w.failed(ctx, err)
	}
	if w.dir, err = w.source.Root.OpenRoot(filepath.Dir(w.source.Name)); err != nil {
		return w.failed(ctx, w.source.Explain(err))
	}
	defer w.dir.Close()
	w.base = filepath.Base(w.source.Name)
	temp := atomicfile.TempName()
	w.Sync = &journal{Temps: []string{temp, atomicfile.TempName()}}
	w.State = stateSyncing
	if err := w.save(); err != nil {
		return err
	}
	next, err := w.build(b, items, temp)
	if err == nil {
		err = w.swap(next, temp)
	}
	if err != nil {
		return errors.Join(w.failed(ctx, err), w.recover())
	}
	r.Backup = filepath.Join(filepath.Dir(w.Source), backupName(w.base, 1))
	return nil
}

// failed gives an error of writing its code.
func (w *syncRun) failed(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if coded := new(fault.Error); errors.As(err, &coded) {
		return err
	}
	return fault.Hide(SyncFailed, err, "%s could not be written and is as it was: %s", w.Source, atomicfile.Cause(err))
}

// items lists what the new archive has, in the order of the old one.
func (w *syncRun) items(ctx context.Context, r *Synced) ([]item, error) {
	lost := 0
	items := make([]item, 0, len(w.c.entries)+len(w.c.added))
	for i := range w.c.entries {
		e := &w.c.entries[i]
		fate := w.c.fate[i]
		if e.hidden {
			if winner, ok := w.c.named[e.name]; !w.same || ok && w.c.fate[winner] != kept {
				fate = gone
			}
		}
		it := item{old: e, node: w.c.found[i], stamp: w.c.stamps[i]}
		switch {
		case fate == gone:
			continue
		case fate == kept && w.same:
			it.whole = &w.present.entries[i]
		case fate == kept && it.node.name == "":
			theirs, err := w.sameOfTheirs(ctx, e)
			if err != nil {
				return nil, err
			}
			if theirs == nil && !w.Lazy {
				lost++ // a link that was not unpacked
				continue
			}
			if theirs == nil {
				return nil, fault.New(SyncFailed, "%s was modified by others, and %s, which this session has not unpacked, is no longer in it as it was; nothing was changed. Close the session with discard and open the archive again", w.Source, e.name)
			}
			it.whole = theirs
		}
		items = append(items, it)
	}
	for _, n := range w.c.added {
		items = append(items, item{node: n})
	}
	if lost > 0 {
		r.Warnings = append(r.Warnings, plural(lost, "symbolic link", "symbolic links")+" of the archive that was opened, not unpacked since links are not, went with it.")
	}
	return items, nil
}

// sameOfTheirs finds the entry e, content and all, in an archive that others
// have modified; nil where it has none.
func (w *syncRun) sameOfTheirs(ctx context.Context, e *entry) (*entry, error) {
	if w.theirs == nil {
		w.theirs = w.present.named()
	}
	i, ok := w.theirs[e.name]
	if !ok {
		return nil, nil
	}
	t := &w.present.entries[i]
	if t.crc != e.crc || t.size != e.size || t.mode.Type() != e.mode.Type() {
		return nil, nil
	}
	r, err := t.open(w.archive)
	if err == nil {
		_, err = io.Copy(io.Discard, stopping{ctx, r})
		r.Close()
	}
	if err != nil {
		return nil, ctx.Err() // it is damaged
	}
	return t, nil
}

// A next is the archive that is about to take the place of the old one.
type next struct {
	directory *directory
	stamps    []stamp
}

// build writes the new archive under the name temp and reads it back.
func (w *syncRun) build(b *builder, items []item, temp string) (n next, err error) {
	w.m.step("create archive")
	f, err := w.dir.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b.to = f
	size, err := b.run(items)
	if err != nil {
		return n, err
	}
	atomicfile.CopyOwner(f, w.archive)
	if err := f.Chmod(w.was.Mode().Perm()); err != nil && runtime.GOOS != "windows" {
		return n, err
	}
	w.m.step("flush archive")
	if err := f.Sync(); err != nil {
		return n, err
	}
	if n.directory, err = readDirectory(f, size); err != nil {
		return n, fmt.Errorf("what was written is no valid archive: %w", err)
	}
	if len(n.directory.entries) != len(items) {
		return n, errors.New("what was written lacks entries")
	}
	for i := range items {
		n.stamps = append(n.stamps, items[i].stamp)
	}
	return n, nil
}

// swap puts the new archive in place. Before it does, all that is needed to go
// on from there is on the disk.
func (w *syncRun) swap(n next, temp string) error {
	generation := w.Generation + 1
	if err := w.keep(generation, n.directory, n.stamps); err != nil {
		return err
	}
	w.Sync.Hash, w.Sync.Backup = n.directory.hash(), backupName(w.base, 1)
	w.Sync.Next = &summary{}
	w.Sync.Next.Files, w.Sync.Next.Bytes = n.directory.size()
	if err := w.save(); err != nil {
		return err
	}
	now, err := w.dir.Lstat(w.base)
	if err != nil || !os.SameFile(now, w.was) || stampOf(now) != stampOf(w.was) {
		return fault.Hide(ConflictDetected, err, "%s was modified while it was synced; nothing was changed. Sync again", w.Source)
	}
	if err := w.rotate(); err != nil {
		return err
	}
	if err := w.backUp(); err != nil {
		return err
	}
	w.archive.Close() // some systems do not replace what is open
	w.m.step("replace archive")
	if err := w.dir.Rename(temp, w.base); err != nil {
		return err
	}
	w.m.step("flush directory")
	if err := atomicfile.Sync(w.dir); err != nil {
		return err
	}
	return w.complete(w.dir, w.base)
}

// backupName is the nth backup of the archive called base: a.bak.zip,
// a.bak.2.zip, a.bak.3.zip.
func backupName(base string, n int) string {
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	if stem == "" {
		stem, ext = base, ""
	}
	if n == 1 {
		return stem + ".bak" + ext
	}
	return fmt.Sprintf("%s.bak.%d%s", stem, n, ext)
}

// rotate makes room for a backup. Where one is missing, those after it stay.
func (w *syncRun) rotate() error {
	last := 1
	for ; last < backups; last++ {
		if _, err := w.dir.Lstat(backupName(w.base, last)); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	for n := last; n > 1; n-- {
		w.m.step("rotate backup")
		err := w.dir.Rename(backupName(w.base, n-1), backupName(w.base, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// backUp gives the archive a second name, or makes a copy of it where the file
// system has no such thing.
func (w *syncRun) backUp() error {
	name := backupName(w.base, 1)
	w.m.step("back up")
	if !w.m.unlinked {
		if err := w.dir.Link(w.base, name); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	temp := w.Sync.Temps[1]
	f, err := w.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	w.m.step("copy backup")
	if _, err := w.archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(f, w.archive); err != nil {
		return err
	}
	atomicfile.CopyOwner(f, w.archive)
	if err := f.Chmod(w.was.Mode().Perm()); err != nil && runtime.GOOS != "windows" {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	w.dir.Chtimes(temp, w.was.ModTime(), w.was.ModTime())
	w.m.step("place backup")
	return w.dir.Rename(temp, name)
}

// complete makes the next generation hold, once its archive is in place.
func (s *session) complete(dir *os.Root, base string) error {
	fi, err := dir.Lstat(base)
	if err != nil {
		return err
	}
	now := s.m.Now().UTC()
	s.Archive, s.Hash, s.Synced = stampOf(fi), s.Sync.Hash, &now
	s.Files, s.Bytes = s.Sync.Next.Files, s.Sync.Next.Bytes
	s.Generation++
	s.Sync, s.State = nil, stateOpen
	if err := s.save(); err != nil {
		return err
	}
	s.m.step("remove generation")
	s.forget()
	return nil
}

// forget removes what belongs to other generations than the present one.
func (s *session) forget() {
	for _, generation := range []int{s.Generation - 1, s.Generation + 1} {
		for _, what := range []string{"removed", "stamps", "directory"} { // by the last of which it is found
			s.root.Remove(part(what, generation))
		}
	}
}

// recover ends a sync that was interrupted: it is completed where the new
// archive is in place, and otherwise taken back. The session must be locked
// alone.
func (s *session) recover() error {
	if s.Sync == nil {
		return nil
	}
	dir, err := s.source.Root.OpenRoot(filepath.Dir(s.source.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return s.takeBack() // with it went all that there was
	}
	if err != nil {
		return s.source.Explain(err)
	}
	defer dir.Close()
	base := filepath.Base(s.source.Name)
	for _, temp := range s.Sync.Temps {
		if atomicfile.IsTemp(temp) {
			s.m.step("remove temporary file")
			dir.Remove(temp)
		}
	}
	if s.Sync.Next != nil {
		if f, err := dir.Open(base); err == nil {
			defer f.Close()
			if fi, err := f.Stat(); err == nil {
				if d, err := readDirectory(f, fi.Size()); err == nil && d.hash() == s.Sync.Hash {
					return s.complete(dir, base)
				}
			}
		}
		backup, err := dir.Lstat(s.Sync.Backup)
		present, perr := dir.Lstat(base)
		switch {
		case err == nil && perr == nil && os.SameFile(backup, present):
			s.m.step("remove backup")
			dir.Remove(s.Sync.Backup)
		case err == nil && errors.Is(perr, fs.ErrNotExist):
			s.m.step("bring back backup")
			if err := dir.Rename(s.Sync.Backup, base); err != nil {
				return err
			}
		}
	}
	if fi, err := dir.Lstat(base); err == nil && s.Archive.Inode == stampOf(fi).Inode {
		// To have had another name counts as a change of the file.
		if now := stampOf(fi); now.Size == s.Archive.Size && now.Modified == s.Archive.Modified {
			s.Archive = now
		}
	}
	return s.takeBack()
}

// takeBack makes the present generation hold again.
func (s *session) takeBack() error {
	s.Sync, s.State = nil, stateOpen
	s.m.step("take sync back")
	if err := s.save(); err != nil {
		return err
	}
	s.forget()
	return nil
}
