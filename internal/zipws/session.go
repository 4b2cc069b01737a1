package zipws

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A session is a workspace that the caller has locked.
type session struct {
	metadata
	m      *Workspaces
	st     *os.Root
	root   *os.Root // of the workspace
	lock   *os.File
	source place.Place
}

// use finds the session that ref means and locks it, for itself alone where
// exclusive is set. A sync that was interrupted is completed or taken back. The
// caller closes the session.
func (m *Workspaces) use(ctx context.Context, ref string, exclusive bool) (*session, error) {
	st, err := m.state(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, m.Words.missing(ref, nil)
	}
	if err != nil {
		return nil, err
	}
	s, err := m.find(ctx, st, ref, exclusive)
	if err != nil {
		st.Close()
	}
	return s, err
}

func (m *Workspaces) find(ctx context.Context, st *os.Root, ref string, exclusive bool) (*session, error) {
	v, err := m.list(st)
	if err != nil {
		return nil, err
	}
	d, err := v.pick(ref, m.Words)
	if err != nil {
		return nil, err
	}
	return m.acquire(ctx, st, d, exclusive, m.wait)
}

// acquire locks the session d.
func (m *Workspaces) acquire(ctx context.Context, st *os.Root, d metadata, exclusive bool, wait time.Duration) (*session, error) {
	f, err := m.lock(ctx, st, d.Name, exclusive, wait)
	if err != nil {
		return nil, err
	}
	s := &session{m: m, st: st, lock: f}
	if err := s.load(d); err != nil {
		s.release()
		return nil, err
	}
	if !leftIn(s.root, s.metadata) {
		now := m.Now()
		st.Chtimes(filepath.Join(locksDir, d.Name), now, now)
		return s, nil
	}
	if !exclusive {
		s.release()
		return m.acquire(ctx, st, d, true, wait)
	}
	if err := s.recover(); err != nil {
		s.release()
		return nil, err
	}
	s.root.Remove(tempName)
	s.dropOtherGenerations()
	return s, nil
}

// load reads what the locked session d is now.
func (s *session) load(d metadata) (err error) {
	if s.root, err = s.st.OpenRoot(filepath.Join(workspacesDir, d.Name)); err == nil {
		s.metadata, err = loadMetadata(s.root)
	}
	if err == nil && s.ID != d.ID {
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(SessionNotFound, "the session %s was closed meanwhile", d.Name)
	}
	if err != nil {
		return err
	}
	s.source, err = s.m.Host.Resolve(s.Source)
	return err
}

// release lets go of the session but not of the data directory.
func (s *session) release() {
	if s.root != nil {
		s.root.Close()
	}
	s.lock.Close()
}

// close lets go of the session.
func (s *session) close() {
	s.release()
	s.st.Close()
}

// contents opens the directory of the session's files.
func (s *session) contents() (*os.Root, error) { return s.root.OpenRoot(contentsDir) }

// openSource opens the archive for reading.
func (s *session) openSource() (*os.File, fs.FileInfo, error) {
	f, fi, err := s.source.OpenFileOnly()
	if err != nil {
		return nil, nil, notFound(s.Source, err)
	}
	return f, fi, nil
}

// notFound is why the archive at path cannot be opened.
func notFound(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(ZipNotFound, "there is no archive %s", path)
	}
	_, message := fault.Of(err)
	return fault.Hide(ZipNotFound, err, "the archive %s cannot be read: %s", path, message)
}

// Path returns the directory of a session's files. A lazy session becomes one
// whose files are all unpacked.
func (m *Workspaces) Path(ctx context.Context, ref string, progress func(done, total int64)) (string, error) {
	s, err := m.use(ctx, ref, false)
	if err != nil {
		return "", err
	}
	if !s.Lazy {
		defer s.close()
		return m.contents(s.Name), nil
	}
	name := s.Name
	s.close()
	if s, err = m.use(ctx, name, true); err != nil {
		return "", err
	}
	defer s.close()
	if s.Lazy {
		if err := s.materialize(ctx, progress); err != nil {
			return "", err
		}
	}
	return m.contents(s.Name), nil
}
