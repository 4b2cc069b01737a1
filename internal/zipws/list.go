package zipws

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
)

// A survey is what there is below workspaces/.
type survey struct {
	sessions []metadata // by name
	broken   []string   // names of ours whose metadata cannot be read
	unready  int        // ours that are being opened or closed
	others   []metadata // what others have made; all that is known of some is the Name
	names    []string   // that are taken
}

// list surveys the sessions that the Host lets us see.
func (m *Workspaces) list(st *os.Root) (*survey, error) {
	v, err := m.survey(st, false)
	if err != nil {
		return nil, err
	}
	v.sessions = slices.DeleteFunc(v.sessions, func(d metadata) bool {
		at, err := m.Host.Resolve(d.Source)
		return err != nil || at.Abs != d.Source
	})
	m.allow(v.sessions)
	return v, nil
}

// survey looks at all workspaces, without regard to the Host. What processes
// that were killed have left is removed on the way. alone is set where the
// caller has allLock.
func (m *Workspaces) survey(st *os.Root, alone bool) (*survey, error) {
	v := &survey{}
	names, err := namesIn(st, workspacesDir)
	if err != nil {
		return v, err
	}
	for _, name := range names {
		if prefix, ok := temporary(name); ok {
			m.sweepTemporary(st, name, prefix == newPrefix && !alone)
			continue
		}
		v.names = append(v.names, name)
		dir, err := st.OpenRoot(filepath.Join(workspacesDir, name))
		if err != nil {
			continue // not a directory, or not for us
		}
		d, is := identify(dir, name)
		switch is {
		case ready:
			d.unfinished = leftIn(dir, d)
			v.sessions = append(v.sessions, d)
		case broken:
			m.Log.Warn("the metadata of a zip workspace cannot be read", "name", name)
			v.broken = append(v.broken, name)
		case foreign:
			v.others = append(v.others, d)
		}
		dir.Close()
		if is == unready && !m.sweep(st, name) {
			v.unready++
		}
	}
	locks, err := namesIn(st, locksDir)
	if err != nil {
		return v, err
	}
	for _, name := range locks {
		if name != allLock && !slices.Contains(names, name) && ownLock(st, filepath.Join(locksDir, name)) {
			m.sweep(st, name)
		}
	}
	return v, nil
}

// sweep removes what was left of a session that was being opened or closed when
// its process was killed, and reports whether that is so.
func (m *Workspaces) sweep(st *os.Root, name string) bool {
	f, err := m.lock(context.Background(), st, name, true, 0)
	if err != nil {
		return false // its process lives
	}
	defer f.Close()
	dir, err := st.OpenRoot(filepath.Join(workspacesDir, name))
	if err == nil {
		_, is := identify(dir, name)
		dir.Close()
		if is != unready {
			return false
		}
	}
	return m.remove(st, name) == nil
}

// remove removes the workspace called name, which the caller has locked, with
// its lock. What others have made stays.
func (m *Workspaces) remove(st *os.Root, name string) error {
	path, trash := filepath.Join(workspacesDir, name), ""
	if dir, err := st.OpenRoot(path); err == nil {
		_, is := identify(dir, name)
		if is != foreign {
			trash = temporaryName(trashPrefix)
			err = mark(dir) // those of earlier versions have none
		}
		dir.Close()
		if err != nil {
			return err
		}
	}
	if trash != "" {
		m.step("move workspace away")
		if err := st.Rename(path, trash); err != nil {
			return err
		}
	}
	m.step("remove lock")
	if lock := filepath.Join(locksDir, name); ownLock(st, lock) {
		st.Remove(lock)
	}
	if trash == "" {
		return nil
	}
	m.step("remove workspace")
	return m.discard(st, trash)
}

func (m *Workspaces) describe(st *os.Root, d metadata) Session {
	s := Session{ID: d.ID, Name: d.Name, Source: d.Source, State: d.State,
		Created: Time(d.Created), Accessed: Time(d.Created), Files: d.Files, Bytes: d.Bytes, Lazy: d.Lazy, ReadOnly: d.Format != pack.Zip}
	if fi, err := st.Lstat(filepath.Join(locksDir, d.Name)); err == nil {
		s.Accessed = Time(fi.ModTime())
	}
	return s
}

// Sessions lists the open sessions, by name. Those that a killed process left in
// the middle of a sync are recovered.
func (m *Workspaces) Sessions(ctx context.Context) ([]Session, error) {
	st, err := m.state(false)
	if errors.Is(err, fs.ErrNotExist) {
		return []Session{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer st.Close()
	v, err := m.list(st)
	if err != nil {
		return nil, err
	}
	sessions := make([]Session, 0, len(v.sessions))
	for _, d := range v.sessions {
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
