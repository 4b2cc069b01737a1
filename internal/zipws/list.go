package zipws

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
)

// list returns the metadata of all sessions that the Host lets us see, sorted by
// name. Leftovers of processes that were killed are removed on the way.
func (m *Manager) list(st *os.Root) ([]metadata, error) {
	all, err := m.all(st)
	if err != nil {
		return nil, err
	}
	visible := slices.DeleteFunc(all, func(d metadata) bool {
		at, err := m.Host.Resolve(d.Source)
		return err != nil || at.Abs != d.Source
	})
	m.allow(visible)
	return visible, nil
}

// all is list without regard to the Host.
func (m *Manager) all(st *os.Root) ([]metadata, error) {
	names, err := namesIn(st, workspacesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []metadata
	for _, name := range names {
		path := filepath.Join(workspacesDir, name)
		if strings.HasPrefix(name, trashPrefix) {
			st.RemoveAll(path)
			continue
		}
		dir, err := st.OpenRoot(path)
		if err != nil {
			continue
		}
		d, err := loadMetadata(dir)
		d.unfinished = err == nil && leftIn(dir, d)
		dir.Close()
		switch {
		case err == nil && d.Name == name:
			list = append(list, d)
		case errors.Is(err, fs.ErrNotExist):
			m.sweep(st, name)
		default:
			m.Log.Warn("the metadata of a zip workspace cannot be read", "name", name, "err", err)
		}
	}
	locks, err := namesIn(st, locksDir)
	if err != nil {
		return nil, err
	}
	for _, name := range locks {
		if name != allLock && !slices.Contains(names, name) {
			m.sweep(st, name)
		}
	}
	return list, nil
}

// sweep removes what was left of a session that was being opened or closed
// when its process was killed.
func (m *Manager) sweep(st *os.Root, name string) {
	f, err := m.lock(context.Background(), st, name, true, 0)
	if err != nil {
		return // its process lives
	}
	defer f.Close()
	path := filepath.Join(workspacesDir, name)
	if _, err := st.Lstat(filepath.Join(path, metadataName)); errors.Is(err, fs.ErrNotExist) {
		m.remove(st, name)
	}
}

// remove removes the workspace called name, which the caller has locked, with
// its lock.
func (m *Manager) remove(st *os.Root, name string) error {
	gone := filepath.Join(workspacesDir, trashPrefix+rand.Text())
	m.step("move workspace away")
	err := st.Rename(filepath.Join(workspacesDir, name), gone)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m.step("remove lock")
	st.Remove(filepath.Join(locksDir, name))
	m.step("remove workspace")
	return st.RemoveAll(gone)
}

func (m *Manager) describe(st *os.Root, d metadata) Session {
	s := Session{ID: d.ID, Name: d.Name, Source: d.Source, State: d.State,
		Created: Time(d.Created), Accessed: Time(d.Created), Files: d.Files, Bytes: d.Bytes, Lazy: d.Lazy, ReadOnly: d.Format != pack.Zip}
	if fi, err := st.Lstat(filepath.Join(locksDir, d.Name)); err == nil {
		s.Accessed = Time(fi.ModTime())
	}
	return s
}

// Sessions lists the open sessions, by name. Those that a killed process left in
// the middle of a sync are recovered.
func (m *Manager) Sessions(ctx context.Context) ([]Session, error) {
	st, err := m.state(false)
	if errors.Is(err, fs.ErrNotExist) {
		return []Session{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer st.Close()
	list, err := m.list(st)
	if err != nil {
		return nil, err
	}
	sessions := make([]Session, 0, len(list))
	for _, d := range list {
		if d.unfinished {
			if s, err := m.acquire(ctx, st, d, true, 0); err == nil {
				d = s.metadata
				s.release()
			}
		}
		sessions = append(sessions, m.describe(st, d))
	}
	return sessions, nil
}
