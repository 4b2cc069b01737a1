package zipws

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// OpenOptions say how an archive is opened.
type OpenOptions struct {
	Name     string                  // of the session; empty: made from that of the archive
	Lazy     bool                    // unpack nothing until [Workspaces.Path] asks for it
	MaxSize  int64                   // instead of Settings.MaxSize; 0: no
	Progress func(done, total int64) // called with the number of files done; may be nil
}

// Open makes a session of the archive src. An archive with an entry that is not
// safe, or that exceeds a limit, is refused, and nothing is left behind. What is
// merely odd is told as a warning.
func (m *Workspaces) Open(ctx context.Context, src place.Place, o OpenOptions) (opened Opened, err error) {
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
	limits, said := m.Settings, sizeSetting
	if o.MaxSize > 0 {
		limits.MaxSize, said = o.MaxSize, m.Words.MaxSize
	}
	var d *zipfile.Directory
	if format == pack.Zip {
		if d, err = readDirectory(f, fi.Size()); err != nil {
			return opened, invalid(src.Abs, err)
		}
		if warnings, err = check(d, limits, said); err != nil {
			return opened, err
		}
	} else if o.Lazy {
		return opened, fault.New(InvalidParams, "%s works for zip archives, and %s is %s; leave %[1]s out", m.Words.Lazy, src.Abs, format)
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
	s.Limit = o.MaxSize
	s.Format, s.Lazy, s.Links, s.Archive, s.source = format, o.Lazy, m.Links, stampOf(fi), src
	if d != nil {
		err = s.fill(ctx, f, d, o.Progress)
	} else {
		err = s.unpack(ctx, limits, said, o.Progress)
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

// reserve makes the directory of a new session and locks it.
func (m *Workspaces) reserve(ctx context.Context, st *os.Root, src place.Place, name string, d *zipfile.Directory) (*session, error) {
	all, err := m.lock(ctx, st, allLock, true, m.wait)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	have, err := m.survey(st, true)
	if err != nil {
		return nil, err
	}
	s := &session{m: m, st: st}
	if d != nil {
		s.Files, s.Bytes = d.Total()
	}
	total := s.Bytes
	for _, other := range have.sessions {
		total += other.Bytes
	}
	switch {
	case name == "":
		name = nameFor(src.Abs, func(n string) bool { return slices.Contains(have.names, n) })
	case slices.ContainsFunc(have.others, func(d metadata) bool { return d.Name == name }):
		return nil, fault.New(NameCollision, "the directory of workspaces has something called %s that another program has made; give another name", name)
	case slices.Contains(have.names, name):
		return nil, fault.New(NameCollision, "a session called %s is open already; give another name, or close that one", name)
	}
	switch open := len(have.sessions) + len(have.broken) + have.unready; {
	case int64(open) >= m.MaxOpen:
		return nil, fault.New(LimitExceeded, "%s open, which is the most (CONDUIT_ZIP_MAX_SESSIONS); close one first", plural(open, "session is", "sessions are"))
	case total > maxTotalDisk:
		return nil, fault.New(LimitExceeded, "the open sessions would take more than %d bytes together; close one first, or open this one with %s", int64(maxTotalDisk), m.Words.Lazy)
	}
	s.ID, s.Name, s.Source, s.State, s.Created = newID(), name, src.Abs, stateOpen, m.Now().UTC()
	m.step("lock")
	if s.lock, err = m.lock(ctx, st, name, true, m.wait); err != nil {
		return nil, err
	}
	if err := s.makeDir(); err != nil {
		s.release()
		m.remove(st, name)
		return nil, err
	}
	return s, nil
}

// makeDir makes the directory of a new session, with its mark.
func (s *session) makeDir() error {
	temp := temporaryName(newPrefix)
	s.m.step("make workspace")
	if err := s.st.Mkdir(temp, 0o700); err != nil {
		return err
	}
	err := s.prepare(temp)
	if err == nil {
		s.m.step("name workspace")
		err = s.st.Rename(temp, filepath.Join(workspacesDir, s.Name))
	}
	if err != nil {
		s.m.discard(s.st, temp)
		return err
	}
	s.root, err = s.st.OpenRoot(filepath.Join(workspacesDir, s.Name))
	return err
}

func (s *session) prepare(temp string) error {
	dir, err := s.st.OpenRoot(temp)
	if err != nil {
		return err
	}
	defer dir.Close()
	s.m.step("mark workspace")
	if err := mark(dir); err != nil {
		return err
	}
	s.m.step("make contents")
	return dir.Mkdir(contentsDir, 0o700)
}

// fill unpacks the zip with directory d into a new session, unless it is lazy.
func (s *session) fill(ctx context.Context, f *os.File, d *zipfile.Directory, progress func(done, total int64)) error {
	stamps := make([]stamp, len(d.Entries))
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
	s.Hash = d.Hash()
	return s.keep(s.Generation, d, stamps)
}

// unpack unpacks an archive that is not a zip. Such a session is read-only.
func (s *session) unpack(ctx context.Context, limits Settings, said string, progress func(done, total int64)) error {
	if err := s.root.Remove(contentsDir); err != nil {
		return err
	}
	abs := filepath.Join(s.m.Data, workspacesDir, s.Name, contentsDir)
	dst := place.Place{Root: s.root, Name: contentsDir, Abs: abs, Asked: abs}
	o := pack.ExtractOptions{Format: s.Format, MaxBytes: limits.MaxSize, Progress: progress}
	if _, err := pack.Extract(ctx, s.m.files, s.source, dst, o); err != nil {
		if code, _ := fault.Of(err); code == fault.LimitExceeded {
			return fault.Hide(ZipBomb, err, "the archive %s unpacks to more than the limits allow (%s is %d bytes)", s.Source, said, limits.MaxSize)
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

// materialize unpacks what a lazy session has not yet. The session must be
// locked alone.
func (s *session) materialize(ctx context.Context, progress func(done, total int64)) error {
	l, err := s.layer()
	if err != nil {
		return err
	}
	defer l.from.Close()
	contents, err := s.contents()
	if err != nil {
		return err
	}
	defer contents.Close()
	stamps, err := s.stamps(len(l.Entries))
	if err != nil {
		return err
	}
	u := unpacking{session: s, from: l.from, directory: l.Directory, to: contents, stamps: stamps, progress: progress}
	err = u.run(ctx, func(i int) bool { return !l.covered(l.Entries[i].Name) })
	if err != nil {
		return err
	}
	s.m.step("write stamps")
	if err := writeDurably(s.root, part("stamps", s.Generation), appendStamps(nil, stamps)); err != nil {
		return err
	}
	s.Lazy = false
	return s.save()
}
