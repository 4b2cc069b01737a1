// Package zipws keeps workspaces: archives that are worked in as files and
// synced back.
//
// A workspace is a directory below workspaces/ in the data directory. contents/
// holds the files; of a lazy session only those that were written, the others
// being read from the archive. metadata.json says what the session is, and
// names a generation: directory-N is the list of entries of the archive as it
// was when it was opened or synced last, stamps-N tells which files have not
// been touched since, removed-N what a lazy session has deleted. A sync makes
// the next generation. What metadata.json says holds; it is replaced in one
// step.
//
// Others may keep things of their own in the same directories: see markName.
//
// The file locks/NAME is locked by whoever uses the workspace NAME: shared by
// those that read and write files, alone by those that open, sync and close.
package zipws

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

const (
	workspacesDir = "workspaces"
	locksDir      = "locks"
	contentsDir   = "contents"
	metadataName  = "metadata.json"
	tempName      = metadataName + ".tmp" // what is next, until it is in place
	allLock       = ".all"                // held while sessions are counted and made
)

// A Host decides which archives may be used, and lets others into the
// workspaces.
type Host interface {
	// Resolve places the path of an archive, or refuses it.
	Resolve(path string) (place.Place, error)
	// Allow makes the directory dir one that paths may lead into, though it is
	// inside the server's own state. To allow it again changes nothing.
	Allow(dir string) error
	// Revoke takes Allow back.
	Revoke(dir string)
}

// Options are what Workspaces are made of.
type Options struct {
	Settings
	Data  string // see [Settings.Path]; where it is empty no session can be opened
	Host  Host
	Log   *slog.Logger
	Now   func() time.Time
	Words Words
}

// Workspaces are those of one data directory. Their methods may be called at the
// same time, and several processes may use one data directory. Sessions whose
// archive the Host refuses are as good as none.
type Workspaces struct {
	Options
	files *atomicfile.Writer
	wait  time.Duration // for a lock

	step     func(string) // in tests: called before each step that changes something
	unlinked bool         // in tests: backups are copies

	mu      sync.Mutex
	allowed map[string]bool  // directories that Host was told of
	sizes   map[string]int64 // at most so many bytes are in a session, by id, but for what others write
}

// New returns Workspaces, and tells the Host of the sessions that are open.
func New(o Options) *Workspaces {
	m := &Workspaces{Options: o, files: atomicfile.New(), wait: 10 * time.Second, step: func(string) {}, allowed: map[string]bool{}, sizes: map[string]int64{}}
	if st, err := m.state(false); err == nil {
		if _, err := m.list(st); err != nil {
			m.Log.Warn("zip workspaces cannot be listed", "dir", o.Data, "err", err)
		}
		st.Close()
	}
	return m
}

// state opens the data directory; where it is missing and not to be created the
// error is like [fs.ErrNotExist].
func (m *Workspaces) state(create bool) (*os.Root, error) {
	if m.Data == "" {
		if !create {
			return nil, fs.ErrNotExist
		}
		return nil, fault.New(IOError, "the user's data directory is not known, so workspaces have no place; set CONDUIT_ZIP_DATA_DIR")
	}
	if create {
		for _, dir := range []string{workspacesDir, locksDir} {
			if err := os.MkdirAll(filepath.Join(m.Data, dir), 0o700); err != nil {
				return nil, fault.Hide(IOError, err, "the directory of workspaces, %s, cannot be made (CONDUIT_ZIP_DATA_DIR): %s", m.Data, atomicfile.Cause(err))
			}
		}
	}
	return os.OpenRoot(m.Data)
}

// lock takes the lock called name, waiting for it at most that long. The error
// is LOCKED where somebody else has it.
func (m *Workspaces) lock(ctx context.Context, st *os.Root, name string, exclusive bool, wait time.Duration) (*os.File, error) {
	path := filepath.Join(locksDir, name)
	deadline := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := makeLock(st, path); err != nil {
			return nil, err
		}
		f, err := st.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if filelock.TryLock(f, filelock.Mode(!exclusive)) == nil {
			// Who had it before may have removed the file meanwhile.
			mine, err := f.Stat()
			now, nerr := st.Lstat(path)
			if err == nil && nerr == nil && os.SameFile(mine, now) {
				return f, nil
			}
			f.Close()
			continue
		}
		f.Close()
		if time.Now().After(deadline) {
			return nil, fault.New(Locked, "another operation has the session %s locked; try again when it is done", name)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// contents is the path of a session's files.
func (m *Workspaces) contents(name string) string {
	return filepath.Join(m.Data, workspacesDir, name, contentsDir)
}

// allow tells the Host which sessions are open.
func (m *Workspaces) allow(list []metadata) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := map[string]bool{}
	for _, d := range list {
		dir := m.contents(d.Name)
		now[dir] = true
		// Each time, since another process may have made the directory anew.
		if err := m.Host.Allow(dir); err != nil {
			m.Log.Warn("a zip workspace cannot be made accessible", "dir", dir, "err", err)
			delete(now, dir)
		}
	}
	for dir := range m.allowed {
		if !now[dir] {
			m.Host.Revoke(dir)
		}
	}
	m.allowed = now
}
