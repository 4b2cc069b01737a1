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
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
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
func (m *Workspaces) Sync(ctx context.Context, ref string, o SyncOptions) (Synced, error) {
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
			if !strings.HasSuffix(name, "/") {
				n++
			}
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
		same = intact(ctx, present, f) == nil
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if !same && !o.Force {
		return r, fault.New(ConflictDetected, "%s has been modified since it was opened; with %s it is overwritten, and its present form kept as a backup", s.Source, s.m.Words.Force)
	}
	if o.DryRun {
		r.Estimated = &s.Archive.Size
	}
	if same && !c.dirty() {
		return r, nil
	}
	if present == nil { // no archive at all any more
		present = &zipfile.Directory{}
	}
	w := &syncRun{session: s, c: c, archive: f, was: fi, present: present, same: same, options: o}
	return r, w.run(ctx, &r)
}

// A syncRun is one sync that has something to write.
type syncRun struct {
	*session
	c        *comparison
	archive  *os.File
	was      fs.FileInfo
	present  *zipfile.Directory // of the archive as it is
	same     bool               // it is the one that was opened
	theirs   map[string]int     // its entries where it is not; see sameOfTheirs
	options  SyncOptions
	packed   []stamp // what is on disk, as it was when it was read, by item
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
	b := &zipfile.Rewriter{From: w.archive, Present: w.present, Comment: w.c.Comment, Trailer: w.present.Trailer,
		To: zipfile.Discard, Progress: w.options.Progress, Step: w.m.step}
	if w.options.DryRun {
		size, err := b.Write(ctx, items)
		r.Estimated = &size
		return w.failed(ctx, err)
	}
	if w.dir, err = w.source.Parent().OpenRoot(); err != nil {
		return w.failed(ctx, err)
	}
	defer w.dir.Close()
	w.base = filepath.Base(w.source.Name)
	temp := atomicfile.TempName()
	w.Sync = &pendingSync{Temps: []string{temp, atomicfile.TempName()}}
	w.State = stateSyncing
	if err := w.save(); err != nil {
		return err
	}
	next, err := w.build(ctx, b, items, temp)
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
	if grown := new(zipfile.GrownError); errors.As(err, &grown) {
		return fault.Hide(SyncFailed, err, "%s grew while it was packed; nothing was changed, sync again", grown.Name)
	}
	return fault.Hide(SyncFailed, err, "%s could not be written and is as it was: %s", w.Source, atomicfile.Cause(err))
}

// items lists what the new archive has, in the order of the old one.
func (w *syncRun) items(ctx context.Context, r *Synced) ([]zipfile.Item, error) {
	lost := 0
	items := make([]zipfile.Item, 0, len(w.c.Entries)+len(w.c.added))
	for i := range w.c.Entries {
		e := &w.c.Entries[i]
		change := w.c.changes[i]
		if e.Hidden {
			if winner, ok := w.c.named[e.Name]; !w.same || ok && w.c.changes[winner] != unmodified {
				change = deleted
			}
		}
		it, known := zipfile.Item{Old: e}, w.c.stamps[i]
		switch {
		case change == deleted:
			continue
		case change <= moded && w.same:
			it.Verbatim = &w.present.Entries[i]
			if change == moded {
				known = w.c.found[i].stamp
			}
		case change == unmodified && w.c.found[i].name == "":
			theirs, err := w.sameOfTheirs(ctx, e)
			if err != nil {
				return nil, err
			}
			if theirs == nil && !w.Lazy {
				lost++ // a link that was not unpacked
				continue
			}
			if theirs == nil {
				return nil, fault.New(SyncFailed, "%s was modified by others, and %s, which this session has not unpacked, is no longer in it as it was; nothing was changed. Close the session with %s and open the archive again", w.Source, e.Name, w.m.Words.Discard)
			}
			it.Verbatim = theirs
		default:
			it.New = w.content(w.c.found[i], len(items))
		}
		if mode, ok := w.c.modes[i]; ok {
			it.Mode = &mode
		}
		items, w.packed = append(items, it), append(w.packed, known)
	}
	for _, n := range w.c.added {
		items, w.packed = append(items, zipfile.Item{New: w.content(n, len(items))}), append(w.packed, stamp{})
	}
	if lost > 0 {
		r.Warnings = append(r.Warnings, plural(lost, "symbolic link", "symbolic links")+" of the archive that was opened, not unpacked since links are not, went with it.")
	}
	return items, nil
}

// content is what n has, packed as item i.
func (w *syncRun) content(n node, i int) zipfile.File {
	return zipfile.File{Name: n.name, Mode: n.mode, Modified: n.mtime, Open: func() (io.ReadCloser, int64, time.Time, error) {
		if n.mode&fs.ModeSymlink != 0 {
			text, err := w.contents.Readlink(filepath.FromSlash(n.name))
			w.packed[i] = n.stamp
			return io.NopCloser(strings.NewReader(filepath.ToSlash(text))), int64(len(text)), n.mtime, err
		}
		f, fi, err := inside(w.contents, n.name).OpenFileOnly()
		if err != nil {
			return nil, 0, time.Time{}, w.m.Words.explain(n.name, err)
		}
		w.packed[i] = stampOf(fi)
		return f, fi.Size(), fi.ModTime(), nil
	}}
}

// sameOfTheirs finds the entry e, content and all, in an archive that others
// have modified; nil where it has none.
func (w *syncRun) sameOfTheirs(ctx context.Context, e *zipfile.Entry) (*zipfile.Entry, error) {
	if w.theirs == nil {
		w.theirs = w.present.Index()
	}
	i, ok := w.theirs[e.Name]
	if !ok {
		return nil, nil
	}
	t := &w.present.Entries[i]
	if t.CRC != e.CRC || t.Size != e.Size || t.Mode.Type() != e.Mode.Type() {
		return nil, nil
	}
	r, err := t.Open(w.archive)
	if err == nil {
		_, err = io.Copy(io.Discard, codec.WithContext(ctx, r))
		r.Close()
	}
	if err != nil {
		return nil, ctx.Err() // it is damaged
	}
	return t, nil
}

// A next is the archive that is about to take the place of the old one.
type next struct {
	directory *zipfile.Directory
	stamps    []stamp
}

// build writes the new archive under the name temp and reads it back.
func (w *syncRun) build(ctx context.Context, b *zipfile.Rewriter, items []zipfile.Item, temp string) (n next, err error) {
	w.m.step("create archive")
	f, err := w.dir.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b.To = f
	size, err := b.Write(ctx, items)
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
	if len(n.directory.Entries) != len(items) {
		return n, errors.New("what was written lacks entries")
	}
	n.stamps = w.packed
	return n, nil
}

// swap puts the new archive in place. Before it does, all that is needed to go
// on from there is on the disk.
func (w *syncRun) swap(n next, temp string) error {
	generation := w.Generation + 1
	if err := w.keep(generation, n.directory, n.stamps); err != nil {
		return err
	}
	w.Sync.Hash, w.Sync.Backup = n.directory.Hash(), backupName(w.base, 1)
	w.Sync.Next = &totals{}
	w.Sync.Next.Files, w.Sync.Next.Bytes = n.directory.Total()
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
	return w.commit(w.dir, w.base)
}
